import os
import shutil
import tarfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from cleanset.classes import imagenet
from cleanset.dataset.archives import Location, from_table, locate, to_table
from cleanset.edition.paths import Edition, verified_images
from cleanset.errors import CleansetError
from cleanset.images.codec import decode
from cleanset.stages import preprocess
from cleanset.tables import INDEX, read_table
from tests.ten_images import LABELS, REASSESSED, TAR, Made, devkit_files, id_of, tar, ten_images, write

pytestmark = pytest.mark.slow

LAYOUTS = (
    "tar", "tar_of_folders", "flat", "per_wnid", "per_wnid_with_devkit", "kaggle", "kaggle_val", "kaggle_csv_named",
    "hugging_face_tar", "hugging_face_folder", "devkit_folder", "linked_tar", "cluster", "class_names", "jpg",
)  # fmt: skip


def lay_out(made: Made, layout: str) -> Edition:  # noqa: C901  # one plain case for each layout
    """Write the ten jpegs and their labels in a layout."""
    made.archives()
    jpegs = ten_images()
    wnid = {id_of(number): imagenet().keys[label] for number, label in enumerate(LABELS, start=1)}
    plain = {f"{name}.JPEG": data for name, data in jpegs.items()}
    hugging_face = {f"{name}_{wnid[name]}.JPEG": data for name, data in jpegs.items()}
    folders = {f"{wnid[name]}/{name}.JPEG": data for name, data in jpegs.items()}
    images = made.file("val")
    made.dataset["images"] = f"{made.raw}/val"
    match layout:
        case "tar":
            made.dataset["images"] = f"{made.raw}/{TAR}"
        case "tar_of_folders":
            write(made.file(TAR), tar({f"./val/{name}": data for name, data in folders.items()}))
            made.dataset |= {"images": f"{made.raw}/{TAR}", "devkit": None}
        case "hugging_face_tar":
            write(made.file(TAR), tar(dict(reversed(hugging_face.items()))))
            made.dataset |= {"images": f"{made.raw}/{TAR}", "devkit": None}
        case "linked_tar":
            shutil.move(made.file(TAR), made.folder / "elsewhere.tar")
            made.file(TAR).symlink_to(made.folder / "elsewhere.tar")
            made.dataset["images"] = f"{made.raw}/{TAR}"
        case "flat" | "devkit_folder":
            write_all(images, plain)
        case "per_wnid":
            write_all(images, folders)
            (images / ".DS_Store").touch()
            made.dataset["devkit"] = None
        case "per_wnid_with_devkit":
            write_all(images, folders)
        case "hugging_face_folder":
            write_all(images, hugging_face)
            made.dataset["devkit"] = None
        case "cluster":  # as people share ImageNet: the folders of val below much else
            write_all(images / "val", folders)
            others = ("meta.bin", "ILSVRC2012_img_train.tar", "valprep.sh", "train/n01440764/n01440764_18.JPEG")
            write_all(images, dict.fromkeys(others, b"x"))
        case "class_names":
            write_all(images, {f"{wnid[name]} fish/{name}.JPEG": data for name, data in jpegs.items()})
        case "jpg":
            write_all(images, {f"{name}.jpg": data for name, data in jpegs.items()})
        case "kaggle" | "kaggle_val" | "kaggle_csv_named":
            write_all(images / "ILSVRC/Data/CLS-LOC/val", plain)
            lines = [f"{name},{wnid[name]} 1 2 30 40 {wnid[name]} 5 5 9 9 \n" for name in sorted(jpegs, reverse=True)]
            write(images / "LOC_val_solution.csv", ("ImageId,PredictionString\n" + "".join(lines)).encode())
            made.dataset["devkit"] = None
            if layout == "kaggle_val":
                made.dataset["images"] += "/ILSVRC/Data/CLS-LOC/val"
            if layout == "kaggle_csv_named":
                shutil.copy(images / "LOC_val_solution.csv", made.file("labels.csv"))
                made.dataset["devkit"] = f"{made.raw}/labels.csv"
    if layout == "devkit_folder":
        write_all(made.file("kit"), devkit_files())
        made.dataset["devkit"] = f"{made.raw}/kit"
    made.settle()
    return Edition(made.folder)


def write_all(folder: Path, files: dict[str, bytes]) -> None:
    for name, data in files.items():
        write(folder / name, data)


