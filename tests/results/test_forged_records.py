"""A record speaks of what its key was made from, and a signature of who says so."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from made.board_records import dataset, guesswork, record
from made.cells import cell, place

from bench.cli import main
from bench.plugins.spec import UsageError
from bench.results import signed_json
from bench.results.records import NewerRecordError, Record, RecordError, dumps, loads, proved
from bench.results.results import Results
from bench.results.signed_json import content_key
from bench.results.signing_key import SigningKey, make_pair, read_public
from bench.runs.plan import RUNS, Planned, standing, to_run
from leaderboard.site import build

NAME = "cells/d/c/contrastive.json"


def made(**more: Any) -> Record:
    return record("dp-simple", "contrastive", {"guesswork": guesswork(2)}, cell="d/c", **more)


def content(**more: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(dumps(made(**more)))
    return found


def rewrite(folder: Path, content: dict[str, Any], name: str = NAME) -> Results:
    """Put content there as a forger does who knows how digests are made."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(signed_json.written(signed_json.attest(content, "record")))
    return Results(folder)


def refusal(results: Results) -> str:
    (found,) = (found for _, found in results.records())
    assert isinstance(found, RecordError)
    return str(found)


def put(content: dict[str, Any], *path: str, value: object) -> dict[str, Any]:
    inner = content
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    return content


def test_a_forger_who_alters_nothing_is_believed(tmp_path: Path) -> None:
    (found,) = (found for _, found in rewrite(tmp_path, content()).records())
    assert found == proved(made())


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("key",), "0" * 32, "its key must be the hash of its inputs"),
        (("inputs", "method"), "syfer", "its key must be the hash of its inputs"),
        (("method", "name"), "syfer", "its inputs give method as 'dp-simple', the record as 'syfer'"),
        (("method", "parameters"), {"scale": 1.0}, "give method parameters"),
        (("method", "code"), "feed", "give method code"),
        (("attack", "name"), "relational", "give attack as"),
        (("attack",), None, "give attack as"),
        (("evaluator",), "relational", "give evaluator as"),
        (("dataset", "fingerprint"), "f00", "give data as"),
        (("dataset", "public_fingerprint"), "f00", "give public data as"),
        (("dataset", "rows", "private"), 30000, "give rows as"),
        (("dataset",), None, "no data that they could come from"),
        (("device",), "cuda", "give device as"),
        (("kind",), "utility", "give kind as"),
        (("choice", "preset"), "paper", "give preset name as"),
        (("dataset", "name"), "mimic", "give data set as"),
        (("dataset", "public"), "nih", "give public data set as"),
        (("choice", "limit"), 5, "differ in limit"),
        (("choice", "seed"), 1, "differ in seed"),
        (("cell",), "d/other", "it says that it is cells/d/other/contrastive.json"),
        (("metrics", "guesswork", "written"), "other", "differ in metric guesswork, metric other"),
    ],
)
def test_what_contradicts_its_inputs_is_forged(
    tmp_path: Path, path: tuple[str, ...], value: object, message: str
) -> None:
    told = refusal(rewrite(tmp_path, put(content(), *path, value=value)))
    assert message in told
    assert "forged" in told
    assert "contrastive.json" in told


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dataset", None), ("dataset", ""), ("dataset", "]"), ("preset", None), ("seed", "0"), ("seed", True),
        ("limit", "5"), ("limit", False), ("features", 1), ("balance", "yes"),
    ],
)  # fmt: skip
def test_a_choice_of_data_that_is_none_is_refused(tmp_path: Path, name: str, value: object) -> None:
    """Also where its inputs say the same: a writer of both would stop the board of everybody else."""
    told = put(put(content(), "choice", name, value=value), "inputs", "choice", name, value=value)
    told["key"] = content_key(told["inputs"])
    assert f"choice must give {name} as" in refusal(rewrite(tmp_path, told))


@pytest.mark.parametrize(
    "path", [("keys",), ("choice", "seed"), ("scores", "guesswork", "n"), ("dataset", "rows", "private")]
)
def test_a_number_that_no_table_holds_is_refused(tmp_path: Path, path: tuple[str, ...]) -> None:
    assert "less than or equal to" in refusal(rewrite(tmp_path, put(content(), *path, value=10**30)))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("scores", "guesswork", "value"), 0.5, "guesses must be 1 to inf, got 0.5"),
        (("scores", "guesswork", "n"), -7, "greater than or equal to 0"),
        (("keys",), -4, "greater than or equal to 0"),
        (("dataset", "rows", "private"), -160, "greater than or equal to 0"),
        (("dataset", "shape"), [0], "greater than or equal to 1"),
        (("seconds", "wall"), -1e300, "greater than or equal to 0"),
        (("scores", "guesswork", "better"), "lower", "its direction and its unit must be those of its metric"),
        (("metrics", "guesswork", "unit"), "AUC", "its direction and its unit must be those of its metric"),
        (("status",), "failed", "a record that is failed must have no figures"),
    ],
)
def test_numbers_that_cannot_be_are_refused(tmp_path: Path, path: tuple[str, ...], value: object, message: str) -> None:
    changed = put(content(), *path, value=value)
    changed["scores"]["guesswork"]["low"] = 0.1  # below any value that is tried
    assert message in refusal(rewrite(tmp_path, changed))


