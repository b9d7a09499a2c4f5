"""`cleanset.load` and `cleanset.table`: from a folder, and from a git repository."""

import base64
import hashlib
import html
import importlib.metadata
import io
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image, ImageOps
from torch.utils.data import DataLoader, Dataset, Subset
from torchvision.datasets import ImageFolder

import cleanset
from cleanset.classes import imagenet
from cleanset.dataset.folder import read_images
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.evaluation.sets import open_set
from cleanset.sets import image_set, publish, verify
from cleanset.sets.description import Release
from cleanset.sets.fetching.repository import published_set
from cleanset.sets.folder import CARD, REJECTED_CSV, write_descriptions
from cleanset.sets.image_set import ImageSet
from tests.sets.conftest import FILES, trial
from tests.sets.test_verify import describe_anew, rewrite, rows

pytestmark = pytest.mark.slow


def test_importing_it_imports_next_to_nothing() -> None:
    program = "import sys, cleanset; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    imported = set(done.stdout.split())
    assert {name for name in imported if name.startswith("cleanset")} == {"cleanset"}
    assert imported.isdisjoint({"torch", "numpy", "pandas", "PIL", "dvc", "pydantic", "yaml", "typer"})
    errors = ["CleansetError", "DamagedError", "InputError", "NotComparableError", "UnreachableError"]
    measured = ["attack", "compare", "evaluate", "hints", "published", "robustness", "verify"]
    changed = ["change_background", "changes", "corrupt", "perturb", "watermark"]
    names = [*errors, *measured, *changed, "MeasureResults", "Results", "load", "table"]
    assert sorted(cleanset.__all__) == sorted(names)
    assert cleanset.__version__ == importlib.metadata.version("cleanset")
    with pytest.raises(AttributeError, match="module 'cleanset' has no attribute 'lod'"):
        cleanset.lod  # noqa: B018


@pytest.mark.parametrize("where", ["edition", "export"])
def test_images_classes_and_records(edition: Edition, where: str) -> None:
    export = edition.export("standard")
    images = cleanset.load("standard", edition=edition.folder if where == "edition" else export)
    assert len(images) == 6
    assert [images.classes[label] for _, label, _ in images] == [file.split("/")[0] for file in FILES]
    for (image, label, record), row in zip(images, rows(export), strict=True):
        assert (label, record["class_index"]) == (int(row["class_index"]),) * 2
        with Image.open(export / row["file"]) as original:
            assert np.array_equal(np.asarray(image), np.asarray(original.convert("RGB")))
        assert {name: str(record[name]) for name in ("image_id", "wnid", "rank", "tier", "file_sha256")} == {
            name: row[name] for name in ("image_id", "wnid", "rank", "tier", "file_sha256")
        }
    # crop boxes in the pixels of the source; the whole of a whole image
    assert [record["crop"] for _, _, record in images][:2] == [(0, 0, 43, 31), (3, 4, 23, 40)]


