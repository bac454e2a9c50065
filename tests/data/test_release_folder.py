"""Folders of released rows: every format and table, and what is wrong with them."""

from __future__ import annotations

import json
import math
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from made.data_files import dicom
from PIL import Image
from safetensors.torch import save_file

from bench.contract.recorded import Recorded
from bench.data.prepare import prepare
from bench.data.prepared import Prepared
from bench.data.recorded_rows import RecordedRows, Rows
from bench.data.release_folder import open_folder, side_of, tables_of
from bench.data.sets.folder import Folder
from bench.data.splits import split
from bench.types import DataError, NotApplicable, Release
from methods.imported import Imported, SamplePool, claim_of

CLASSES, EACH, SIDE = ("ill", "well"), 8, 6


def pixels(seed: int, side: int = SIDE) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (side, side), dtype=np.uint8)


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """Sixteen grey images in a folder a class."""
    for number, name in enumerate(CLASSES):
        (tmp_path / "raw" / name).mkdir(parents=True)
        for image in range(EACH):
            Image.fromarray(pixels(100 * number + image)).save(tmp_path / "raw" / name / f"{name}-{image}.png")
    return tmp_path / "raw"


@pytest.fixture
def prepared(raw: Path, tmp_path: Path) -> Prepared:
    return prepare(Folder(str(raw)), roots=(), cache=tmp_path / "cache", size=SIDE)


