"""The strongest attack on each method by what Eve holds, attributes and reconstruction, as tables.

    bench run --dataset nih --eve other-study --preset first-look --method identity ... --results profiles
    python tests/benchmarks/attacks_by_profile.py profiles [--board] [--sheet rebuilt.png --dataset nih]

Tables of each data set, profiles of Eve by method: the largest ReID AUC over attacks (over people under other-study)
with its interval, and top-1 and guesses of the same attack. Then attributes, reconstructions, and processor seconds.
What does not apply is a dash, with its reason below the table. The sheet has four raw images of the data set and below
them what Eve rebuilds of each, a method a line, in the order printed: 16 images at most.
"""

from __future__ import annotations

import argparse
import io
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from PIL import Image

from bench.contract.eve_profile import SAME_IMAGE
from bench.plugins.profile_spec import profile_of
from bench.results.record_parts import ScoreRecord
from bench.results.records import Record
from bench.results.results import Results
from leaderboard.packed_rows import published_results
from leaderboard.published import PUBLISHED

Group = tuple[str, int, str]
"""Data set, side of images, profile of Eve."""
NONE = "–"
PICTURE, AS_IT_IS = "rebuilt", "the released row itself"
LINES, COLUMNS = 4, 4
BOARD, PRESET, HIDES_NOTHING = ("synth-cxr", "nih", "kermany-cxr"), "first-look", "hides nothing"
SURE = 0.001
"""No p is printed below."""


def groups(folder: Path) -> dict[Group, dict[str, list[Record]]]:
    """Records by data set, side and profile, then by method."""
    found: dict[Group, dict[str, list[Record]]] = defaultdict(lambda: defaultdict(list))
    for _, record in Results(folder).records():
        if isinstance(record, Record) and record.dataset is not None:
            eve = str(profile_of(record.choice.get("eve")))
            side = record.dataset.shape[-1]
            found[str(record.choice["dataset"]), side, eve][record.method.written].append(record)
    return dict(sorted(found.items()))


def printed(value: float, digits: int) -> str:
    """A number without the 0 before its point.

    >>> printed(0.5, 3), printed(-0.25, 2), printed(12.345, 1)
    ('.500', '−.25', '12.3')
    """
    text = f"{abs(value):.{digits}f}".removeprefix("0" if abs(value) < 1 and digits else "")
    return f"−{text}" if value < 0 and float(f"{value:.{digits}f}") else text


def figure(score: ScoreRecord | None, *, digits: int = 3, chance: bool = False) -> str:
    """A figure with its interval, and p if asked for."""
    if score is None:
        return NONE
    text = printed(score.value, digits)
    if score.low is not None and score.high is not None:
        text += f" ({printed(score.low, digits)} to {printed(score.high, digits)})"
    return f"{text}, p = {score.p:.2g}" if chance and score.p is not None else text


def lines(
    title: str, columns: Iterable[str], rows: Iterable[Iterable[str]], reasons: Mapping[str, str]
) -> Iterator[str]:
    """A Markdown table with its heading and the reasons for its dashes."""
    names = list(columns)
    yield from ("", f"### {title}", "", "| " + " | ".join(names) + " |", "|" + " --- |" * len(names))
    for row in rows:
        yield "| " + " | ".join(row) + " |"
    for name, reason in reasons.items():
        yield f"\n{name}: {reason}"


def strongest(eve: str, records: Iterable[Record]) -> Record | None:
    """The record of the attack with the largest ReID AUC; of people under other-study."""
    scored = [record for record in records if primary(eve) in record.scores]
    return max(scored, key=lambda record: record.scores[primary(eve)].value, default=None)


def primary(eve: str) -> str:
    """The figure by which attacks are compared."""
    return "patient-reid-auc" if eve.startswith("other-study") else "reid-auc"