@pytest.mark.parametrize("name", ["dataset", "preset", "seed", "features", "balance"])
def test_a_choice_of_data_that_lacks_an_option_is_refused(tmp_path: Path, name: str) -> None:
    told = content()
    del told["choice"][name], told["inputs"]["choice"][name]
    told["key"] = content_key(told["inputs"])
    assert f"choice must give {name} as" in refusal(rewrite(tmp_path, told))


def test_a_limited_record_does_not_pass_for_a_whole_one(tmp_path: Path) -> None:
    assert "differ in limit" in refusal(rewrite(tmp_path, put(content(limit=5), "choice", "limit", value=None)))


@pytest.mark.parametrize("name", ["cells/d/other/contrastive.json", "cells/d/c/relational.json"])
def test_a_record_in_another_place_is_refused(tmp_path: Path, name: str) -> None:
    assert "forged, or was moved" in refusal(rewrite(tmp_path, content(), name))


def test_a_record_without_data_has_no_figures(tmp_path: Path) -> None:
    lost = record("dp-simple", cell="d/c", dataset=None, status="failed", reason="x", phase="data")
    results = Results(tmp_path)
    kept = results.keep(lost, {})
    assert results.record("d/c", "contrastive") == kept
    scored = put({**json.loads(dumps(lost)), "status": "ok"}, "scores", value=content()["scores"])
    assert "no data" in refusal(rewrite(tmp_path, {**scored, "metrics": content()["metrics"]}))


@pytest.mark.parametrize("schema", [1, 2, 3, None, "4", True, 4.5])
def test_other_schemas_are_refused_in_words(schema: object) -> None:
    with pytest.raises(RecordError, match=r"x\.json: schema: record schema 4 expected, got .*makes it anew"):
        loads(json.dumps({"schema": schema}), "x.json")


def test_a_newer_record_is_never_run_over(tmp_path: Path) -> None:
    where, planned = place(tmp_path), Planned("throughput", None, ("throughput",))
    results, name = where.results, f"cells/{cell().folder}/throughput.json"
    path = results.root / name
    path.parent.mkdir(parents=True)
    path.write_text('{"schema": 5, "more": "than this version knows"}')
    picture = path.with_name("throughput--new-0123456789ab.png")
    picture.write_bytes(b"of the newer record")
    found = standing(results, cell(), planned, None, "none")
    assert found.state == "newer"
    assert "record schema 5" in found.reason
    assert not any(to_run(found, overwrite) for overwrite in RUNS)
    with pytest.raises(NewerRecordError, match="left alone"):
        results.keep(record("identity", "throughput", kind="throughput", cell=cell().folder), {})
    assert path.read_text() == '{"schema": 5, "more": "than this version knows"}'
    assert picture.read_bytes() == b"of the newer record"