def release(folder: Path, count: int = 4, **told: object) -> Path:
    """The first images of each class with inverted grey values, named as the raw ones."""
    folder.mkdir(parents=True)
    for number, name in enumerate(CLASSES):
        for image in range(count // 2):
            Image.fromarray(255 - pixels(100 * number + image)).save(folder / f"{name}-{image}.png")
    if told:
        (folder / "release.json").write_text(json.dumps(told))
    return folder


LINKS = "released,raw\nill-0.png,ill/ill-0.png\nill-1.png,ill-1.png\nwell-0.png,well-0.png\nwell-1.png,well-1.png\n"


def opened(folder: Path, raw: Path, prepared: Prepared, links: Path | None = None) -> RecordedRows:
    return open_folder(Recorded(folder, links, ""), prepared, Folder(str(raw)), ())


def test_links_by_names_and_by_a_table_are_the_same(raw: Path, prepared: Prepared, tmp_path: Path) -> None:
    named = opened(release(tmp_path / "a", links="names"), raw, prepared)
    listed = release(tmp_path / "b")
    (listed / "links.csv").write_text(LINKS)
    table = opened(listed, raw, prepared)
    numbered = release(tmp_path / "c")
    (tmp_path / "kept.csv").write_text("released,row\nwell-1.png,9\nwell-0.png,8\nill-1.png,1\nill-0.png,0\n")
    beside = opened(numbered, raw, prepared, tmp_path / "kept.csv")
    for each in (named, table, beside):
        assert each.members.tolist() == [0, 1, 8, 9]
        made = each.release(0, each.members, prepared.dataset(each.members))
        assert made.links is not None
        assert sorted(map(tuple, made.links.tolist())) == [(0, 0), (1, 1), (2, 2), (3, 3)]
        assert torch.allclose(made.samples, 1 - prepared.dataset(each.members).samples)


@pytest.mark.parametrize(
    "kind", ["npy", "npy grey", "npy float", "npy big-endian", "safetensors", "bfloat16", "dicom", "jpg folders"]
)
def test_every_format_gives_the_rows(kind: str, raw: Path, prepared: Prepared, tmp_path: Path) -> None:
    folder = tmp_path / "release"
    folder.mkdir()
    rows = np.stack([255 - pixels(seed) for seed in (0, 1, 100, 101)])
    links = "released,row\n0,0\n1,1\n2,8\n3,9\n"
    if kind == "dicom":
        for number, image in enumerate(rows):
            dicom(folder / f"{number}.dcm", image, bits=8)
        links = links.replace("\n0,", "\n0.dcm,").replace("\n1,", "\n1.dcm,")
        links = links.replace("\n2,", "\n2.dcm,").replace("\n3,", "\n3.dcm,")
    elif kind == "jpg folders":
        for number, image in enumerate(rows):
            (folder / CLASSES[number // 2]).mkdir(exist_ok=True)
            Image.fromarray(image).save(folder / CLASSES[number // 2] / f"{number}.bmp")
        links = "released,row\nill/0.bmp,0\nill/1.bmp,1\nwell/2.bmp,8\nwell/3.bmp,9\n"
        (folder / "release.json").write_text('{"labels": "folders"}')
    elif kind in ("safetensors", "bfloat16"):
        labels = torch.tensor([[1.0, 0], [1, 0], [0, 1], [0, 1]])
        samples = torch.from_numpy(rows[:, None] / 255).to(torch.bfloat16 if kind == "bfloat16" else torch.float32)
        save_file({"samples": samples, "labels": labels}, folder / "release.safetensors")
        (folder / "release.json").write_text('{"findings": ["ILL", "well"]}')
    else:
        floats = (rows[:, None] / 255).astype(np.float64)
        forms = {"npy": rows[:, None], "npy grey": rows, "npy float": floats, "npy big-endian": floats.astype(">f4")}
        np.save(folder / "release.npy", forms[kind])
    (folder / "links.csv").write_text(links)
    found = opened(folder, raw, prepared)
    private = prepared.dataset(found.members)
    made = found.release(0, found.members, private)
    assert side_of(found.recorded) == SIDE
    assert made.samples.dtype == torch.float32
    assert torch.allclose(made.samples, 1 - private.samples, atol=1e-6 if kind != "bfloat16" else 2**-8)
    assert (made.labels is not None) == (kind in ("safetensors", "bfloat16", "jpg folders"))
    if made.labels is not None:
        assert torch.equal(made.labels, private.labels)


def test_labels_come_from_a_table_from_raw_rows_or_not_at_all(raw: Path, prepared: Prepared, tmp_path: Path) -> None:
    def labels(folder: Path) -> torch.Tensor | None:
        found = opened(folder, raw, prepared)
        return found.release(0, found.members, prepared.dataset(found.members)).labels

    own = torch.tensor([[1.0, 0], [1, 0], [0, 1], [0, 1]])
    assert labels(release(tmp_path / "none", links="names")) is None
    assert torch.equal(labels(release(tmp_path / "raw-labels", links="names", labels="raw")), own)
    listed = release(tmp_path / "listed", links="names")
    (listed / "labels.csv").write_text("released,class\nill-0.png,ill\nwell-0.png,ILL\nwell-1.png,Well\n")
    found = labels(listed)
    assert torch.equal(found[[0, 2, 3]], torch.tensor([[1.0, 0], [1, 0], [0, 1]]))
    assert found[1].isnan().all()
    (listed / "labels.csv").write_text("path\nill-0.png\nwell-0.png\n")  # images without labels
    assert labels(listed) is None
    (listed / "labels.csv").write_text("path,well,else\nill-0.png,0,1\nwell-0.png,1,0\n")
    found = labels(listed)
    assert found[:, 0].isnan().all()
    assert found[[0, 2], 1].tolist() == [0, 1]


def test_a_cut_release_has_the_rows_of_the_private_rows_alone(raw: Path, prepared: Prepared, tmp_path: Path) -> None:
    folder = release(tmp_path / "release")
    # ill-1 is a mixture of two raw rows, and well-1 stands for none.
    (folder / "links.csv").write_text(
        "released,row,primary\nill-0.png,0,1\nill-1.png,1,1\nill-1.png,8,0\nwell-0.png,8,1\n"
    )
    found = opened(folder, raw, prepared)
    assert found.members.tolist() == [0, 1, 8]
    whole = found.release(0, found.members, prepared.dataset(found.members))
    assert len(whole) == 4
    assert whole.primary is not None
    assert whole.primary.tolist() == [True, True, False, True]
    rows = np.array([0, 1])
    cut = found.release(0, rows, prepared.dataset(rows))
    assert cut.links is not None
    assert cut.links.tolist() == [[0, 0]]
    assert torch.equal(cut.samples, whole.samples[:1])


def test_rows_without_links_belong_to_members_and_are_never_cut(raw: Path, prepared: Prepared, tmp_path: Path) -> None:
    folder = release(tmp_path / "release")
    (folder / "members.csv").write_text("row\n" + "".join(f"{row}\n" for row in range(10)))
    found = opened(folder, raw, prepared)
    assert not found.linked
    assert found.members.tolist() == list(range(10))
    assert any("membership and near copies" in note for note in found.notes)
    assert found.release(0, found.members, prepared.dataset(found.members)).links is None
    with pytest.raises(NotApplicable, match=r"made of 10 raw rows, and without links.csv"):
        found.release(0, found.members[:5], prepared.dataset(found.members[:5]))


@pytest.mark.parametrize("text", ["released,raw\nill-0.png,nowhere.png\n", "released\nill-0.png\n", "raw\n", "\0"])
def test_a_table_of_links_elsewhere_is_called_by_what_it_is(
    raw: Path, prepared: Prepared, tmp_path: Path, text: str
) -> None:
    links = tmp_path / "of-mrs-smith.csv"
    links.write_text(text)
    with pytest.raises(DataError, match=r"links\.csv") as refused:
        opened(release(tmp_path / "release"), raw, prepared, links=links)
    assert "smith" not in str(refused.value)


def test_a_release_of_everybody_leaves_nobody_to_compare_with(raw: Path, prepared: Prepared, tmp_path: Path) -> None:
    folder = release(tmp_path / "release")
    (folder / "members.csv").write_text("row\n" + "".join(f"{row}\n" for row in range(2 * EACH)))
    found = opened(folder, raw, prepared)
    with pytest.raises(DataError, match=r"made of images of everybody in folder, 16 of 16 rows: .* add images"):
        split(prepared, None, seed=0, limit=None, public_limit=None, recorded=found)


def test_more_rows_of_a_generator_are_drawn_without_repetition(raw: Path, prepared: Prepared, tmp_path: Path) -> None:
    folder = release(tmp_path / "release")
    (folder / "members.csv").write_text("row\n1\n2\n")
    release(folder / "samples", 8, labels="folders")
    for path in list((folder / "samples").glob("*.png")):
        (folder / "samples" / path.name[:-6]).mkdir(exist_ok=True)
        path.rename(folder / "samples" / path.name[:-6] / path.name)
    found = opened(folder, raw, prepared)
    assert found.releases[0].rows.count == 4
    state = found.pool(0, prepared.dataset(found.members))
    assert state is not None
    pool = Imported().load({}).load_generator(state)
    assert isinstance(pool, SamplePool)
    drawn = pool.sample(8, 3)
    assert len(torch.unique(drawn.samples.flatten(1), dim=0)) == 8
    assert drawn.labels is not None
    assert drawn.labels.sum(dim=0).tolist() == [4, 4]
    assert torch.equal(pool.sample(3, 1).samples, pool.sample(3, 1).samples)
    with pytest.raises(NotApplicable, match="holds 8 rows of the generator, and 9 are needed"):
        pool.sample(9, 0)


def test_what_was_changed_to_read_images_is_counted(raw: Path, prepared: Prepared, tmp_path: Path) -> None:
    folder = release(tmp_path / "rélease of mine", links="names", bits=16)
    Image.open(folder / "ill-0.png").convert("RGB").save(folder / "ill-0.png")
    sixteen(folder)
    (folder / "well-0.png").write_bytes((folder / "well-1.png").read_bytes())
    notes = opened(folder, raw, prepared).notes
    assert "1 of 4 released images hold more than 8 bits a value, and are read as 8" in notes
    assert "1 of 4 released images are stored in colour, and read as raw ones are" in notes
    assert "1 released images are copies of others, to the byte" in notes
    assert side_of(Recorded(folder, None, "")) == SIDE
    Image.fromarray(pixels(3, 12)).save(folder / "well-1.png")
    found = opened(folder, raw, prepared)
    assert any("each is resized as raw images are" in note for note in found.notes)
    assert side_of(found.recorded) is None
    assert found.release(0, found.members, prepared.dataset(found.members)).samples.shape == (4, 1, SIDE, SIDE)


def whole_release(folder: Path, raw: Path, prepared: Prepared) -> Release:
    found = opened(folder, raw, prepared)
    return found.release(0, found.members, prepared.dataset(found.members))


def write(text: str, name: str = "links.csv") -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_text(text, encoding="utf-8") and None


def told(text: str) -> Callable[[Path], None]:
    return write(text, "release.json")


def array(rows: np.ndarray) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        for path in folder.glob("*.png"):
            path.unlink()
        np.save(folder / "release.npy", rows)

    return change


def pickled(folder: Path) -> None:
    for path in folder.glob("*.png"):
        path.unlink()
    np.save(folder / "release.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)


def labelled(labels: list[list[float]], *findings: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        for path in folder.glob("*.png"):
            path.unlink()
        rows = torch.zeros(4, 1, SIDE, SIDE)
        save_file({"samples": rows, "labels": torch.tensor(labels)}, folder / "release.safetensors")
        (folder / "release.json").write_text(json.dumps({"findings": findings}))
        (folder / "links.csv").write_text("released,row\n0,0\n1,1\n2,8\n3,9\n")

    return change


def tensors(folder: Path) -> None:
    for path in folder.glob("*.png"):
        path.unlink()
    (folder / "release.safetensors").write_bytes(pickle.dumps([1, 2]))


def truncated(folder: Path) -> None:
    path = folder / "ill-0.png"
    path.write_bytes(path.read_bytes()[:60])


def foreign(folder: Path) -> None:
    (folder / "ill-0.png").write_text("<html>not found</html>")


def sixteen(folder: Path) -> None:
    Image.fromarray(pixels(1).astype(np.uint16) * 256).save(folder / "ill-1.png")


def emptied(folder: Path) -> None:
    for path in folder.glob("*.png"):
        path.unlink()


def leaving(folder: Path) -> None:
    (folder / "ill-0.png").unlink()
    (folder / "ill-0.png").symlink_to(folder.parent / "raw/ill/ill-0.png")


def dead(folder: Path) -> None:
    (folder / "more.png").symlink_to(folder / "nowhere.png")


def piped(folder: Path) -> None:
    os.mkfifo(folder / "pipe.png")


def both(folder: Path) -> None:
    np.save(folder / "release.npy", np.zeros((4, 2), np.float32))


def other_shape(folder: Path) -> None:
    (folder / "keys/2").mkdir(parents=True)
    np.save(folder / "keys/2/release.npy", np.zeros((4, 3), np.float32))
    (folder / "keys/2/links.csv").write_text("released,row\n0,0\n")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (emptied, "expected released rows of one kind, as images, release.safetensors or release.npy, found nothing"),
        (both, "of one kind, .* found release.npy, 4 images"),
        (truncated, "1 of 4 released images cannot be read"),
        (foreign, "1 of 4 released images cannot be read:\n  1: an HTML page"),
        (leaving, "a link that leads out of it"),
        (dead, "a link that leads nowhere"),
        (piped, "a pipe, a socket or a device"),
        (pickled, "Python objects, which could run code"),
        (tensors, "release.safetensors must be whole"),
        (array(np.zeros((4, 3, 3, 3, 3))), "got shape"),
        (array(np.full((4, 2), np.nan)), "4 of 4 released rows hold numbers that are not finite"),
        (array(np.zeros((4, 2), np.int64)), "floating-point numbers or uint8, got torch.int64"),
        (array(np.zeros((4, 2), "U3")), "floating-point numbers of at most 64 bits or uint8, got <U3"),
        (array(np.zeros((4, 2), np.longdouble)), "numbers of at most 64 bits or uint8, got (float128|longdouble)"),
        (array(np.zeros(4, [("a", "f4")])), "got shape|got .*'a'"),
        (labelled([[2.0, 0], [0, 1], [0, 1], [1, 0]], "ill", "well"), "must be 0 to 1, or NaN if unknown: 1 rows"),
        (labelled([[1.0, 0], [0, 1], [0, 1], [1, 0]], "ill", "ILL"), "name a finding twice"),
        (lambda folder: (folder / "links.csv").write_bytes(b"released,row\n\xff,1\n") and None, "^links.csv: .* UTF-8"),
        (other_shape, "must have rows of one shape"),
        (write("released,raw\nill-0.png,ill-9.png\n"), "line 2: raw is no file of folder, or several have"),
        (write("released,raw\nill-7.png,ill-0.png\n"), "line 2: released is none of the 4 images"),
        (write("released,row\nill-0.png,0\nill-0.png,0\n"), "line 3: the link is listed a second time"),
        (write("released,row\nill-0.png,16\n"), "line 2: there are 16 rows of folder, numbered from 0"),
        (write("released,row\nill-0.png,-1\n"), "line 2: expected a number of rows of folder"),
        (write("released,row,raw\nill-0.png,1,ill-0.png\n"), "expected one of the columns raw and row"),
        (write("released,row,digest\nill-0.png,0,00\n"), "line 2: the raw row has another content in folder"),
        (write("released,row,primary\nill-0.png,0,2\n"), "line 2: primary is something else than 0 or 1"),
        (write("released,row\n"), "links.csv: expected a line a row, found none"),
        (write("released,class\nill-0.png,sick\n", "labels.csv"), "of another coding: expected ill, well, got sick"),
        (write("released,a,b\nill-0.png,1,0\n", "labels.csv"), "of another coding: expected ill, well"),
        (write("released,ill\nill-0.png,yes\n", "labels.csv"), "1 bad labels:\n  line 2: ill is something else than"),
        (write("released,class\nill-0.png,ill\nill-0.png,ill\n", "labels.csv"), "line 3: the released row is listed a"),
        (write("row\n1\n1\n", "members.csv"), "members.csv: line 3: the row is listed a second time"),
        (told("{"), "release.json must be JSON"),
        (told("[]"), "release.json must hold an object"),
        (sixteen, r'state them, as "bits": 12 in release.json does'),
        (told('{"links": "names", "bits": 7}'), "bits in release.json must be 8 to 16, got 7"),
        (told('{"links": "yes"}'), "links in release.json must be one of names, got 'yes'"),
        (told('{"rows": "yes", "links": "names"}'), "rows in release.json must be one of encoded, got 'yes'"),
        (told('{"labels": "mine", "links": "names"}'), "labels in release.json must be one of raw, folders, encoded"),
        (told('{"labels": "raw"}'), "takes labels by links, and there are none"),
        (told('{"labels": "folders", "links": "names"}'), "needs images in a sub-folder a class"),
        (told('{"members": "train"}'), "and folder has no official parts"),
        (told("{}"), "nothing says which raw rows of folder the release was made of: add links.csv"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_one_clear_error(
    change: Callable[[Path], None], message: str, raw: Path, prepared: Prepared, tmp_path: Path
) -> None:
    folder = release(tmp_path / "release", links="names")
    change(folder)
    if change in (pickled, tensors) or "numbers" in message or "got shape" in message or "one shape" in message:
        (folder / "release.json").unlink()
        (folder / "links.csv").write_text("released,row\n0,0\n1,1\n2,8\n3,9\n")
    if "one shape" in message:
        (folder / "links.csv").write_text(LINKS)
    with pytest.raises(DataError, match=message) as error:
        whole_release(folder, raw, prepared)
    assert str(tmp_path) not in str(error.value)


def test_unlinked_images_by_name_are_refused(raw: Path, prepared: Prepared, tmp_path: Path) -> None:
    folder = release(tmp_path / "release", links="names")
    (folder / "ill-0.png").rename(folder / "other.png")
    with pytest.raises(DataError, match=r"1 of 4 released images are called as no raw image of folder"):
        opened(folder, raw, prepared)


def test_tables_are_checked_without_raw_rows(tmp_path: Path) -> None:
    folder = release(tmp_path / "release")
    assert tables_of(Recorded(folder, None, "")) == "there are none"
    (folder / "links.csv").write_text("released,raw\nill-0.png,anything\n")
    assert tables_of(Recorded(folder, None, "")) == "links.csv names 1 of 4 rows"
    (folder / "labels.csv").write_text("released,class\nno.png,ill\n")
    with pytest.raises(DataError, match=r"labels.csv: line 2: released is none of the 4 images"):
        tables_of(Recorded(folder, None, ""))


CLAIM = {"unit": "image", "epsilon": 8, "delta": 1e-5}


def test_a_makers_claim_has_no_bound_derived_here() -> None:
    told = {**CLAIM, "derived": 0.01, "family": "Gaussian", "sampling_rate": 1.0, "steps": 1, "basis": "a proof"}
    claim = claim_of({"claim": told})
    assert claim is not None
    assert (claim.epsilon, claim.delta, claim.derived) == (8, 1e-5, math.inf)
    assert (claim.family, claim.steps) == ("any", None)
    assert claim.basis == "the maker's word, in release.json: a proof"
    assert "not audited" in claim.assumptions


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": "8"}, "epsilon of the claim in release.json must be a number, got '8'"),
        ({"epsilon": True}, "must be a number, got True"),
        ({"epsilon": 10**400}, "too large"),
        ({"epsilon": math.nan}, "epsilon must be positive"),
        ({"delta": None}, "delta of the claim in release.json must be a number, got None"),
        ({"delta": 2}, r"delta must be in \[0, 1\]"),
        ({"unit": "patient"}, "must be image, pixel or record"),
        ({"assumptions": "x" * 3000}, "at most 2000 characters"),
        ({"basis": ["x"]}, "basis of the claim in release.json must be a text"),
    ],
)
def test_a_claim_that_is_none_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        claim_of({"claim": {**CLAIM, **change}})


def test_a_maker_is_a_text_and_the_number_of_releases_is_counted(tmp_path: Path) -> None:
    folder = release(tmp_path / "release")
    shutil.copytree(folder, tmp_path / "copy")
    shutil.move(tmp_path / "copy", folder / "keys" / "2")
    found = Imported(path=str(folder))
    assert Imported(path=str(folder), sha256=found.sha256) == found
    assert found.releases == 2
    (folder / "release.json").write_text('{"maker": null}')
    with pytest.raises(ValueError, match=r"maker in release.json must be a text, got NoneType"):
        Imported(path=str(folder))


def array(folder: Path, values: np.ndarray, **told: object) -> Path:
    folder.mkdir()
    np.save(folder / "release.npy", values)
    (folder / "links.csv").write_text("released,row\n0,0\n1,1\n2,8\n3,9\n")
    (folder / "release.json").write_text(json.dumps(told))
    return folder


def test_floating_point_images_of_0_to_255_are_refused(raw: Path, prepared: Prepared, tmp_path: Path) -> None:
    rows = np.stack([pixels(seed) for seed in (0, 1, 100, 101)])[:, None].astype(np.float32)

    def samples(name: str, values: np.ndarray, **told: object) -> torch.Tensor:
        found = opened(array(tmp_path / name, values, **told), raw, prepared)
        return found.release(0, found.members, prepared.dataset(found.members)).samples

    with pytest.raises(DataError, match=r"release.npy hold numbers from \d+ to 255: expected 0 to 1, or uint8. Divide"):
        samples("a", rows)
    assert samples("b", rows, rows="encoded").max() == 255
    assert samples("c", rows - 128).min() < 0  # noise, or standardised: of no known range
    assert samples("d", rows / 250).max() > 1  # an overshoot


def test_a_palette_of_colours_counts_as_colour_and_one_of_greys_does_not(
    raw: Path, prepared: Prepared, tmp_path: Path
) -> None:
    for name, shift in (("colour", 7), ("grey", 0)):
        folder = release(tmp_path / name, links="names")
        image = Image.fromarray(pixels(0)).convert("P")
        image.putpalette([value for grey in range(256) for value in (grey, grey, (grey + shift) % 256)])
        image.save(folder / "ill-0.png")
        notes = " ".join(opened(folder, raw, prepared).notes)
        assert ("1 of 4 released images are stored in colour" in notes) == (name == "colour")


@pytest.mark.parametrize("shape", [[1, 6], [1, 6, 7], [2, 6, 6], [1, -6, -6], [1, 9999, 9999], "6", [True, 6, 6]])
def test_a_raw_shape_that_is_none_is_named(shape: object, tmp_path: Path) -> None:
    folder = release(tmp_path / "a", raw_shape=shape)
    with pytest.raises(DataError, match=r"raw_shape in release.json must be \[1 or 3, side, side\]"):
        side_of(Recorded(folder, None, ""))


@pytest.mark.parametrize(("shape", "side"), [([1, 12, 12], 12), ([3, 6, 6], 6), ([40], None)])
def test_a_raw_shape_says_at_which_side_raw_images_are_read(shape: list[int], side: int | None, tmp_path: Path) -> None:
    assert side_of(Recorded(release(tmp_path / "a", raw_shape=shape), None, "")) == side


def test_what_systems_put_beside_images_is_no_released_row_and_no_part_of_the_digest(tmp_path: Path) -> None:
    folder = release(tmp_path / "a", links="names")
    first, rows = Recorded(folder, None, "").digest(), Rows.found(folder).names
    for name in ("@eaDir/ill-0.png", "__MACOSX/._ill-0.png", "#recycle/old.png", "$RECYCLE.BIN/old.png",
                 ".Trashes/501/old.png", "keys/@eaDir/1.png"):  # fmt: skip
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels(7)).save(folder / name)
    (folder / "Thumbs.db").write_bytes(b"thumbnails")
    assert Recorded(folder, None, "").digest() == first
    assert Rows.found(folder).names == rows
    assert Recorded(folder, None, "").places() == [folder]
