"""Keys and splits of a row follow from a draw that exists only once its code, parameters and data are committed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from made import submissions
from made.submissions import METHOD, Handed, forged, judged, place_of, run, spec, tiers

from bench.api import boards
from bench.exchange import check, draws
from bench.exchange.bundle_tiers import Board, Verified
from bench.exchange.draws import DrawError, handed_out, registered
from bench.exchange.submit import submit
from bench.plugins.spec import UsageError
from bench.randomness import Secret
from bench.results import signed_json
from bench.results.bundle import Bundle
from bench.results.records import Record
from bench.results.signing_key import SigningKey, make_pair
from bench.runs.run_spec import RunSpec


@dataclass(frozen=True)
class Answered:
    """An author's commitment, the board's answer, and the bundle that answers it."""

    handed: Handed
    register: Path
    key: SigningKey
    draw: Path
    commitment: Path

    @property
    def board(self) -> Board:
        return Board(registered(self.register, {self.key.public}), datetime.now(UTC))


def seeded(wanted: RunSpec, seed: int) -> RunSpec:
    return replace(wanted, choices=tuple(replace(choice, seed=seed) for choice in wanted.choices))


def committed(folder: Path, cache: Path, wanted: RunSpec, name: str = "mine.json") -> Path:
    draws.commit([wanted], place_of(folder / "elsewhere", cache), folder / name)
    return folder / name


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Answered:
    folder = tmp_path_factory.mktemp("drawn")
    key, _ = make_pair(folder / "board.key")
    wanted, where = spec([METHOD], controls=True), place_of(folder / "results", folder / "cache")
    commitment = committed(folder, where.cache, wanted)
    path, made = draws.draw(commitment, folder / "register", key)
    ready = seeded(wanted, made.seed)
    draws.begin(path, [ready], where.results)
    run(ready, where)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(check, "required", submissions.few)
        assert submit(where.results, folder / "a.bundle.zip")[1] == ()
    handed = Handed(folder, where.results, Bundle.open(folder / "a.bundle.zip"), where.cache)
    return Answered(handed, folder / "register", key, path, commitment)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "required", submissions.few)


def refusal(found: Verified) -> str:
    assert found.verdict is None
    return "; ".join(map(str, found.refused))


def test_a_row_of_a_draw_is_checked_without_anything_disclosed(answered: Answered) -> None:
    bundle = answered.handed.bundle
    assert not {"run-secret", "cell-secrets.json"} & bundle.files.keys()
    found = judged(bundle, board=answered.board)
    assert set(tiers(found).values()) == {"arithmetic-checked"}
    assert found.verdict is not None
    assert {row.draw for row in found.verdict.rows.values()} == {1}
    without = judged(bundle)
    assert without.verdict is not None
    assert {row.draw for row in without.verdict.rows.values()} == {None}  # no board has said that it is one of its own


def test_the_best_of_many_run_secrets_is_not_to_be_had(answered: Answered, tmp_path: Path) -> None:
    """Twenty secrets gave 44 guesses for 28: one commitment gets one draw, and all others stand in the register."""
    with pytest.raises(UsageError, match="answered by draw 1: a commitment gets one draw"):
        draws.draw(answered.commitment, answered.register, answered.key)
    lucky = Secret.of_seed(77)
    where = place_of(tmp_path / "lucky", answered.handed.cache)
    where.results.keep_secret(lucky)
    drawn = draws.read(answered.draw).draw
    run(seeded(spec([METHOD], controls=True), drawn.seed), where)
    where.results.draw_file.write_bytes(answered.draw.read_bytes())
    assert submit(where.results, tmp_path / "lucky.zip")[1] == ()
    bundle = Bundle.open(tmp_path / "lucky.zip")
    assert "another secret than the one that is disclosed" in refusal(judged(bundle, board=answered.board))


def test_draws_that_were_never_answered_are_counted(answered: Answered, tmp_path: Path) -> None:
    register = tmp_path / "register"
    for number in range(3):
        path = committed(tmp_path, answered.handed.cache, spec([METHOD], controls=False), f"{number}.json")
        content = signed_json.read(path.read_bytes(), draws.COMMITTED)
        content["made_by"] = f"try {number}"  # as at another second
        path.write_bytes(signed_json.written(signed_json.attest(content, draws.COMMITTED)))
        draws.draw(path, register, answered.key)
    known = registered(register, {answered.key.public})
    (row,) = {(row.origin, row.code, row.dataset, row.preset) for one in known for row in one.draw.commitment.rows}
    origin, code, *where = row
    handed = handed_out(known)
    assert handed == {("name", METHOD, origin, *where): {1, 2, 3}, ("code", code, *where): {1, 2, 3}}
    (register / "0002.draw.json").unlink()
    with pytest.raises(DrawError, match="the register is not whole"):
        registered(register)


def altered(answered: Answered, change: Callable[[dict[str, Any]], object], signer: SigningKey | None) -> Bundle:
    content: dict[str, Any] = signed_json.read(answered.draw.read_bytes(), draws.DRAWN)
    change(content)
    text = signed_json.written(signed_json.attest(content, draws.DRAWN, signer))
    return forged(answered.handed, {}, **{"draw.json": text})


def test_forged_unknown_and_late_draws_are_refused(answered: Answered, tmp_path: Path) -> None:
    mine, _ = make_pair(tmp_path / "mine.key")
    board = answered.board
    own = altered(answered, lambda draw: draw.update(value="00" * 32), mine)
    assert "is not in the board's register" in refusal(judged(own, board=board))
    assert "is signed by no key" in refusal(judged(altered(answered, lambda draw: None, None), board=board))
    edited = answered.draw.read_bytes().replace(b'"number": 1', b'"number": 9')
    assert "altered" in refusal(judged(forged(answered.handed, {}, **{"draw.json": edited}), board=board))
    late = replace(board, received=datetime.now(UTC) + timedelta(days=91))
    assert "had to be answered by" in refusal(judged(answered.handed.bundle, board=late))
    with pytest.raises(DrawError, match="none of the board's"):
        registered(answered.register, {mine.public})


def test_what_was_not_committed_is_refused(answered: Answered) -> None:
    def faster(record: dict[str, Any]) -> None:
        record["inputs"]["evaluator code"] = "0" * 16

    made = forged(answered.handed, {"reidentification-chance.json": faster})
    assert "was not committed before draw 1" in refusal(judged(made, board=answered.board))
    record = next(each for _, each in answered.handed.results.records() if isinstance(each, Record))
    other = record.model_copy(update={"choice": {**record.choice, "seed": 3}})
    faults = [reason for _, reason in draws.read(answered.draw).draw.faults({"a": other})]
    assert f"its seed is 3, and draw 1 gives {record.seed}" in faults
    (name,) = (each for each in answered.handed.bundle.files if each.endswith("throughput.json"))
    without = forged(answered.handed, {}, **{name: None})
    assert "throughput was committed before draw 1, and is not in the bundle" in refusal(
        judged(without, board=answered.board)
    )


@pytest.mark.parametrize(
    ("methods", "attacks", "said"),
    [(["dp-simple"], ["chance"], "without"), ([METHOD], ["moments"], "without reidentification-moments")],
)
def test_a_run_does_what_was_committed_and_no_more(
    answered: Answered, tmp_path: Path, methods: Sequence[str], attacks: Sequence[str], said: str
) -> None:
    seed = draws.read(answered.draw).draw.seed
    results = place_of(tmp_path / "r", answered.handed.cache).results
    wanted = seeded(spec(methods, controls=False, attacks=attacks), seed)
    with pytest.raises(UsageError, match=said):
        draws.begin(answered.draw, [wanted], results)
    with pytest.raises(UsageError, match="without this seed"):
        draws.begin(answered.draw, [spec([METHOD], controls=False)], results)
    assert results.commitment is None


def test_a_folder_with_a_secret_of_its_own_answers_no_draw(answered: Answered, tmp_path: Path) -> None:
    results = place_of(tmp_path / "r", answered.handed.cache).results
    results.keep_secret(Secret.of_seed(1))
    wanted = seeded(spec([METHOD], controls=False), draws.read(answered.draw).draw.seed)
    with pytest.raises(UsageError, match="has a run secret of its own"):
        draws.begin(answered.draw, [wanted], results)


@pytest.mark.parametrize(
    ("time", "said"), [("2099-01-01", "must be a time of the past"), ("soon", "must be a date or time, such as")]
)
def test_when_a_bundle_came_is_a_time_of_the_past(answered: Answered, tmp_path: Path, time: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        boards.verify(
            answered.handed.bundle.path, place_of(tmp_path / "r", answered.handed.cache), register=answered.register,
            received=time,
        )  # fmt: skip
