"""Attackers of Syfer that train as long as the encoder did, on a GPU, and refinement that is not optional.

    python tests/campaigns/long_opponent.py METHOD ... --dataset nih --public kermany-cxr --size 64 --data-root FOLDER
        [--steps 2000 10000 50000] [--rate 0.002] [--no-relations] [--within SECONDS] [--device cuda] [--folder FOLDER]
    python tests/campaigns/long_opponent.py METHOD ... --refined --keys 48 --device cpu ...

Each METHOD is attacked in turn by `contrastive` at the size of the encoder's own opponents, with each number of steps
and no plateau before it. Eve draws her keys on the device, and her encodings and steps are CUDA graphs: the cipher
that draws an owner's key would take most of the time. Releases that are scored have ordinary keys, of the preset
`first-look`. `--within` shortens a training that would not end in so many seconds, as its line then says. With
`--refined`, `relational` attacks instead, by its likeliest refined matching even if unrefined signatures are likelier.

Each result is printed at once as a line of JSON, with the training's curve, and kept in the folder.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, cast

import torch

from attacks.contrastive import Contrastive, ContrastiveAttacker
from attacks.relational import Relational, RelationalAttacker
from bench.evaluators.reidentification import Reidentification
from bench.nets.training import Replay
from bench.plugins.configured import configure
from bench.randomness import Secret
from bench.results.results import Results
from bench.runs.judge import judge
from bench.seeds import generator
from bench.types import Attack, Dataset, Key, Metric, NotApplicable, Release, Scheme, State, View, paired
from bench.workbench.cell import Cell
from bench.workbench.choice import Choice
from bench.workbench.inputs import plugin_record
from bench.workbench.machine import choose_device, hardware
from bench.workbench.place import Place
from bench.workbench.workbench import Workbench
from methods.syfer import SyferScheme
from metrics.guesswork import Guesswork
from metrics.pair_roc import PatientReidAUC, ReidAUC
from metrics.ranks import Top1

METRICS = (Guesswork(), Top1(), ReidAUC(), PatientReidAUC())
FEWEST = 100


@dataclass(frozen=True, eq=False)
class QuickKey(Key):
    """A key of Eve's own: its layers, and the encoder as a graph."""

    encode: Replay
    layers: tuple[torch.Tensor, ...]

    def release(self, private: Dataset) -> Release:
        """Encoded images (n, 1, h', w') without labels."""
        with torch.no_grad():
            return paired(self.encode(private.samples, *self.layers).clone(), None)

    def state(self) -> State:
        """The layers by number."""
        return {f"layer-{number}": layer for number, layer in enumerate(self.layers)}


@dataclass(frozen=True, eq=False)
class QuickScheme(Scheme):
    """Syfer's scheme with keys that are drawn on its device: the same distribution, other numbers."""

    scheme: SyferScheme
    encode: Replay

    @classmethod
    def of(cls, scheme: SyferScheme) -> QuickScheme:
        """The scheme's network in graphs."""
        return cls(scheme, Replay(lambda images, *layers: scheme.network(images, layers)))

    def sample_key(self, secret: Secret) -> QuickKey:
        """A fresh key."""
        device = next(self.scheme.network.parameters()).device
        draw = partial(torch.randn, generator=generator(secret.number(), device), device=device)
        return QuickKey(self.encode, tuple(self.scheme.network.draw(draw)))

    def load_key(self, state: State) -> QuickKey:
        """The key that `QuickKey.state` described."""
        return QuickKey(self.encode, tuple(state[f"layer-{number}"] for number in range(len(state))))


@dataclass(frozen=True)
class LongContrastive(Contrastive):
    """`contrastive` for a given number of steps, one training for all keys."""

    name: ClassVar[str] = "long-contrastive"
    trainings: ClassVar[int] = 1

    def fit(self, view: View, seed: int) -> ContrastiveAttacker:
        """Train on quick keys; `steps` counts, however long the method trained."""
        scheme = QuickScheme.of(view.scheme) if isinstance(view.scheme, SyferScheme) else view.scheme
        return super().fit(replace(view, scheme=scheme, trained=0), seed)


