"""People whom the run secret draws are in no method's memory, and a verifier draws the same ones again."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from made import submissions
from made.submissions import METHOD, Handed, forged, found_of, judged, place_of, run, spec, tiers

from bench.data.prepare import prepare
from bench.data.sets.synth_cxr import SynthCXR
from bench.exchange import check, draws
from bench.exchange.bundle_tiers import Board
from bench.exchange.disclosed_secrets import Disclosed
from bench.exchange.draws import registered
from bench.exchange.merge import merge
from bench.exchange.recheck_fit import recheck_fit
from bench.exchange.submit import submit
from bench.exchange.verify import _run_spec, seal
from bench.plugins.spec import UsageError
from bench.randomness import Secret
from bench.results import cell_secrets
from bench.results.bundle import Bundle
from bench.results.records import Record
from bench.results.results import Results
from bench.results.run_secret import RunSecret
from bench.results.signing_key import make_pair
from bench.results.verdict import Tier
from bench.types import DataError
from bench.workbench.choice import Choice
from bench.workbench.open_data import open_data
from bench.workbench.place import Place

SMALL = "synth-cxr[images=60,seed=secret]"
CHOICE = Choice.read({"dataset": SMALL, "preset": "smoke", "size": 32, "public": "synth-nih[images=60]"})
PUBLIC = Choice.read(
    {"dataset": "synth-cxr[images=60]", "preset": "smoke", "size": 32, "public": "synth-nih[images=60]"}
)


def of(folder: Path, cache: Path, secret: Secret | None = None) -> Place:
    where = place_of(folder, cache)
    if secret is not None:
        where.results.keep_secret(secret)
    return where


def opened(choice: Choice, where: Place) -> Any:
    return open_data(choice, where, torch.device("cpu"))[:2]


@pytest.fixture(scope="module")
def handed(tmp_path_factory: pytest.TempPathFactory) -> Handed:
    folder = tmp_path_factory.mktemp("people")
    where = of(folder / "results", folder / "cache", Secret.of_seed(4, "an author's"))
    run(spec([METHOD], controls=True, choice=CHOICE), where)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(check, "required", submissions.few)
        assert submit(where.results, folder / "a.bundle.zip", disclose=True)[1] == ()
    return Handed(folder, where.results, Bundle.open(folder / "a.bundle.zip"), where.cache)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "required", submissions.few)


def records(results: Results) -> list[Record]:
    return [record for _, record in results.records() if isinstance(record, Record)]


def test_people_follow_from_the_run_secret_and_public_people_stay(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    one, other = Secret.of_seed(1), Secret.of_seed(2)
    (a, mine), (_, again), (b, theirs) = (
        opened(CHOICE, of(tmp_path / name, cache, secret)) for name, secret in (("a", one), ("b", one), ("c", other))
    )
    assert mine == again
    assert mine.fingerprint != theirs.fingerprint
    assert mine.public_fingerprint == theirs.public_fingerprint
    assert torch.equal(a.public.samples, b.public.samples)
    assert "people are drawn under the run secret" in mine.notes
    assert mine.parameters["seed"] == "secret"
    assert all(folder.stat().st_mode & 0o077 == 0 for folder in cache.glob("synth-cxr-*"))


@pytest.mark.parametrize(("choice", "share"), [(PUBLIC, 1.0), (CHOICE, 0.0)])
def test_a_table_of_the_generators_people_holds_test_images_of_the_public_seed_alone(
    choice: Choice, share: float, tmp_path: Path
) -> None:
    """Pixel by pixel, as a method that carries them in its weights would look test images up."""
    table = SynthCXR(images=60).scan((), 32).samples
    assert table is not None
    known = {image.tobytes() for image in table}
    splits, _ = opened(choice, of(tmp_path / "a", tmp_path / "cache", Secret.of_seed(1)))
    images = (splits.test.samples * 255).round().byte().numpy()
    assert sum(image.tobytes() in known for image in images) / len(images) == share


def test_secret_people_have_no_films_before_a_run_and_are_nobodys_public_rows(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has no people yet: `bench run` draws them under its run secret"):
        prepare(SynthCXR(images=9, seed="secret"), roots=(), cache=tmp_path, size=32)
    with pytest.raises(UsageError, match="public rows must be known to everyone"):
        Choice.read({"dataset": "synth-nih", "public": "synth-mimic[seed=secret]"})


def test_a_verifier_draws_the_same_people_from_what_is_disclosed(handed: Handed, tmp_path: Path) -> None:
    again = partial(submissions.again, tmp_path / "again", tmp_path / "cache")
    recheck = partial(recheck_fit, place=of(tmp_path / "fit", tmp_path / "cache"))
    found = judged(handed.bundle, rerun=9, again=again, recheck=recheck)
    assert tiers(found)["reidentification-chance.json"] == "re-run"
    assert "self-reported" not in tiers(found).values()


def test_people_that_are_not_disclosed_leave_a_row_its_authors_word(handed: Handed) -> None:
    secrets = {name: secret for name, secret in handed.bundle.secrets.items() if not name.startswith("people of ")}
    assert len(secrets) == len(handed.bundle.secrets) - 1
    bundle = forged(handed, {}, **{"cell-secrets.json": cell_secrets.dumps(secrets)})
    found = judged(bundle)
    assert set(tiers(found).values()) == {"self-reported"}
    assert all("people cannot be drawn" in each.reason for each in found_of(found) if each.reason)
    root = Disclosed({}, handed.results.keep_secret().root)
    assert "self-reported" not in tiers(judged(bundle, secrets=root)).values()


def test_a_disclosed_secret_of_people_gives_no_key_away(handed: Handed) -> None:
    (people,) = (secret for name, secret in handed.bundle.secrets.items() if name.startswith("people of "))
    root = handed.results.keep_secret()
    cells = {secret for name, secret in handed.bundle.secrets.items() if not name.startswith("people of ")}
    assert people == root.of_people(SMALL)
    assert people not in {*cells, root.root}
    assert {record.inputs["run secret commitment"] for record in records(handed.results)} == {
        secret.commitment() for secret in cells
    }


def test_sealing_draws_people_whom_the_author_never_had(tmp_path: Path) -> None:
    """The author's row has the public seed, and so has its name; the sealed one is compared with it all the same."""
    author, cache = of(tmp_path / "results", tmp_path / "cache", Secret.of_seed(5)), tmp_path / "cache"
    run(spec([METHOD], controls=True, choice=PUBLIC), author)
    assert submit(author.results, tmp_path / "a.zip", disclose=True)[1] == ()
    bundle, own = Bundle.open(tmp_path / "a.zip"), RunSecret(Secret.of_seed(6))
    sealer = of(tmp_path / "sealed", cache, own.root)
    asked: list[str] = []

    def again(wanted: Any) -> dict[str, Record]:
        measured = {}
        for record in wanted:
            asked.append(f"{record.cell}/{record.evaluator}")
            (choice,) = _run_spec([record], "secret").choices
            attacks = [] if record.attack is None else [record.attack.written]
            metrics = [metric.written for metric in record.metrics.values()]
            run(spec([record.method.written], controls=False, attacks=attacks, metrics=metrics, choice=choice), sealer)
        for made in records(sealer.results):
            (name,) = (name for name in asked if name.endswith(made.evaluator) and f"/{made.method.name}--" in name)
            measured[name] = made
        return measured

    found, _ = seal(bundle, own, again)
    assert found.verdict is not None
    assert found.verdict.tier == Tier.SEALED
    assert {cell.partition("/")[0] for cell in found.verdict.rows} == {"synth-cxr-images-60-seed-secret-"}
    fingerprints = {cast(Any, record.dataset).fingerprint for record in records(sealer.results)}
    assert len(fingerprints) == 1
    assert not fingerprints & {cast(Any, record.dataset).fingerprint for record in records(author.results)}