def test_a_run_says_what_is_newer_and_does_the_rest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", "--method", "identity", "--dataset", "digits", "--preset", "smoke", "--attack", "chance",
             "--jobs", "1", "--metric", "nearest-neighbour-distance", "--metric", "reid-auc", "--device", "cpu",
             "--limit", "60", "--no-site", "--results", str(tmp_path)]  # fmt: skip
    key, public = make_pair(tmp_path / "mine")
    name = f"cells/{cell(limit=60).folder}/reidentification-chance.json"
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_text('{"schema": 5}')
    assert main([*words, "--sign", str(tmp_path / "mine"), "--overwrite", "always"]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "1 were written by a later version and stay" in out
    assert path.read_text() == '{"schema": 5}'
    rest = {name: found for name, found in Results(tmp_path).records() if isinstance(found, Record)}
    assert [found.signature and found.signature.public_key for found in rest.values()] == [key.public]
    path.unlink()
    assert list(Results(tmp_path, trusted=frozenset({read_public(public)})).problems()) == []
    hers = make_pair(tmp_path / "hers")[0]
    assert main([*words, "--sign", str(tmp_path / "hers"), "--overwrite", "never"]) == 0
    assert "1 are not signed by this key and stay" in capsys.readouterr().out
    signers = {found.signature.public_key for _, found in Results(tmp_path).records()}  # type: ignore[union-attr]
    assert signers == {key.public, hers.public}


def test_signed_records_are_read_and_altered_ones_refused(tmp_path: Path) -> None:
    key = make_pair(tmp_path / "key")[0]
    results = Results(tmp_path)
    kept = results.keep(made(), {}, key)
    assert kept.signature is not None
    assert results.record("d/c", "contrastive") == kept
    assert Results(tmp_path, trusted=frozenset({key.public})).record("d/c", "contrastive") == kept
    altered = json.loads((tmp_path / NAME).read_text())
    altered["scores"]["guesswork"]["value"] = 300.0
    signature = altered["signature"]
    # The digest is made anew over all of it, as a forger does; the signature cannot be.
    bare = {name: value for name, value in altered.items() if name != "digest"}
    digest = signed_json.hashlib.sha256(b"veil-bench record\n" + signed_json.written(bare)).hexdigest()
    (tmp_path / NAME).write_bytes(signed_json.written({**bare, "digest": digest}))
    assert altered["signature"] == signature
    assert "its signature does not verify" in refusal(results)


def test_whose_signature_it_must_be_is_the_readers_word(tmp_path: Path) -> None:
    mine, hers = (make_pair(tmp_path / name)[0] for name in ("mine", "hers"))
    trusting = Results(tmp_path, trusted=frozenset({mine.public}))
    for signer, message in ((None, "signed by no key"), (hers, f"signed by the key {hers.public[:16]}")):
        Results(tmp_path).keep(made(), {}, signer)
        assert message in refusal(trusting)
        assert isinstance(Results(tmp_path).record("d/c", "contrastive"), Record)
    trusting.keep(made(), {}, mine)
    assert isinstance(trusting.record("d/c", "contrastive"), Record)


@pytest.mark.parametrize(
    "signature",
    [{}, [], "x", {"public_key": "00", "value": "00"}, {"public_key": "f" * 64, "value": "0" * 128}, {"value": None}],
)
def test_what_is_no_signature_is_refused(signature: object) -> None:
    bare = {**content(), "signature": signature}
    del bare["digest"]
    digest = signed_json.hashlib.sha256(b"veil-bench record\n" + signed_json.written(bare)).hexdigest()
    with pytest.raises(RecordError, match="signature does not verify"):
        loads(signed_json.written({**bare, "digest": digest}).decode(), "x.json")


def test_a_signature_of_one_kind_of_file_is_none_of_another(tmp_path: Path) -> None:
    key = make_pair(tmp_path / "key")[0]
    text = signed_json.written(signed_json.attest({"a": 1}, "panel", key))
    assert signed_json.read(text, "panel") == {"a": 1}
    with pytest.raises(signed_json.AlteredError):
        signed_json.read(text, "record")


def test_keygen_writes_a_pair_once_and_for_its_owner(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "key"
    assert main(["keys", "new", str(path)]) == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    key = SigningKey.read(path)
    assert key.public == read_public(tmp_path / "key.pub")
    told = capsys.readouterr().out
    assert key.public in told
    before = path.read_bytes()
    assert main(["keys", "new", str(path)]) == 2
    assert "never overwritten" in capsys.readouterr().err
    assert path.read_bytes() == before
    assert "secret" not in repr(key)


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    make_pair(tmp_path / "key")
    (tmp_path / "key").chmod(0o640)
    with pytest.raises(UsageError, match="chmod 600"):
        SigningKey.read(tmp_path / "key")


@pytest.mark.parametrize("text", ["", "no key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"])
def test_what_is_no_key_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "key").write_text(text)
    (tmp_path / "key").chmod(0o600)
    with pytest.raises(UsageError, match="cannot read the signing key"):
        SigningKey.read(tmp_path / "key")
    with pytest.raises(UsageError, match="cannot read the public key"):
        read_public(tmp_path / "key")


def test_the_leaderboard_names_what_it_refuses_and_shows_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key, public = make_pair(tmp_path / "key")
    results = Results(tmp_path / "r")
    results.keep(made(), {}, key)
    results.keep(record("mosaic", "contrastive", {"guesswork": guesswork(9)}, cell="d/unsigned"), {})
    forged = put(content(), "method", "name", value="syfer")
    rewrite(results.root, {**forged, "cell": "d/forged"}, "cells/d/forged/contrastive.json")
    words = ["leaderboard", "build", "--results", str(results.root)]
    assert main(words) == 1
    told = capsys.readouterr()
    assert told.err.count("refused: ") == 1
    assert "d/forged/contrastive.json" in told.err
    page = (results.root / "site" / "index.html").read_text()
    assert "mosaic" in page
    assert "syfer" not in page
    assert main([*words, "--trusted", str(public)]) == 1
    assert "signed by no key" in capsys.readouterr().err
    page = (results.root / "site" / "index.html").read_text()
    assert "dp-simple" in page
    assert "mosaic" not in page


def test_what_the_pages_offer_for_download_proves_itself_too(tmp_path: Path) -> None:
    results = Results(tmp_path / "r")
    kept = results.keep(made(), {}, make_pair(tmp_path / "key")[0])
    build(results, tmp_path / "site")
    (offered,) = (tmp_path / "site" / "api" / "records").rglob("*.json")
    assert loads(offered.read_text(), "offered") == kept
    assert offered.read_bytes() == (tmp_path / "r" / NAME).read_bytes()


def test_restricted_data_are_no_exception(tmp_path: Path) -> None:
    told = put(content(dataset=dataset(shareable=False)), "dataset", "fingerprint", value="f00")
    assert "give data as" in refusal(rewrite(tmp_path, told))