@dataclass(frozen=True)
class RefinedRelational(Relational):
    """`relational` with its likeliest refined matching."""

    name: ClassVar[str] = "refined-relational"

    def fit(self, view: View, seed: int) -> RelationalAttacker:
        """As `Relational.fit`; the choice is among refined variants if any was tried."""
        fitted = super().fit(view, seed)
        tried = (fitted.variant, *fitted.variant.rejected)
        refined = [variant for variant in tried if variant.blend is not None]
        if not refined:
            return fitted
        best = max(refined, key=lambda variant: variant.likelihood)
        others = tuple(variant for variant in refined if variant is not best)
        return replace(fitted, variant=replace(best, rejected=others))


def attacks(options: argparse.Namespace) -> Iterator[Attack]:
    """The attacks of a method, each shortened to what is left of its time."""
    if options.refined:
        yield RefinedRelational(keys=options.keys, held_out=max(2, options.keys // 6))
        return
    for steps in options.steps:
        taken = int(min(steps, options.left() / options.pace)) if options.pace else steps
        if taken < min(steps, FEWEST):
            return
        yield LongContrastive(
            steps=taken, least=taken, batch=options.batch, width=options.width, depth=options.depth,
            learning_rate=options.rate, relations=options.relations,
        )  # fmt: skip


def measured(bench: Workbench, attack: Attack) -> dict[str, Any]:
    """Figures, notes and curves of an attack."""
    found = Reidentification(attack).measure(bench)
    figures: dict[str, dict[str, float | None] | str] = {}
    for metric in METRICS:
        try:
            score = judge(cast("Metric[object]", metric), found.evidence)
        except NotApplicable as reason:
            figures[metric.name] = str(reason)
            continue
        names = ("value", "low", "high", "null", "null_low", "null_high", "p", "n")
        figures[metric.name] = {name: getattr(score, name) for name in names}
    machine = hardware(bench.device) | {"torch": torch.__version__}
    return {"figures": figures, "seconds": found.seconds, "details": found.details, "machine": machine}


def main(words: list[str] | None = None) -> None:
    """Measure, and print a line for each result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("method", nargs="+")
    parser.add_argument("--dataset", default="nih")
    parser.add_argument("--public")
    parser.add_argument("--size", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--preset", default="first-look")
    parser.add_argument("--steps", type=int, nargs="+", default=[50_000])
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--rate", type=float, default=Contrastive.learning_rate)
    parser.add_argument("--no-relations", dest="relations", action="store_false")
    parser.add_argument("--refined", action="store_true")
    parser.add_argument("--keys", type=int, default=48)
    parser.add_argument("--within", type=float, default=float("inf"), help="seconds for all trainings of the command")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--data-root", type=Path, action="append", default=[])
    parser.add_argument("--folder", type=Path, default=Path("results/long-opponent"))
    options = parser.parse_args(words)
    device = choose_device(options.device).type
    started = time.monotonic()
    options.left = lambda: options.within - (time.monotonic() - started)
    named = {name: getattr(options, name) for name in ("dataset", "public", "size", "seed", "preset")}
    choice = Choice.read({name: value for name, value in named.items() if value is not None})
    place = Place(Results(options.folder), options.folder / "cache", tuple(options.data_root))
    for method in options.method:
        cell = Cell(configure("methods", method, options.preset), choice, device)
        bench = Workbench.open(cell, place)
        options.pace = 0.0  # seconds a step of this method's last training
        for attack in attacks(options):
            result = {
                "method": plugin_record(cell.method).model_dump(mode="json"),
                "attack": repr(attack),
                **measured(bench, attack),
            }
            if isinstance(attack, LongContrastive):
                options.pace = result["seconds"]["attack"] / result["details"]["steps"]
            print(json.dumps(result), flush=True)
            with (options.folder / "results.jsonl").open("a") as file:
                file.write(json.dumps(result) + "\n")
        bench.close()


if __name__ == "__main__":
    main()