def test_a_set_in_the_current_folder_by_its_name(
    edition: Edition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`scooter`, too, which without a folder of that name stands for the published set."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CleansetError, match="the set 'scooter' is made from your own copy of ImageNet"):
        cleanset.load("scooter")
    shutil.copytree(edition.export("standard"), tmp_path / "scooter")
    assert len(cleanset.load("scooter")) == 6
    (tmp_path / "params.yaml").touch()
    with pytest.raises(CleansetError, match="the set 'scooter' is made from your own copy of ImageNet"):
        cleanset.load("scooter")


def test_an_empty_set_is_refused(tmp_path: Path) -> None:
    """Manifest and card: `datasets` cannot tell the columns of a table without rows."""
    write_descriptions(tmp_path, [], Release(classes=imagenet()), dict.fromkeys((CARD, REJECTED_CSV), ""))
    assert not (tmp_path / "metadata.csv").exists()
    for use in (cleanset.load, lambda folder: publish.run(folder, folder.parent / "out", True, None)):
        with pytest.raises(CleansetError, match="no images; expected at least one"):
            use(tmp_path)


def test_as_torchvision_names_it(edition: Edition) -> None:
    images = cleanset.load("standard", edition.folder)
    folder = ImageFolder(str(edition.export("standard")))
    assert images.targets == [label for _, label, _ in images] == [0, 0, 278, 278, 278, 281]
    assert [images.classes[label] for label in images.targets] == [folder.classes[label] for label in folder.targets]
    assert {wnid: images.class_to_idx[wnid] for wnid in folder.class_to_idx} == {
        "n01440764": 0, "n02119789": 278, "n02123045": 281,
    }  # fmt: skip
    assert (len(images.classes), len(images.class_to_idx), len(images.class_names)) == (1000,) * 3
    assert [images.class_names[label] for label in images.targets] == [
        record["class_name"] for _, _, record in images
    ] == ["tench", "tench", "kit fox", "kit fox", "kit fox", "tabby"]  # fmt: skip
    export = edition.export("standard")
    assert repr(images) == f"ImageSet(standard: 6 images of 3 classes, {str(export)!r}) {trial(export)}"
    other = cleanset.load("standard", edition.folder, transform=len)
    assert ", transform=<built-in function len>)" in repr(other)
    assert repr(ImageSet(Path("a"), images.entries[:1], imagenet())) == "ImageSet(standard: 1 image of 1 class, 'a')"
    assert repr(ImageSet(Path("a"), [], imagenet())) == "ImageSet(no model: 0 images of 0 classes, 'a')"


def test_a_notebook_shows_counts_and_a_contact_sheet(edition: Edition, monkeypatch: pytest.MonkeyPatch) -> None:
    """With more images than places, one at regular intervals; the transform does not count."""
    images = cleanset.load("standard", edition.folder, transform=len)
    text, sheet = contact_sheet(images)
    assert text == f"standard: 6 images of 3 classes, 2 cropped. {trial(edition.export('standard'))}"
    assert sheet.size == (720, 72)
    with Image.open(images.folder / FILES[0]) as first:
        wide = ImageOps.pad(first.convert("RGB"), (72, 72), color="white")
    assert np.abs(np.asarray(sheet.crop((0, 0, 72, 72)), int) - np.asarray(wide, int)).mean() < 8
    assert sheet.getpixel((6 * 72 + 36, 36)) == (255, 255, 255)  # a seventh image
    monkeypatch.setattr(image_set, "CONTACT_SHEET_ROWS", 1)
    monkeypatch.setattr(image_set, "CONTACT_SHEET_COLUMNS", 2)
    text, sheet = contact_sheet(images)
    assert text.startswith("standard: 6 images of 3 classes, 2 cropped, 2 of them shown.")
    assert sheet.size == (144, 72)
    assert contact_sheet(ImageSet(Path("a"), [], imagenet()))[0] == "no model: 0 images of 0 classes, 0 cropped."


def contact_sheet(images: ImageSet) -> tuple[str, Image.Image]:
    """The text and the picture of a set in a notebook."""
    (found,) = re.findall(r'(?s)\A<p>(.*)</p><img alt=".*" src="data:image/jpeg;base64,(.*)">\Z', images._repr_html_())
    return html.unescape(found[0]), Image.open(io.BytesIO(base64.b64decode(found[1])))


@pytest.mark.parametrize(
    ("position", "error", "message"),
    [
        (slice(1, 3), TypeError, "ImageSet, a slice; expected one position: for a part of the images take torch.utils"),
        ("n01440764", TypeError, "ImageSet, position 'n01440764'; expected a whole number"),
        (1.0, TypeError, "ImageSet, position 1.0; expected a whole number"),
        (6, IndexError, "ImageSet, position 6; expected one of its 6 images"),
        (-7, IndexError, "ImageSet, position -7; expected one of its 6 images"),
    ],
)
def test_positions_that_it_does_not_take(edition: Edition, position: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as raised:
        cleanset.load("standard", edition.folder)[position]
    assert str(raised.value).startswith(message)


def test_positions_that_it_takes(edition: Edition) -> None:
    images = cleanset.load("standard", edition.folder)
    for position in (np.int64(1), torch.tensor(1), -5, True):
        assert images[position][2]["file"] == FILES[1]  # type: ignore[index]
    part: Any = Subset(cast(Any, images), range(1, 3))
    assert [part[position][2]["file"] for position in (0, 1)] == FILES[1:3]


def size_and_mean(image: Any) -> torch.Tensor:
    return torch.tensor([*image.size, np.asarray(image).mean()])


def test_in_a_data_loader_with_workers(edition: Edition) -> None:
    images = cleanset.load("standard", edition.folder, transform=size_and_mean)
    assert isinstance(images, Dataset)
    batches = list(DataLoader(images, batch_size=4, num_workers=2))
    assert [tuple(images.shape) for images, _, _ in batches] == [(4, 3), (2, 3)]
    assert torch.cat([labels for _, labels, _ in batches]).tolist() == [0, 0, 278, 278, 278, 281]
    assert [name for _, _, records in batches for name in records["file"]] == FILES
    assert [text for _, _, records in batches for text in records["real_classes"]][3:] == ["278 281", "278 999", "281"]
    assert torch.cat([records["confidence"] for _, _, records in batches]).tolist()[4] == 0.375
    assert torch.cat([records["crop"][3] for _, _, records in batches]).tolist() == [31, 40, 34, 36, 10, 36]
    assert batches[0][0][1].tolist()[:2] == [20, 36]


def test_table(edition: Edition) -> None:
    table = cleanset.table("standard", edition=edition.folder)
    assert table["file"].tolist() == FILES
    assert table.attrs["notices"] == [trial(edition.export("standard"))]
    assert table["class_index"].tolist() == [0, 0, 278, 278, 278, 281]
    assert table["confidence"].tolist() == [0.75, 0.875, 0.5, 0.25, 0.375, 0.99999994]
    assert table["source_confidence"].tolist() == [0.75, 0.5, 0.5, 0.25, 0.125, 0.99999994]
    assert table["real_classes"].tolist() == ["0", "0", "278", "278 281", "278 999", "281"]
    assert table["right"].tolist() == [pd.NA, 23, pd.NA, pd.NA, 20, pd.NA]
    assert table.dtypes[["left", "rank"]].astype(str).tolist() == ["Int64", "int64"]
    assert table["encoder"].tolist()[0] == ""
    assert table["encoder"].str.startswith("Pillow ").tolist() == [False, True, False, False, True, False]


def test_other_bytes_are_not_handed_out(copy: Path) -> None:
    images = cleanset.load("standard", copy)
    (copy / FILES[0]).write_bytes((copy / FILES[2]).read_bytes())
    with pytest.raises(cleanset.CleansetError, match=rf"{FILES[0]}: SHA-256 \w+, expected \w+ as in the manifest; see"):
        images[0]
    assert images[1][2]["file"] == FILES[1]


def test_a_name_if_there_is_no_edition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CleansetError, match=r"^'scoter': no such set in this folder, .*, or 'scooter'$"):
        cleanset.load("scoter")


def test_what_to_do_when_it_is_not_there(edition: Edition, tmp_path: Path) -> None:
    (tmp_path / "edition").mkdir()
    shutil.copy(edition.folder / "params.yaml", tmp_path / "edition")
    for model, where, rev, message in (
        ("standard", "edition", None, "/edition/data/export/standard: not there; run dvc pull export@standard in "),
        ("vit", "edition", None, "params.yaml: no model 'vit'; expected one of standard"),
        (
            "standard",
            ".",
            None,
            ": neither an edition nor an export; expected a folder with params.yaml or manifest.csv, or ",
        ),
        ("standard", "nowhere", None, "/nowhere: missing; expected a folder with params.yaml or manifest.csv, or the "),
        ("standard", "edition", "v1", "/edition: a folder; rev goes with the address of a git repository, such as "),
        (
            "robust",
            edition.export("standard"),
            None,
            "manifest.csv: the set of model standard; expected model robust",
        ),
    ):
        for call in (cleanset.load, cleanset.table):
            with pytest.raises(cleanset.CleansetError) as raised:
                call(model, tmp_path / where, rev=rev)
            assert message in str(raised.value)
            assert "\n" not in str(raised.value)
    with pytest.raises(cleanset.CleansetError, match="a folder; update and force go with the address of a git repo"):
        cleanset.load("standard", tmp_path, force=True)


@pytest.mark.parametrize(("name", "command"), [("set.zip", "unzip"), ("set.TAR.GZ", "tar -xf"), ("set.tgz", "tar -xf")])
def test_a_packed_folder_is_reported(tmp_path: Path, name: str, command: str) -> None:
    """Wherever a set or images may be given; not if a folder has such a name, and no longer once it is unpacked."""
    (path := tmp_path / name).write_bytes(b"packed")
    readers: tuple[Callable[[Path], object], ...] = (
        cleanset.load,
        lambda path: verify.run(path, decode=False),
        lambda path: published_set(str(path), None, ".", "standard"),
        lambda path: open_set(str(path), Edition(tmp_path), []),
        lambda path: read_images(path, None, None),
    )
    for read in readers:
        with pytest.raises(cleanset.CleansetError, match=r"a packed folder; expected .*unpack it, as by ") as raised:
            read(path)
        assert str(raised.value).endswith(f"{command} {name}")
    path.unlink()
    path.mkdir()
    for read in readers:
        with suppress(cleanset.CleansetError):
            read(path)


@pytest.mark.long
def test_errors_by_kind(copy: Path, tmp_path: Path) -> None:
    """What the caller gave, what did not answer, what is damaged; then the same set whole again."""
    images = cleanset.load("standard", copy)
    for call, kind in (
        (lambda: cleanset.load(tmp_path / "nowhere"), cleanset.InputError),
        (lambda: cleanset.load("other", copy), cleanset.InputError),
        (lambda: cleanset.load("standard", "file:///nowhere.git"), cleanset.UnreachableError),
        (lambda: cleanset.load("http://127.0.0.1:9/release.tar"), cleanset.UnreachableError),
        (lambda: cleanset.evaluate("resnet50", images), cleanset.InputError),
    ):
        with pytest.raises(kind):
            call()
        assert issubclass(kind, cleanset.CleansetError)
    data = (copy / FILES[0]).read_bytes()
    (copy / FILES[0]).write_bytes(data[:-1])
    with pytest.raises(cleanset.DamagedError):
        images[0]
    (copy / FILES[0]).write_bytes(data)
    assert images[0][2]["file"] == FILES[0]
    (copy / "manifest.csv").write_bytes((copy / "manifest.csv").read_bytes() + b"\n")
    with pytest.raises(cleanset.DamagedError):
        cleanset.load("standard", copy)


@pytest.mark.long
def test_a_plain_sequence_without_torch(edition: Edition) -> None:
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "import cleanset; images = cleanset.load('standard', sys.argv[1])\n"
        "print(type(images).__mro__[:-1] == (type(images),), len(images), [label for _, label, _ in images])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(edition.folder)], capture_output=True, text=True, check=False
    )
    assert done.stdout == "True 6 [0, 0, 278, 278, 278, 281]\n", done.stderr


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.long
def test_a_file_that_is_not_an_image_though_its_digests_agree(copy: Path) -> None:
    large = io.BytesIO()
    Image.new("L", (20_000, 20_000)).save(large, "PNG")
    for data, why in ((b"no image", "not a JPEG or PNG"), (large.getvalue(), "Image size (400000000 pixels)")):
        (copy / FILES[0]).write_bytes(data)
        rewrite(copy, 2, source_sha256=sha256(copy / FILES[0]), file_sha256=sha256(copy / FILES[0]))
        images = cleanset.load("standard", copy)
        with pytest.raises(cleanset.CleansetError) as raised:
            images[0]
        assert str(raised.value).startswith(f"{copy / FILES[0]}: cannot be decoded ({why}")
        assert images[1][2]["file"] == FILES[1]


