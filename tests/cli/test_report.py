from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from made.board_records import dataset, record
from made.cells import cell, place
from safetensors.torch import load_file, save_file

from bench.api import reports
from bench.cli import main
from bench.data.candidates import SEVERAL
from bench.results.reason import UNSAID, withheld
from bench.runs.release_files import write_sums
from bench.types import NotApplicable
from bench.workbench.workbench import Workbench
from leaderboard.board import rows
from leaderboard.declaration import Declaration
from leaderboard.risk_report import Claim


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a release of 160 digits, `out`, and its table of links, `out-links.csv`."""
    folder = tmp_path_factory.mktemp("released")
    (folder / "some.csv").write_text("row\n" + "".join(f"{row}\n" for row in range(0, 1600, 10)))
    words = ["release", "--method", "dp-simple[scale=0.5]", "--dataset", "digits", "--rows", str(folder / "some.csv")]
    words += ["--results", str(folder / "results"), "--out", str(folder / "out")]
    assert main([*words, "--accept", "a test", "--ledger", str(folder / "ledger")]) == 0
    return folder


def opened(released: Path, tmp_path: Path, method: str, path: Path | None = None, **more: object) -> Workbench:
    source = f"imported[path={path or released / 'out'},links={released / 'out-links.csv'}]"
    chosen = cell(method, rows_of=source, this_release=True, keys=3, **more)
    return Workbench.open(chosen, place(tmp_path))


def test_the_first_key_judges_the_rows_of_the_folder_and_others_are_fresh(released: Path, tmp_path: Path) -> None:
    bench = opened(released, tmp_path, "dp-simple[scale=0.5]")
    folder = load_file(released / "out/release.safetensors")["samples"]
    scheme = bench.scheme()
    first, second = (bench.sealed(scheme, number) for number in (0, 1))
    known = {row.numpy().tobytes() for row in folder}
    assert {row.numpy().tobytes() for row in first.release.samples} == known
    assert not {row.numpy().tobytes() for row in second.release.samples} & known
    assert first.links is not None
    raw = bench.private.samples[first.links[:, 0]].flatten(1)
    near = torch.nn.functional.cosine_similarity(raw, first.release.samples[first.links[:, 1]].flatten(1))
    assert (
        float(near.mean()) > 8 / 28 / 160**0.5
    )  # 8 deviations of chance: links lead to the rows that were made of them
    with pytest.raises(NotApplicable, match="with its owner"):
        bench.key(scheme, 0)
    bench.key(scheme, 1)


def test_reference_methods_are_judged_by_their_own_releases(released: Path, tmp_path: Path) -> None:
    bench = opened(released, tmp_path, "identity")
    made = bench.sealed(bench.scheme(), 0).release.samples
    raw = {row.numpy().tobytes() for row in bench.private.samples}
    assert {row.numpy().tobytes() for row in made} == raw


def test_a_release_of_everybody_can_be_judged(tmp_path: Path) -> None:
    """No one is left for control and test rows, and pairs are scored all the same."""
    count = 1797
    folder = tmp_path / "all"
    folder.mkdir()
    np.save(folder / "release.npy", np.random.default_rng(0).normal(size=(count, 1, 28, 28)).astype(np.float32))
    links = "released,row\n" + "".join(f"{row},{row}\n" for row in range(count))
    (folder / "links.csv").write_text(links)
    chosen = cell("blur", rows_of=f"imported[path={folder}]", this_release=True, public="none")
    bench = Workbench.open(chosen, place(tmp_path))
    assert {part: bench.record.rows[part] for part in ("private", "control", "test")} == {
        "private": count, "control": 0, "test": 0,
    }  # fmt: skip
    assert len(bench.sealed(bench.scheme(), 0).release.samples) == count


def test_a_report_is_made_of_a_release_and_its_data(released: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "report", str(released / "out"), "--dataset", "digits", "--preset", "smoke", "--keys", "8", "--isolation",
        "none", "--attack", "nearest-neighbour", "--attack", "dcr", "--eve", "same-image", "--eve", "other-study",
        "--results", str(released / "report-results"), "--max-risk", "0.09", "--ledger", str(released / "ledger"),
    ]  # fmt: skip
    assert main(words) == 3
    printed = capsys.readouterr().out
    assert "maximum risk, same-image: above. The risk of the person found most surely is above 0.09" in printed
    assert "not measured: profile other-study: " in printed
    assert "people with several images" in printed
    report = json.loads((released / "out-report/report.json").read_text())
    assert {each["subject"] for each in report["measured"]} == {"this release", "twin"}
    assert {each["attack"] for each in report["tried"]} == {"nearest-neighbour", "dcr"}
    assert report["rows"] == 160
    assert report["earlier"] == ["The ledger has no earlier release of these people."]
    (missing,) = report["missing"]  # it is unknown who is who, and so who has another image
    assert missing.startswith("profile other-study was not measured: ")
    annex = (released / "out-report/annex.html").read_text()
    assert annex.count("data:image/png;base64,") == 3 * 8
    assert "base64" not in (released / "out-report/report.html").read_text() + json.dumps(report)
    form = (released / "out-report/declaration.yaml").read_text()
    (released / "filled.yaml").write_text(form.replace("recipient: ''", "recipient: 'a laboratory'"))
    assert main([*words, "--declare", str(released / "filled.yaml")]) == 3  # nothing is measured again
    assert "a laboratory" in (released / "out-report-2/report.html").read_text()
    assert "a laboratory" not in (released / "out-report/report.html").read_text()
    assert not (released / "out-report-2/declaration.yaml").exists()


def test_another_image_that_could_not_be_measured_is_no_gap_only_where_hardly_anyone_has_one() -> None:
    """A profile that failed, for whatever reason, lets no release pass."""
    data = dataset("own", rows={"private": 105}, subjects={"private": 100})
    asked = reports.Asked(None, None, reports.PROFILES, {}, Declaration(), Path())
    very = {"profile same-image": SimpleNamespace(data=data)}
    few = f"--eve other-study needs {SEVERAL}, and own has 4 of them"

    def missing(why: str, **more: object) -> list[str]:
        rows = {name: SimpleNamespace(data=data.model_copy(update=more)) for name in very}
        return list(reports._missing(asked, rows, {"profile other-study": why}))  # type: ignore[arg-type]

    assert missing(few) == []
    assert missing("a disk was full") == ["profile other-study was not measured: a disk was full"]
    assert len(missing(few, rows={"private": 120})) == 1
    assert len(missing(few, subjects={})) == 1


def test_the_owner_s_report_has_the_claim_as_the_release_publishes_it() -> None:
    hidden = Claim(unit="image", epsilon=1.0, derived=1.0, delta=0.0, composition="", implementation=UNSAID, shown="")
    told = {"claim": {"basis": "noise on a grid", "assumptions": "each row once"}}
    assert reports._claim_in_full(hidden, told).implementation == "noise on a grid. Assumed: each row once"
    assert reports._claim_in_full(hidden, {"claim": None}) == hidden


def test_a_second_release_of_one_configuration_is_told_apart(released: Path, tmp_path: Path) -> None:
    """The ledger knows each by its release.json, and a report says what came before and after."""
    words = ["release", "--method", "mosaic[epsilon=1]", "--dataset", "digits", "--rows", str(released / "some.csv")]
    words += ["--results", str(tmp_path / "results"), "--accept", "a test", "--ledger", str(tmp_path / "ledger")]
    said = {}
    for out in "ab":
        assert main([*words, "--out", str(tmp_path / out)]) == 0
    for out in "ab":
        asked = reports.Asked(tmp_path / out, None, (), {}, Declaration(), tmp_path, tmp_path / "ledger")
        digest = hashlib.sha256((tmp_path / out / "release.json").read_bytes()).hexdigest()
        said[out] = reports._earlier(asked, tmp_path / out, digest)
    assert said["a"][0] == "The ledger has no earlier release of these people."
    assert said["a"][1].startswith("1 later release has some of these people")
    assert said["b"][0].startswith("release 2 of the same people (up to 160 of 160 shared)")
    assert "does not have this one" in reports._earlier(asked, tmp_path / out, "0" * 64)[0]


def test_a_configuration_is_rated_before_its_release(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = ["--dataset", "digits", "--results", "results"]
    words = ["report", "--before", "--method", "mosaic[cell=2]", *data, "--preset", "smoke", "--isolation", "none"]
    assert main([*words, "--attack", "nearest-neighbour", "--eve", "same-image", "--max-risk", "0.5"]) == 3
    printed = capsys.readouterr().out
    assert "missing for the risk of every person: profile other-study was not asked for" in printed
    assert "Verdict: " in printed
    report = json.loads((tmp_path / "mosaic-report/report.json").read_text())
    assert {each["subject"] for each in report["measured"]} == {"twin"}
    assert report["release"] == ""
    release = ["release", "--method", "mosaic[cell=2]", *data, "--out", "out", "--ledger", "ledger", "--dry-run"]
    assert main(release) == 3
    said = capsys.readouterr().out
    assert "no rated verdict" not in said
    assert "the verdict on this method on these data is: " in said
    assert main(["report", "--before", *data]) == 2
    assert "name it by --method" in capsys.readouterr().err


def test_a_verdict_under_other_public_people_is_none_of_this_configuration(
    released: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--method", "dp-simple", "--dataset", "digits", "--results", str(tmp_path / "results")]
    run = ["run", *words, "--preset", "smoke", "--controls", "--no-site", "--attack", "nearest-neighbour"]
    assert main([*run, "--isolation", "none"]) == 0
    capsys.readouterr()
    rows = ["--rows", str(released / "some.csv"), "--out", str(tmp_path / "out"), "--ledger", str(tmp_path / "ledger")]
    assert main(["release", *words, *rows, "--dry-run"]) == 3
    said = " ".join(capsys.readouterr().out.split())
    assert "no rated verdict" in said
    assert "other public people than those whom --rows leaves out" in said


def test_reasons_of_single_metrics_are_read_from_the_log_for_the_owner(tmp_path: Path) -> None:
    here = place(tmp_path)
    made = record("k-same", "needle", metrics={}).model_copy(
        update={"not_applicable": {"top-1": withheld("not-applicable"), "reid-auc": "said already"}}
    )
    log = here.results.log(made.cell, made.evaluator)
    log.parent.mkdir(parents=True)
    log.write_text("no figure of top-1: 2 people of one ward\n")
    (row,) = rows([made])
    assert [why for _, why in reports._withheld_reasons(row, here)] == ["2 people of one ward"]


def test_the_owner_s_report_has_the_reason_that_a_record_withholds(tmp_path: Path) -> None:
    here = place(tmp_path)
    made = record("k-same", "needle", status="not-applicable", code="not-applicable", phase="attack", metrics={},
                  reason=withheld("not-applicable"))  # fmt: skip
    assert reports._in_full(made, here) == made  # there is no log
    log = here.results.log(made.cell, made.evaluator)
    log.parent.mkdir(parents=True)
    log.write_text("a print\nTraceback\nbench.types.NotApplicable: 2 people, and k is 5\n")
    assert reports._in_full(made, here).reason == "makes no sense here: 2 people, and k is 5"
    said = made.model_copy(update={"reason": "in full already"})
    assert reports._in_full(said, here) == said


def test_a_folder_that_changed_since_its_release_is_refused(
    released: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(released / "out", tmp_path / "out")
    (tmp_path / "out/README.md").write_text("other words")
    (tmp_path / "out/note.txt").write_text("more")
    words = ["report", str(tmp_path / "out"), "--links", str(released / "out-links.csv"), "--dataset", "digits"]
    assert main(words) == 2
    assert "not as it was released: put back README.md, note.txt, or" in capsys.readouterr().err


def test_a_new_list_of_hashes_does_not_make_changed_rows_the_released_ones(
    released: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(released / "out", tmp_path / "out")
    words = ["report", str(tmp_path / "out"), "--links", str(released / "out-links.csv"), "--dataset", "digits"]
    (tmp_path / "out/SHA256SUMS").unlink()
    assert main(words) == 2
    assert "not as it was released: put back SHA256SUMS" in capsys.readouterr().err
    rows = load_file(tmp_path / "out/release.safetensors")
    save_file({**rows, "samples": rows["samples"] + 1}, tmp_path / "out/release.safetensors")
    write_sums(tmp_path / "out")
    assert main(words) == 2
    assert "not as it was released: put back release.safetensors" in capsys.readouterr().err


def test_the_links_of_another_release_are_refused(
    released: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They lead to other people: every attack would seem to fail."""
    links = (released / "out-links.csv").read_text()
    own = hashlib.sha256((released / "out/release.json").read_bytes()).hexdigest()
    assert links.count(own) == 160
    (tmp_path / "other.csv").write_text(links.replace(own, "0" * 64))
    words = ["report", str(released / "out"), "--dataset", "digits", "--links", str(tmp_path / "other.csv")]
    assert main(words) == 2
    assert "of another release than the folder" in capsys.readouterr().err
    (tmp_path / "other.csv").write_text(links.replace(f",{own}", "").replace(",release_sha256", ""))
    assert main(words) == 2
    assert "names no release: give the table" in capsys.readouterr().err
    source = f"imported[path={released / 'out'},links={tmp_path / 'other.csv'}]"
    (tmp_path / "other.csv").write_text(links.replace(own, "0" * 64))
    assert main(["check", source, "--dataset", "digits"]) != 0
    assert "of another release than the folder" in "".join(capsys.readouterr())


