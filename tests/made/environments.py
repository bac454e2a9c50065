"""Interpreters with numpy alone, and packages of other authors, for tests of environments: without network."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np


def numpy_alone(folder: Path) -> Path:
    """A new interpreter that has numpy and nothing else: files are linked, not copied, where that works."""
    subprocess.run([sys.executable, "-I", "-m", "venv", "--without-pip", str(folder)], check=True, timeout=120)
    (site,) = folder.glob("lib/python*/site-packages")
    installed = Path(np.__file__).parent
    for source in (installed, installed.parent / "numpy.libs"):
        if source.is_dir():
            shutil.copytree(source, site / source.name, copy_function=_linked, ignore=shutil.ignore_patterns("tests"))
    return folder / "bin" / "python"


def image(folder: Path) -> Path:
    """An unpacked image: this Python below /usr/local, numpy, and the libraries that both load."""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    base, local, installed = Path(sys.base_prefix), folder / "usr" / "local", Path(np.__file__).parent
    large = shutil.ignore_patterns("test", "tests", "site-packages", "idlelib", "lib2to3", "config-*", "__pycache__")
    binary = (base / "bin" / version).resolve()
    (local / "bin").mkdir(parents=True)
    shutil.copy2(binary, local / "bin" / version)
    (local / "bin" / "python3").symlink_to(version)
    shutil.copytree(base / "lib" / version, local / "lib" / version, copy_function=_linked, ignore=large)
    site = local / "lib" / version / "site-packages"
    for source in (installed, installed.parent / "numpy.libs"):
        if source.is_dir():
            shutil.copytree(source, site / source.name, copy_function=_linked, ignore=large)
    for path in {found for each in [binary, *folder.rglob("*.so")] for found in _libraries(each)}:
        if not path.is_relative_to(installed.parent) and not path.is_relative_to(folder):
            inside = folder / path.relative_to("/")
            inside.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, inside)
    for name in ("home", "proc", "dev", "sys", "tmp", "etc"):
        (folder / name).mkdir()
    return folder


def _libraries(path: Path) -> list[Path]:
    printed = subprocess.run(["ldd", str(path)], capture_output=True, text=True, check=False, timeout=60).stdout
    return [Path(word) for word in printed.split() if word.startswith("/") and Path(word).is_file()]


def _linked(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another disk
        shutil.copy2(source, target)


def wheel(folder: Path, name: str, files: Mapping[str, str], entry_points: str) -> Path:
    """A wheel of version 1 with these files, which installs without a build."""
    information = f"{name}-1.dist-info"
    texts = {
        **files,
        f"{information}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n",
        f"{information}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{information}/entry_points.txt": entry_points,
    }
    path = folder / f"{name}-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for inner, text in texts.items():
            archive.writestr(inner, text)
        archive.writestr(
            f"{information}/RECORD", "".join(f"{inner},,\n" for inner in [*texts, f"{information}/RECORD"])
        )
    return path


OWN_TIME = '''"""A method and an attack of another time, with numpy alone."""

from dataclasses import dataclass
from typing import ClassVar, Optional

import numpy as np
from bench_room import Attack, Attacker, Key, Method, NotApplicable, PairScores, PrivacyClaim, Scheme, Secret, paired


@dataclass(frozen=True)
class Additive(Method):
    """Adds a secret picture to every image."""

    name: ClassVar[str] = "additive"
    source: ClassVar[str] = "a test"
    needs_public: ClassVar[bool] = False
    unlearned = frozenset({"strength"})
    presets = {"paper": {"strength": 9.0}}
    strength: float = 0.5
    limit: Optional[int] = None

    def fit(self, public, seed):
        return AdditiveScheme(self.strength, public.samples.mean(axis=0))

    def load(self, state):
        return AdditiveScheme(self.strength, state["mean"])


@dataclass(frozen=True, eq=False)
class AdditiveScheme(Scheme):
    strength: float
    mean: object

    def sample_key(self, secret):
        return AdditiveKey(self.strength, secret)

    def load_key(self, state):
        return AdditiveKey(self.strength, Secret.load(state["secret"]))

    def state(self):
        return {"mean": self.mean}

    def claim(self):
        return PrivacyClaim("image", float("inf"), 0.0, "none", "a test")

    def notes(self):
        return {"strength": np.float32(self.strength), "numpy": np.__version__}


@dataclass(frozen=True)
class AdditiveKey(Key):
    strength: float
    secret: Secret

    def release(self, private):
        if len(private) == 3:
            raise NotApplicable("three rows are too few")
        return paired(self.query(private.samples), private.labels)

    def query(self, samples):
        picture = self.secret.stream("picture").uniform(*samples.shape[1:])
        return (samples + self.strength * picture).astype(np.float32)

    def state(self):
        return {"secret": self.secret.tensor()}


@dataclass(frozen=True)
class Centred(Attack):
    """Compares images less their mean, after a release of its own."""

    name: ClassVar[str] = "centred"
    source: ClassVar[str] = "a test"
    knowledge: ClassVar[str] = "the raw rows"

    def fit(self, view, seed):
        own = view.scheme.sample_key(Secret.of_seed(seed)).release(view.candidates)
        return CentredAttacker(view.candidates.samples, float(np.abs(own.samples).mean()))


@dataclass(frozen=True, eq=False)
class CentredAttacker(Attacker):
    raw: object
    level: float

    def score(self, sealed):
        a, b = (rows.reshape(len(rows), -1).astype(np.float64) for rows in (self.raw, sealed.samples))
        a, b = a - a.mean(axis=0), b - b.mean(axis=0)
        apart = (a**2).sum(axis=1)[:, None] - 2 * a @ b.T + (b**2).sum(axis=1)[None]
        return PairScores(-apart)

    def notes(self):
        return {"level": self.level}
'''


NOISY = '''"""A method with Laplace noise, whose training can be interrupted."""

from dataclasses import dataclass

import numpy as np
from bench_room import Key, Mechanism, Method, PrivacyClaim, Scheme, Secret, keep, kept, paired, report


@dataclass(frozen=True)
class Noisy(Method):
    """Adds Laplace noise to every pixel."""

    name = "noisy"
    source = "a test"
    scale: float = 0.5
    stops: bool = False

    def fit(self, public, seed):
        before = kept()
        begun = 0 if before is None else int(before["step"])
        report("training", begun, 4)
        keep({"step": np.array(begun + 1)})
        keep({"step": np.array(begun + 2)})
        if self.stops:
            raise RuntimeError("cut off")
        return self.load({"step": np.array(begun + 2), "width": np.array(public.samples[0].size)})

    def load(self, state):
        return NoisyScheme(self.scale, state)


@dataclass(frozen=True, eq=False)
class NoisyScheme(Scheme):
    scale: float
    learned: object

    def state(self):
        return self.learned

    def claim(self):
        return PrivacyClaim("image", float(self.learned["width"]) / self.scale, 0.0, "pixels in [0, 1]", "Laplace")

    def mechanism(self):
        return NoisyMechanism(self.scale, int(self.learned["width"]))

    def sample_key(self, secret):
        return NoisyKey(self.scale, secret)

    def load_key(self, state):
        return NoisyKey(self.scale, Secret.load(state["secret"]))


@dataclass(frozen=True)
class NoisyMechanism(Mechanism):
    size: float
    width: int

    @property
    def scale(self):
        return np.full(self.width, self.size)

    def locate(self, data):
        return data.samples.reshape(len(data), -1).astype(np.float64)

    def observe(self, release):
        return release.samples.reshape(len(release), -1).astype(np.float64)


@dataclass(frozen=True)
class NoisyKey(Key):
    scale: float
    secret: Secret

    def release(self, private):
        even = self.secret.bound_to(private.samples).stream().uniform(*private.samples.shape) - 0.5
        noise = -self.scale * np.sign(even) * np.log1p(-2 * np.abs(even))
        return paired((private.samples + noise).astype(np.float32), private.labels)

    def state(self):
        return {"secret": self.secret.tensor()}
'''