def linked(found: Mapping[Group, Mapping[str, list[Record]]]) -> Iterator[str]:
    """A table a data set and figure: profiles of Eve by method."""
    for data, side in sorted({(data, side) for data, side, _ in found}):
        cells: dict[str, dict[tuple[str, str], str]] = {"ReID AUC": {}, "top-1": {}, "guesses": {}}
        reasons: dict[str, str] = {}
        attacked: dict[str, set[str]] = {}
        for (name, pixels, eve), by_method in found.items():
            for method, records in sorted(by_method.items()) if (name, pixels) == (data, side) else ():
                attacks = [record for record in records if record.attack]
                for record in attacks:
                    if primary(eve) not in record.scores and record.attack:
                        said = record.reason or record.not_applicable.get(primary(eve), "no figure")
                        reasons[f"`{method}`, {eve}, {record.attack.written}"] = f"{record.status}, {said}"
                if attacks:
                    tried = sorted({record.attack.written for record in attacks if record.attack})
                    attacked.setdefault(eve, set()).update(tried)
                if (best := strongest(eve, attacks)) is None or best.attack is None:
                    continue
                auc = best.scores[primary(eve)]
                beside = "" if auc.p is None or auc.p < SURE else f", p = {auc.p:.2g}"
                cells["ReID AUC"][eve, method] = f"{figure(auc)}{beside}; {best.attack.written}"
                cells["top-1"][eve, method] = figure(best.scores.get("top-1"))
                cells["guesses"][eve, method] = figure(best.scores.get("guesswork"), digits=1)
        methods = sorted({method for _, method in cells["ReID AUC"]})
        for title, of in cells.items():
            rows = ([f"`{eve}`", *(of.get((eve, method), NONE) for method in methods)] for eve in attacked)
            if methods:
                columns = ("Eve", *(f"`{method}`" for method in methods))
                yield from lines(f"{data}, {side} pixels: {title}", columns, rows, {})
        for eve, names in attacked.items():
            yield f"\n`{eve}`: {', '.join(sorted(names))}"
        yield from (f"\n{name}: {reason}" for name, reason in reasons.items())


def attributes(group: Group, by_method: Mapping[str, list[Record]]) -> Iterator[str]:
    """Advantage at each attribute, from the release, raw rows and labels."""
    rows, reasons = [], {}
    for method, records in sorted(by_method.items()):
        for record in records:
            if record.kind != "attributes":
                continue
            score = record.scores.get("attribute-advantage")
            if score is None:
                reasons[f"`{method}`"] = record.reason or str(record.not_applicable)
                rows.append([f"`{method}`", *[NONE] * 5])
                continue
            for name in (name for name in score.parts if "," not in name):
                part = score.parts[name]
                null = NONE
                if part.null_low is not None and part.null_high is not None:
                    null = f"{printed(part.null_low, 3)} to {printed(part.null_high, 3)}"
                rows.append([
                    f"`{method}`", name, figure(part, chance=True), null,
                    figure(score.parts.get(f"{name}, raw rows")), figure(score.parts.get(f"{name}, labels alone")),
                ])  # fmt: skip
    if rows:
        columns = ("method", "attribute", "advantage", "chance (95 %)", "from raw rows", "from labels alone")
        yield from lines("{}, {} pixels, {}: attributes".format(*group), columns, rows, reasons)


def rebuilt(group: Group, by_method: Mapping[str, list[Record]]) -> Iterator[str]:
    """Likeness of rebuilt images, and whether they name their rows."""
    rows, reasons = [], {}
    for method, records in sorted(by_method.items()):
        for record in records:
            if record.kind != "reconstruction":
                continue
            main, name = record.scores.get("reconstruction-ssim"), record.scores.get("reconstruction-reid")
            if main is None:
                reasons[f"`{method}`"] = record.reason or str(record.not_applicable)
                rows.append([f"`{method}`", *[NONE] * 7])
                continue
            likeness = [
                " / ".join(printed(main.parts[part].value, digits)
                           for part in (kind, f"{kind} of the mean image", f"{kind} of the nearest public image"))
                for kind, digits in (("SSIM", 3), ("PSNR", 1))
            ]  # fmt: skip
            rows.append([
                f"`{method}`", str(record.details["chosen"]), figure(main, chance=True), *likeness,
                figure(name, chance=True), figure(name.parts["top-1"] if name else None),
                f"{record.seconds.get('cpu', 0):.0f}",
            ])  # fmt: skip
    if rows:
        columns = (
            "method", "by", "SSIM beyond the mean image", "SSIM: rebuilt / mean / nearest public",
            "PSNR (dB): the same", "identified (AUC)", "top-1", "seconds",
        )  # fmt: skip
        yield from lines("{}, {} pixels, {}: reconstruction".format(*group), columns, rows, reasons)