def test_what_is_no_release_is_refused(released: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "links.csv").write_text("released,row\n0,0\n")
    assert main(["report", str(tmp_path), "--links", str(tmp_path / "links.csv")]) == 2
    assert "a folder that `bench release` wrote" in capsys.readouterr().err
    assert main(["report", str(released / "out"), "--links", str(tmp_path / "none.csv")]) == 2
    assert "`bench release --links-out` writes it" in capsys.readouterr().err
    inside = str(released / "out" / "report")
    assert main(["report", str(released / "out"), "--out", inside]) == 2
    assert "must lie outside" in capsys.readouterr().err
    assert main(["run", "--method", "identity", "--this-release"]) == 2
    assert "name it, as in imported[path=FOLDER]" in capsys.readouterr().err


def test_a_report_on_several_seeds_is_refused(released: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["report", str(released / "out"), "--dataset", "digits", "--preset", "smoke", "--seed", "0-1"]
    assert main([*words, "--results", str(released / "seeds"), "--ledger", str(released / "ledger")]) == 2
    assert "a report is on one data set and one seed: got 2 choices" in capsys.readouterr().err


def test_a_report_without_a_pdf_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    from bench.cli.commands.report import _print

    for names, said in ((("report.html",), True), (("report.html", "report.pdf"), False)):
        of = SimpleNamespace(concluded=[], missing=[])
        _print(reports.Reported(of, [Path(name) for name in names], {}, 0, {}), fill_in=False)  # type: ignore[arg-type]
        assert ("no PDF: WeasyPrint" in capsys.readouterr().out) == said