@pytest.fixture(scope="module")
def index_of_tar(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    edition = lay_out(Made(tmp_path_factory.mktemp("tar")), "tar")
    preprocess.run(edition)
    return edition.index.read_bytes()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same_index_and_pixels(made: Made, layout: str, index_of_tar: bytes) -> None:
    edition = lay_out(made, layout)
    preprocess.run(edition)
    assert edition.index.read_bytes() == index_of_tar

    index = read_table(edition.index, INDEX, imagenet())
    located = verified_images(edition, made.dataset["images"], index, imagenet())
    edition.locations.unlink()  # in a clone that pulled only the index, jpegs are looked up
    looked_up = verified_images(edition, made.dataset["images"], index, imagenet())
    for name, data in ten_images().items():
        assert located.read(name) == looked_up.read(name) == data
        assert np.array_equal(np.asarray(decode(located.read(name))), np.asarray(decode(data)))


def test_what_the_index_says(made: Made) -> None:
    edition = lay_out(made, "tar")
    preprocess.run(edition)
    index = pq.read_table(edition.index).to_pylist()
    assert [row["image_id"] for row in index] == [id_of(number) for number in range(1, 11)]
    assert tuple(row["ilsvrc_class"] for row in index) == LABELS
    assert [row["real_classes"] for row in index] == [sorted(labels) for labels in REASSESSED]
    assert [row["single"] for row in index] == [True, False, False, True, False, True, True, True, True, True]
    assert [row["mode"] for row in index] == ["RGB"] * 7 + ["L", "CMYK", "RGB"]
    assert (index[0]["width"], index[0]["height"]) == (43, 31)
    assert (index[9]["width"], index[9]["height"]) == (50, 30)  # its EXIF orientation would make it 30 x 50
    assert index[3]["size"] == len(ten_images()[id_of(4)])


@pytest.mark.parametrize("layout", ["tar", "flat", "kaggle"])
def test_any_number_of_images(made: Made, layout: str) -> None:
    edition = lay_out(made, layout)
    made.params(expect_images=None)
    if layout == "tar":
        jpegs = ten_images()
        write(made.file(TAR), tar({f"{id_of(n)}.JPEG": jpegs[id_of(n)] for n in (9, 4)}))
        made.settle()
    else:
        for path in sorted((made.folder / made.raw / "val").rglob("*.JPEG")):
            if path.stem not in (id_of(4), id_of(9)):
                path.unlink()
    preprocess.run(edition)
    index = pq.read_table(edition.index).to_pylist()
    assert [(row["image_id"], row["ilsvrc_class"], row["real_classes"]) for row in index] == [
        ("ILSVRC2012_val_00000004", 278, [278]),
        ("ILSVRC2012_val_00000009", 998, [7]),
    ]


def test_a_folder_per_wnid_fits_timms_list(made: Made) -> None:
    edition = lay_out(made, "per_wnid")
    made.params(reassessed="timm")
    preprocess.run(edition)
    index = pq.read_table(edition.index).to_pylist()
    assert [row["real_classes"] for row in index[:5]] == [[], [795, 970], [230, 231], [809], [516, 850]]


def test_a_pipe_in_place_of_an_image_since_preprocess(made: Made) -> None:
    edition = lay_out(made, "flat")
    preprocess.run(edition)
    images = verified_images(edition, made.dataset["images"], read_table(edition.index, INDEX, imagenet()), imagenet())
    path = made.file("val") / f"{id_of(4)}.JPEG"
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(CleansetError, match=rf"{id_of(4)}\.JPEG: a named pipe; expected a regular file"):
        images.read(id_of(4))
    assert images.read(id_of(3)) == ten_images()[id_of(3)]


def test_images_that_another_thread_looks_up_meanwhile(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """The archive was packed again since preprocess; two threads notice it at the same time."""
    edition = lay_out(made, "tar")
    preprocess.run(edition)
    write(made.file(TAR), tar({f"{name}.JPEG": data for name, data in reversed(ten_images().items())}))
    images = verified_images(edition, made.dataset["images"], read_table(edition.index, INDEX, imagenet()), imagenet())
    read_at, waiting = images._read, [id_of(7)]

    def read(name: str) -> bytes:
        try:
            return read_at(name)
        except CleansetError:
            if waiting:  # the other thread reads its image between this one's failure and its own look-up
                assert images.read(waiting.pop()) == ten_images()[id_of(7)]
            raise

    monkeypatch.setattr(images, "_read", read)
    assert images.read(id_of(3)) == ten_images()[id_of(3)]


def with_records(records: bytes, kind: bytes = tarfile.XHDTYPE) -> bytes:
    """The official tar of two images, the second with these pax records before it."""
    first, second = ten_images()[id_of(1)], ten_images()[id_of(2)]
    extended = tarfile.TarInfo("PaxHeaders/image")
    extended.type = kind
    members = [
        (tarfile.TarInfo(f"{id_of(1)}.JPEG"), first),
        (extended, records),
        (tarfile.TarInfo(f"{id_of(2)}.JPEG"), second),
    ]
    return tar(members, "w")


def record(key: str, value: str) -> bytes:
    body = f" {key}={value}\n".encode()
    length = next(size for size in range(len(body), len(body) + 9) if size == len(body) + len(str(size)))
    return str(length).encode() + body


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE])
def test_pax_records_that_every_tar_reads(kind: bytes, tmp_path: Path) -> None:
    path = tmp_path / TAR
    records = record("mtime", "1351890123.5") + record("comment", "\u00e9 of " + 200 * "x") + record("uid", "0")
    path.write_bytes(with_records(records, kind))
    assert [at.read() for at in locate(path).values()] == [ten_images()[id_of(1)], ten_images()[id_of(2)]]


def test_the_table_of_locations_is_read_as_written() -> None:
    images = Path("raw/images.tar")
    of_tar = {"a": Location("raw/images.tar", 512, 7), "b": Location("raw/images.tar", 2048, 9)}
    assert from_table(to_table(of_tar, images), images) == of_tar
    of_folder = {"a": Location("raw/n01440764/é b.jpg", 0, 7)}
    assert from_table(to_table(of_folder, Path("raw")), Path("raw")) == of_folder