def costs(found: Mapping[Group, Mapping[str, list[Record]]]) -> Iterator[str]:
    """Median processor seconds of each attack by data set and profile."""
    seconds: dict[tuple[str, Group], list[float]] = defaultdict(list)
    for group, by_method in found.items():
        for record in (record for records in by_method.values() for record in records):
            if record.status == "ok":
                seconds[record.attack.written if record.attack else record.kind, group].append(record.seconds["cpu"])
    rows = (
        (f"`{name}`", "{}, {} pixels, {}".format(*group), f"{min(own):.0f} to {max(own):.0f}", str(len(own)))
        for (name, group), own in sorted(seconds.items())
    )
    yield from lines("Processor seconds", ("attack or evaluator", "data and Eve", "seconds", "methods"), rows, {})


def board(keys: int = 5) -> Iterator[str]:
    """The strongest attack of an Eve who holds the released images, from the rows that the project publishes."""
    found: dict[str, dict[str, list[Record]]] = defaultdict(lambda: defaultdict(list))
    for _, record in published_results(PUBLISHED).records():
        if not isinstance(record, Record) or record.attack is None or record.method.role not in (None, HIDES_NOTHING):
            continue
        choice = record.choice
        other = any(choice.get(name) is not None for name in ("eve", "features", "scored_in", "size", "limit"))
        if choice["preset"] == PRESET and record.seed == 0 and record.keys == keys and not other:
            found[record.method.written][str(choice["dataset"])].append(record)
    rows = []
    for method, by_data in sorted(found.items()):
        cells = [f"`{method}`"]
        for data in BOARD:
            best = strongest(SAME_IMAGE, by_data.get(data, ()))
            if best is None or best.attack is None:
                cells.append(NONE)
                continue
            auc, top, guesses = (best.scores.get(name) for name in ("reid-auc", "top-1", "guesswork"))
            first = NONE if top is None else printed(top.value, 3)
            after = NONE if guesses is None else f"{guesses.value:.1f}"
            cells.append(f"{figure(auc)}; {first}; {after}; {best.attack.written}")
        if any(cell != NONE for cell in cells[1:]):
            rows.append(cells)
    columns = ("method", *(f"{data}: ReID AUC; top-1; guesses; attack" for data in BOARD))
    yield from lines(f"{SAME_IMAGE}, from the board", columns, rows, {})


def sheet(results: Results, found: Mapping[Group, Mapping[str, list[Record]]], data: str) -> Image.Image:
    """Raw images above those rebuilt, a method a line: at most `LINES` lines of `COLUMNS` images."""
    strips: list[Image.Image] = []
    for (name, side, _), by_method in found.items():
        for method, records in sorted(by_method.items()) if name == data else ():
            for record in (record for record in records if PICTURE in record.pictures):
                png = results.picture(record, PICTURE)
                if png is None or record.details["chosen"] == AS_IT_IS or len(strips) == LINES:
                    continue
                whole, cell = Image.open(io.BytesIO(png)), side + 2
                lines = whole.height // cell
                # From above: raw, released if an image, rebuilt, nearest public.
                for line in (0, lines - 2) if not strips else (lines - 2,):
                    strips.append(whole.crop((0, cell * line, COLUMNS * cell, cell * (line + 1))))
                print(f"line {len(strips)} of the sheet: {method}")
    if not strips:
        raise SystemExit(f"no pictures of reconstructions on {data}: run --metric reconstruction-ssim first")
    made = Image.new("RGB", (strips[0].width, sum(strip.height for strip in strips)))
    for number, strip in enumerate(strips):
        made.paste(strip, (0, number * strip.height))
    return made


def main() -> None:
    """Print the tables, and draw the sheet."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("results", type=Path)
    asked.add_argument("--board", action="store_true", help="the published rows of an Eve who holds the images, too")
    asked.add_argument("--sheet", type=Path, help="a PNG file of images rebuilt")
    asked.add_argument("--dataset", default="nih", help="of the sheet")
    options = asked.parse_args()
    found = groups(options.results)
    if options.sheet:
        sheet(Results(options.results), found, options.dataset).save(options.sheet)
    if options.board:
        print("\n".join(board()))
    print("\n".join(linked(found)))
    for table in (attributes, rebuilt):
        for group, by_method in found.items():
            for line in table(group, by_method):
                print(line)
    print("\n".join(costs(found)))


if __name__ == "__main__":
    main()