def test_a_set_that_verify_would_not_pass(copy: Path) -> None:
    for call in (cleanset.load, cleanset.table):

        def message(call: Callable[..., Any] = call) -> str:
            with pytest.raises(cleanset.CleansetError) as raised:
                call("standard", copy)
            return str(raised.value)

        before = {name: (copy / name).read_text() for name in ("manifest.csv", "metadata.csv", "croissant.json")}
        before["checksums.sha256"] = (copy / "checksums.sha256").read_text()
        old = sha256(copy / "manifest.csv")
        (copy / "manifest.csv").write_text((copy / "manifest.csv").read_text().split("\n")[0] + "\n")
        assert message().startswith(f"{copy}/manifest.csv: SHA-256 {sha256(copy / 'manifest.csv')}, expected {old} as ")
        describe_anew(copy, old)
        assert ": no images; expected at least one: " in message()
        (copy / "checksums.sha256").write_text("")
        assert (
            f"checksums.sha256: no SHA-256 for manifest.csv; expected {sha256(copy / 'manifest.csv')}, which it has; "
            in message()
        )
        (copy / "checksums.sha256").unlink()
        assert message().startswith(f"{copy}/checksums.sha256: missing; expected the digest of manifest.csv in it")
        for name, text in before.items():
            (copy / name).write_text(text)
        assert len(call("standard", copy)) == 6