def test_a_draw_draws_the_people_too(tmp_path: Path) -> None:
    key, _ = make_pair(tmp_path / "board.key")
    wanted, where = spec([METHOD], controls=True, choice=CHOICE), place_of(tmp_path / "results", tmp_path / "cache")
    draws.commit([wanted], place_of(tmp_path / "elsewhere", where.cache), tmp_path / "mine.json")
    assert where.results.commitment is None
    path, made = draws.draw(tmp_path / "mine.json", tmp_path / "register", key)
    ready = replace(wanted, choices=tuple(replace(choice, seed=made.seed) for choice in wanted.choices))
    draws.begin(path, [ready], where.results)
    run(ready, where)
    assert submit(where.results, tmp_path / "a.zip")[1] == ()
    board = Board(registered(tmp_path / "register", {key.public}), datetime.now(UTC))
    recheck = partial(recheck_fit, place=place_of(tmp_path / "fit", tmp_path / "fresh"))
    again = partial(submissions.again, tmp_path / "again", tmp_path / "fresh")
    found = judged(Bundle.open(tmp_path / "a.zip"), board=board, rerun=1, recheck=recheck, again=again)
    assert found.verdict is not None, found.refused
    assert {row.draw for row in found.verdict.rows.values()} == {1}
    assert "re-run" in tiers(found).values()


def test_folders_with_other_people_are_not_joined(handed: Handed, tmp_path: Path) -> None:
    theirs = of(tmp_path / "theirs", handed.cache, Secret.of_seed(8))
    run(spec(["identity"], controls=False, choice=CHOICE), theirs)
    into = Results(tmp_path / "joined")
    done = merge([handed.results, theirs.results], into)
    assert any("another run secret drew the people" in reason for reason in done.reasons("refused"))
    assert {cast(Any, record.dataset).fingerprint for record in records(into)} == {
        cast(Any, record.dataset).fingerprint for record in records(handed.results)
    }


def test_one_folders_people_go_with_its_records(handed: Handed, tmp_path: Path) -> None:
    into = Results(tmp_path / "joined")
    into.keep_secret(Secret.of_seed(9))
    merge([handed.results], into)
    (mine,) = {cast(Any, record.dataset).fingerprint for record in records(into)}
    assert opened(CHOICE, replace(place_of(tmp_path, handed.cache), results=into))[1].fingerprint == mine
