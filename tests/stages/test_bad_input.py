"""Every wrong input is one line that says file, field, what was found, what was expected and what to do."""

import hashlib
import io
import json
import os
import random
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import timm
import torch
from safetensors.torch import save_file

from cleanset.dataset.ilsvrc import wnids
from cleanset.edition.paths import Edition
from cleanset.tables import CROP_SCORES, REJECTED, SELECTION, VOTES, write_table
from cleanset.validation import shown
from tests.small_disks import small_disk_at
from tests.small_edition import of_one_model
from tests.ten_images import (
    DEVKIT,
    REASSESSED,
    SCORED,
    TAR,
    TRUTH_LINES,
    Made,
    devkit_files,
    drawn_image,
    id_of,
    jpeg,
    official,
    tar,
    ten_images,
    with_size,
    write,
)

AT_TAR = f"data/raw/{TAR}"
AT_DEVKIT = f"data/raw/{DEVKIT}"
FOURTH = id_of(4)


def with_image(made: Made, data: bytes, name: str = FOURTH) -> Made:
    """The edition with other bytes for one image."""
    return made.archives(images=official(ten_images() | {name: data}))


def with_member(made: Made, info: tarfile.TarInfo, data: bytes = b"") -> Made:
    """The edition with one more member in the tar."""
    members = [(tarfile.TarInfo(f"{name}.JPEG"), content) for name, content in ten_images().items()]
    return made.archives(images=tar([*members, (info, data)]))


def a_member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


class TestImages:
    CANNOT = f"{AT_TAR}: {FOURTH} cannot be read (*{{}}*); expected a whole JPEG: fetch it again"

    @pytest.mark.parametrize("cut", [20, 100, 400])
    def test_truncated(self, made: Made, cut: int) -> None:
        data = ten_images()[FOURTH]
        with_image(made, data[:-cut]).fails(self.CANNOT.format("truncated"))

    def test_cut_within_the_header(self, made: Made) -> None:
        with_image(made, ten_images()[FOURTH][:20]).fails(self.CANNOT.format(""))

    def test_empty(self, made: Made) -> None:
        with_image(made, b"").fails(self.CANNOT.format("empty"))

    def test_png_under_another_name(self, made: Made) -> None:
        out = io.BytesIO()
        drawn_image(20, 20).save(out, format="PNG")
        with_image(made, out.getvalue()).fails(self.CANNOT.format("not a JPEG"))

    def test_text_under_another_name(self, made: Made) -> None:
        with_image(made, b"<html>404</html>").fails(self.CANNOT.format("not a JPEG"))

    def test_decompression_bomb(self, made: Made) -> None:
        with_image(made, with_size(jpeg(drawn_image(16, 16)), 65_000, 65_000)).fails(
            self.CANNOT.format("4225000000 pixels) exceeds limit of")
        )

    def test_small_decompression_bomb(self, made: Made) -> None:
        with_image(made, with_size(jpeg(drawn_image(16, 16)), 12_000, 12_000)).fails(
            self.CANNOT.format("12000 x 12000 pixels, more than 100,000,000")
        )

    def test_extreme_shape(self, made: Made) -> None:
        with_image(made, jpeg(drawn_image(1, 65_000))).fails(
            self.CANNOT.format("1 x 65000 pixels, one side more than 200 times the other")
        )

    def test_many_scans(self, made: Made) -> None:
        data = jpeg(drawn_image(16, 16), progressive=True)
        last = data.rindex(b"\xff\xda")
        with_image(made, data[:last] + 200 * data[last:-2] + data[-2:]).fails(self.CANNOT.format("scans, more than 64"))

    def test_damaged_exif_header(self, made: Made) -> None:
        data = ten_images()[FOURTH]
        with_image(made, data[:2] + b"\xff\xe1\0\x10Exif\0\0nonsense" + data[2:]).succeeds("preprocess")

    @pytest.mark.parametrize("name", ["holiday.JPEG", "ILSVRC2012_val_4.JPEG", f"{FOURTH}.jpg", "ILSVRC2012_val.txt"])
    def test_wrongly_named_in_a_tar(self, made: Made, name: str) -> None:
        with_member(made, a_member(name), b"x").fails(
            f"{AT_TAR}, member '{name}': not the name of a validation image; "
            "expected ILSVRC2012_val_00000001.JPEG or alike: remove or rename it"
        )

    def test_a_line_break_in_a_name_stays_on_the_line(self, made: Made) -> None:
        with_member(made, a_member("a\nb.JPEG"), b"x").fails(f"{AT_TAR}, member 'a\\nb.JPEG': not the name of a *")

    def test_duplicate_in_a_tar(self, made: Made) -> None:
        with_member(made, a_member(f"again/{FOURTH}.JPEG"), b"x").fails(
            f"{AT_TAR}, member 'again/{FOURTH}.JPEG': {FOURTH} occurs twice; remove one of the two"
        )

    def test_missing(self, made: Made) -> None:
        images = ten_images()
        del images[FOURTH]
        made.archives(images=official(images)).fails(
            f"{AT_TAR}: 9 images, expected 10 (dataset.expect_images); the first that is missing is {FOURTH}: "
            "complete the set or correct params.yaml"
        )

    def test_too_many(self, made: Made) -> None:
        made.archives()
        made.params(expect_images=9)
        made.fails(f"{AT_TAR}: 10 images, expected 9 (dataset.expect_images): complete the set or correct params.yaml")

    def test_number_beyond_the_labels(self, made: Made) -> None:
        images = ten_images()
        images[id_of(11)] = images.pop(FOURTH)
        made.archives(images=official(images)).fails(
            f"{AT_DEVKIT}, ILSVRC2012_validation_ground_truth.txt: no label for ILSVRC2012_val_00000011; it lists "
            "10 images: remove that image, or take the labels that belong to it (dataset.devkit)"
        )


class TestFolders:
    def folder(self, made: Made, files: dict[str, bytes], **dataset: Any) -> Made:
        made.archives()
        for name, data in files.items():
            write(made.file("val") / name, data)
        made.params(images="data/raw/val", **dataset)
        return made

    def test_wrong_wnid_folder(self, made: Made) -> None:
        files = {f"n01440764/{FOURTH}.JPEG": ten_images()[FOURTH]}
        self.folder(made, files, expect_images=1).fails(
            f"data/raw/val/n01440764/{FOURTH}.JPEG: {FOURTH} lies under n01440764, but {AT_DEVKIT}, "
            "ILSVRC2012_validation_ground_truth.txt has n02119789; move it"
        )

    def test_wrong_wnid_in_the_name(self, made: Made) -> None:
        files = {f"n02119789/{FOURTH}_n01440764.JPEG": b"x"}
        self.folder(made, files).fails(
            f"data/raw/val/n02119789/{FOURTH}_n01440764.JPEG: n01440764 in the name, n02119789 as the folder; "
            "expected the same: move or rename it"
        )

    def test_unknown_wnid_in_the_name(self, made: Made) -> None:
        self.folder(made, {f"{FOURTH}_n99999999.JPEG": b"x"}).fails(
            f"data/raw/val/{FOURTH}_n99999999.JPEG: n99999999 is not one of the 1,000 wnids; "
            "take the name of the official image"
        )

    def test_folder_that_is_no_wnid(self, made: Made) -> None:
        self.folder(made, {f"foxes/{FOURTH}.JPEG": b"x"}).fails(
            "data/raw/val/foxes: not one of the 1,000 wnids; expected folders like n01440764: *"
        )

    def test_the_same_image_in_two_folders(self, made: Made) -> None:
        self.folder(made, {f"n01440764/{FOURTH}.JPEG": b"x", f"n02119789/{FOURTH}.JPEG": b"x"}).fails(
            f"data/raw/val/n02119789/{FOURTH}.JPEG: {FOURTH} occurs twice; remove one of the two"
        )

    def test_wrongly_named(self, made: Made) -> None:
        self.folder(made, {"readme.txt": b"x"}).fails(
            "data/raw/val/readme.txt: not the name of a validation image; "
            "expected ILSVRC2012_val_00000001.JPEG or alike: remove or rename it"
        )

    def test_huge_file(self, made: Made) -> None:
        self.folder(made, {f"{FOURTH}.JPEG": b""})
        os.truncate(made.file("val") / f"{FOURTH}.JPEG", 2**30)
        made.fails(
            f"data/raw/val/{FOURTH}.JPEG: 1,073,741,824 bytes; expected at most 67,108,864: take the official file"
        )

    def test_empty_folder(self, made: Made) -> None:
        self.folder(made, {".DS_Store": b"x"}).fails(
            "data/raw/val: holds no image; expected ILSVRC2012_val_00000001.JPEG and so on"
        )

    def test_missing_folder(self, made: Made) -> None:
        self.folder(made, {}).fails("data/raw/val: missing; put it there or correct params.yaml")

    def test_link_to_nowhere(self, made: Made) -> None:
        self.folder(made, {f"{id_of(1)}.JPEG": b"x"})
        (made.file("val") / f"{FOURTH}.JPEG").symlink_to("nowhere")
        made.fails(f"data/raw/val/{FOURTH}.JPEG: No such file or directory")

    def test_flat_folder_without_labels(self, made: Made) -> None:
        self.folder(made, {f"{FOURTH}.JPEG": b"x"}, expect_images=1, devkit=None).fails(
            f"data/raw/val: {FOURTH} has no label; expected dataset.devkit, a folder per wnid, "
            "or names that end in a wnid"
        )

    @pytest.mark.parametrize(
        ("csv", "message"),
        [
            (
                f"ImageId,PredictionString\n{FOURTH},fox 1 2 3 4\n",
                f", line 2: '{FOURTH},fox 1 2 3 4'; expected ImageId ILSVRC2012_val_00000001 and a "
                "PredictionString that begins with a wnid",
            ),
            (
                f"ImageId,PredictionString\n{id_of(1)},n01440764 1 2 3 4\n{id_of(1)},n02119789 1 2 3 4\n",
                f", line 3: {id_of(1)} a second time; expected one line for every image",
            ),
            (
                f"ImageId,PredictionString\n{FOURTH}\n",
                ", line 2: 1 cells; expected ImageId,PredictionString",
            ),
            (
                f'ImageId,PredictionString\n"{FOURTH},n02119789 1 2 3 4\n',
                ", line 2: not CSV (unexpected end of data); expected ImageId,PredictionString",
            ),
            (f"{FOURTH},n02119789\n", f", line 1: '{FOURTH},n02119789'; expected the header ImageId,PredictionString"),
            (
                f"ImageId,PredictionString\n{FOURTH},n02119789 1 2 3 4\n",
                ": 1 images; expected one line for every image from 1 on",
            ),
            ("ImageId,PredictionString\n", ": 0 images; expected one line for every image from 1 on"),
        ],
    )
    @pytest.mark.parametrize("images", ["data/raw/val", "data/raw/val/ILSVRC/Data/CLS-LOC/val"])
    def test_kaggle_list(self, made: Made, csv: str, message: str, images: str) -> None:
        self.kaggle(made, csv)
        made.params(images=images)
        with (made.folder / "raw.md5").open("a") as file:
            file.write(f"{hashlib.md5(csv.encode()).hexdigest()}  {self.AT_KAGGLE}\n")
        made.fails(f"{self.AT_KAGGLE}{message}")

    AT_KAGGLE = "data/raw/val/LOC_val_solution.csv"

    def kaggle(self, made: Made, csv: str) -> None:
        files = {f"ILSVRC/Data/CLS-LOC/val/{FOURTH}.JPEG": b"x", "LOC_val_solution.csv": csv.encode()}
        self.folder(made, files, expect_images=1, devkit=None)

    def test_kaggle_list_without_a_checksum(self, made: Made) -> None:
        self.kaggle(made, "")
        made.fails(f"raw.md5: no line for {self.AT_KAGGLE}; add what md5sum {self.AT_KAGGLE} prints")

    def test_changed_kaggle_list(self, made: Made) -> None:
        self.kaggle(made, "")
        with (made.folder / "raw.md5").open("a") as file:
            file.write(f"{'0' * 32}  {self.AT_KAGGLE}\n")
        made.fails(f"{self.AT_KAGGLE}: MD5 {hashlib.md5(b'').hexdigest()}, expected {'0' * 32} as in raw.md5: *")


class TestTar:
    @pytest.mark.parametrize("name", [f"../{FOURTH}.JPEG", f"val/../../{FOURTH}.JPEG", f"/etc/{FOURTH}.JPEG"])
    def test_path_outside(self, made: Made, name: str) -> None:
        with_member(made, a_member(name), b"x").fails(
            f"{AT_TAR}, member '{name}': a path outside the archive; take the official archive"
        )

    @pytest.mark.parametrize(
        "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE]
    )
    def test_link_or_device(self, made: Made, kind: bytes) -> None:
        name = f"{id_of(11)}.JPEG"
        with_member(made, a_member(name, kind, "/etc/passwd")).fails(
            f"{AT_TAR}, member '{name}': a link or device; expected plain files only: take the official archive"
        )

    SPARSE = "*: a sparse file; expected plain files only: take the official archive"

    def test_sparse_member(self, made: Made) -> None:
        with_member(made, a_member(f"{id_of(11)}.JPEG", tarfile.GNUTYPE_SPARSE)).fails(self.SPARSE)

    @pytest.mark.parametrize(
        ("headers", "message"),
        [
            ({"GNU.sparse.map": "0,1"}, SPARSE),
            ({"GNU.sparse.map": ""}, "*: not an uncompressed tar (invalid literal *); expected *"),
            ({"GNU.sparse.size": "3"}, SPARSE),
            ({"GNU.sparse.name": "x"}, SPARSE),
            ({"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}, "*: not an uncompressed tar (*); expected *"),
            ({"size": "-1024"}, "*: -1,024 bytes; expected at most 67,108,864: take the official file"),
            ({"path": "../x"}, "*, member '../x': a path outside the archive; take the official archive"),
        ],
    )
    def test_odd_pax_headers(self, made: Made, headers: dict[str, str], message: str) -> None:
        member = a_member(f"{id_of(11)}.JPEG")
        member.pax_headers = headers
        with_member(made, member, b"no number\n" + bytes(600)).fails(message)

    def test_huge_member(self, made: Made) -> None:
        info = a_member(f"{id_of(11)}.JPEG")
        info.size = 2**40
        header = info.tobuf()
        made.archives(images=official({id_of(1): b"x"})[:1024] + header).fails(
            f"{AT_TAR}, member '{id_of(11)}.JPEG': 1,099,511,627,776 bytes; expected at most 67,108,864: "
            "take the official file"
        )

    def test_truncated_within_a_image(self, made: Made) -> None:
        made.archives(images=official(ten_images())[:5000]).fails(
            f"{AT_TAR}: not an uncompressed tar (unexpected end of data); expected ILSVRC2012_img_val.tar: "
            "decompress it or fetch it again"
        )

    @pytest.mark.parametrize("more", [0, 100])
    def test_truncated_between_images_or_in_a_header(self, made: Made, more: int) -> None:
        """Python's tarfile takes both for the end of the archive."""
        whole = official(ten_images())
        second = whole.index(f"{id_of(2)}.JPEG".encode())
        made.archives(images=whole[: second + more])
        made.params(expect_images=None)
        made.fails(f"{AT_TAR}: no end mark after {second:,} bytes: truncated or damaged; fetch it again")

    def test_damaged_header(self, made: Made) -> None:
        whole = official(ten_images())
        second = whole.index(f"{id_of(2)}.JPEG".encode())
        made.archives(images=whole[:second] + b"\xff" * 20 + whole[second + 20 :])
        made.params(expect_images=None)
        made.fails(f"{AT_TAR}: no end mark after {second:,} bytes: truncated or damaged; fetch it again")

    @pytest.mark.parametrize("compression", ["gz", "bz2", "xz"])
    def test_compressed(self, made: Made, compression: str) -> None:
        data = tar({f"{name}.JPEG": data for name, data in ten_images().items()}, f"w:{compression}")
        made.archives(images=data).fails(
            f"{AT_TAR}: not an uncompressed tar (*); expected ILSVRC2012_img_val.tar: decompress it or fetch it again"
        )

    def test_empty_archive(self, made: Made) -> None:
        made.archives(images=tar({})).fails(
            f"{AT_TAR}: holds no image; expected ILSVRC2012_val_00000001.JPEG and so on"
        )

    def test_no_archive_at_all(self, made: Made) -> None:
        made.archives(images=b"").fails(f"{AT_TAR}: not an uncompressed tar (*empty*); expected *")


class TestDevkit:
    def kit(self, made: Made, truth: str = TRUTH_LINES, names: list[str] | None = None) -> Made:
        return made.archives(devkit=tar(devkit_files(truth, names), "w:gz"))

    def test_other_year_by_its_names(self, made: Made) -> None:
        files = {
            "ILSVRC2014_devkit/data/ILSVRC2014_clsloc_validation_ground_truth.txt": TRUTH_LINES.encode(),
            "ILSVRC2014_devkit/data/meta_clsloc.mat": b"x",
        }
        made.archives(devkit=tar(files, "w:gz")).fails(
            f"{AT_DEVKIT}: no ILSVRC2012_validation_ground_truth.txt in it; expected ILSVRC2012_devkit_t12: "
            "this is the devkit of another year or task"
        )

    def test_other_year_by_its_wnids(self, made: Made) -> None:
        names = ["n00000001", *wnids()[1:]]
        self.kit(made, names=names).fails(
            f"{AT_DEVKIT}, meta.mat: 1000 classes, 999 of them ILSVRC2012's; expected its 1,000 with the ids 1 to "
            "1000: this is the devkit of another year or task, take ILSVRC2012_devkit_t12"
        )

    def test_a_class_twice(self, made: Made) -> None:
        self.kit(made, names=[wnids()[1], *wnids()[1:]]).fails(f"{AT_DEVKIT}, meta.mat: 1000 classes, 999 of *")

    def test_too_few_classes(self, made: Made) -> None:
        self.kit(made, names=list(wnids()[:200])).fails(f"{AT_DEVKIT}, meta.mat: 200 classes, 200 of them *")

    @pytest.mark.parametrize("line", ["0", "1001", "fox", "", "-1", "1.5", "²", "٣", "9" * 5000])
    def test_ground_truth(self, made: Made, line: str) -> None:
        found = f"'{line}'" if line.isascii() and len(line) < 80 else "'*'*"
        self.kit(made, TRUTH_LINES.replace("722\n", f"{line}\n")).fails(
            f"{AT_DEVKIT}, ILSVRC2012_validation_ground_truth.txt, line 4: {found}; "
            "expected an ILSVRC id from 1 to 1000"
        )

    def test_no_archive(self, made: Made) -> None:
        made.archives(devkit=b"<html>sign up first</html>").fails(f"{AT_DEVKIT}: not a tar archive (*); fetch it again")

    def test_truncated(self, made: Made) -> None:
        made.archives(devkit=tar(devkit_files(), "w:gz")[:-2000]).fails(
            f"{AT_DEVKIT}: not a tar archive (*); fetch it again"
        )

    def test_damaged(self, made: Made) -> None:
        whole = tar(devkit_files(), "w:gz")
        made.archives(devkit=whole[:20] + b"\xff" * 50 + whole[70:]).fails(
            f"{AT_DEVKIT}: not a tar archive (*); fetch it again"
        )

    def test_truncated_xz(self, made: Made) -> None:
        whole = tar(devkit_files(), "w:xz")
        middle = len(whole) // 2
        made.archives(devkit=whole[:middle] + b"\xff" * 50 + whole[middle + 50 :]).fails(
            f"{AT_DEVKIT}: not a tar archive (*); fetch it again"
        )

    def test_sparse_member(self, made: Made) -> None:
        member = a_member("ILSVRC2012_devkit_t12/data/meta.mat")
        member.pax_headers = {"GNU.sparse.map": "0,1"}
        made.archives(devkit=tar([(member, b"x")], "w:gz")).fails(
            f"{AT_DEVKIT}, member 'ILSVRC2012_devkit_t12/data/meta.mat': a sparse file; expected *"
        )

    def test_endless_archive(self, made: Made) -> None:
        """Four times 64 MiB of zeros are a quarter of a MiB compressed."""
        members = [(a_member(f"{number}"), bytes(2**26)) for number in range(4)]
        made.archives(devkit=tar(members, "w:gz")).fails(
            f"{AT_DEVKIT}: more than 268,435,456 bytes unpacked; fetch it again"
        )

    def test_damaged_table(self, made: Made) -> None:
        made.archives(devkit=tar(devkit_files() | {"ILSVRC2012_devkit_t12/data/meta.mat": b"MATLAB"}, "w:gz")).fails(
            f"{AT_DEVKIT}, meta.mat: no table of synsets as in ILSVRC2012's devkit (*); "
            "expected meta.mat of ILSVRC2012_devkit_t12.tar.gz"
        )

    def test_empty_folder(self, made: Made) -> None:
        made.archives()
        made.file("kit").mkdir()
        made.params(devkit="data/raw/kit")
        made.fails("data/raw/kit: no ILSVRC2012_validation_ground_truth.txt in it; expected *")


class TestReassessed:
    AT = "data/raw/reassessed.json"

    @pytest.mark.parametrize(("lists", "found"), [(REASSESSED[:-1], 9), ([*REASSESSED, [1]], 11), ([], 0)])
    def test_wrong_length(self, made: Made, lists: list[list[int]], found: int) -> None:
        made.archives(reassessed=json.dumps(lists)).fails(
            f"{self.AT}: {found} lists, expected 10, one for each image: "
            "take the list that belongs to these images (dataset.reassessed)"
        )

    def test_timms_list_for_ten_images(self, made: Made) -> None:
        made.archives()
        made.params(reassessed="timm")
        made.fails(
            "timm's reassessed labels: 50000 lists, expected 10, one for each image: "
            "take the list that belongs to these images (dataset.reassessed)"
        )

    def test_not_json(self, made: Made) -> None:
        made.archives(reassessed="[[1],\n[2").fails(
            f"{self.AT}, line 2: not JSON (Expecting ',' delimiter); expected a list of lists of class indices"
        )

    @pytest.mark.parametrize("content", ["\udcff", "[" * 100_000, "[[" + "9" * 5000 + "]]"])
    def test_not_json_at_all(self, made: Made, content: str) -> None:
        made.archives()
        made.file("reassessed.json").write_bytes(content.encode("utf-8", "surrogateescape"))
        made.settle()
        made.fails(f"{self.AT}: not JSON (*); expected a list of lists of class indices")

    def test_not_a_list(self, made: Made) -> None:
        made.archives(reassessed="{}").fails(f"{self.AT}: a dict; expected a list of lists of class indices")

    @pytest.mark.parametrize("labels", [[1000], [-1], [5, 5], [True], ["5"], [5.0], 5, None])
    def test_wrong_labels(self, made: Made, labels: Any) -> None:
        lists: list[Any] = [*REASSESSED[:3], labels, *REASSESSED[4:]]
        made.archives(reassessed=json.dumps(lists)).fails(
            f"{self.AT}, image 4: {labels!r}; expected a list of distinct class indices 0 to 999"
        )


class TestRawFiles:
    @pytest.mark.parametrize(
        ("name", "source"),
        [
            (TAR, "Validation images (all tasks), 6.3 GB"),
            (DEVKIT, "Development kit (Task 1 & 2), 2.5 MB"),
        ],
    )
    def test_missing_archive(self, made: Made, name: str, source: str) -> None:
        made.archives().file(name).unlink()
        made.fails(
            f"data/raw/{name}: missing; download it from image-net.org, after signing up: ILSVRC2012, {source}; "
            "put it there or link to it"
        )

    def test_missing_list(self, made: Made) -> None:
        made.archives().file("reassessed.json").unlink()
        made.fails("data/raw/reassessed.json: missing; put it there or correct params.yaml")

    def test_other_bytes(self, made: Made) -> None:
        data = made.archives().file(TAR).read_bytes()
        made.file(TAR).write_bytes(data + b"\0")
        found, expected = (hashlib.md5(content).hexdigest() for content in (data + b"\0", data))
        made.fails(
            f"{AT_TAR}: MD5 {found}, expected {expected} as in raw.md5: fetch it again, "
            "or correct raw.md5 if these bytes are meant"
        )

    def test_no_line(self, made: Made) -> None:
        digests = made.archives().folder / "raw.md5"
        digests.write_text("".join(line for line in digests.open() if "devkit" not in line))
        made.fails(f"raw.md5: no line for {AT_DEVKIT}; add what md5sum {AT_DEVKIT} prints")

    @pytest.mark.parametrize("line", ["abc  data/raw/x", "", "MD5 (x) = 0" * 2, "0" * 64 + "  x"])
    def test_malformed_line(self, made: Made, line: str) -> None:
        digests = made.archives().folder / "raw.md5"
        digests.write_text(f"{'0' * 32}  other\n{line}\n")
        made.fails(f"raw.md5, line 2: {shown(line)}; expected what md5sum prints: digest, two spaces, path")

    def test_a_file_twice(self, made: Made) -> None:
        digests = made.archives().folder / "raw.md5"
        digests.write_text(digests.read_text() + f"{'0' * 32}  {AT_TAR}\n")
        made.fails(f"raw.md5, line 4: '{AT_TAR}' a second time; expected one line: remove one")

    def test_no_digests(self, made: Made) -> None:
        (made.archives().folder / "raw.md5").unlink()
        made.fails("raw.md5: missing; expected a line of md5sum for each raw file")

    def test_digests_in_another_encoding(self, made: Made) -> None:
        (made.archives().folder / "raw.md5").write_bytes(b"\xff\xfe0")
        made.fails("raw.md5: not UTF-8 at byte 0; expected a line of md5sum for each raw file")


class TestParams:
    """The first wrong key of params.yaml, by its name."""

    def fails(self, made: Made, message: str, text: str) -> None:
        made.archives()
        (made.folder / "params.yaml").write_text(text)
        made.fails(f"params.yaml: {message}")

    BASE = "root: .\ndataset: {images: x}\n"
    MODEL = "models:\n  standard: {source: timm, name: resnet18}\n"

    @pytest.mark.parametrize(
        ("message", "text"),
        [
            (
                "score: unknown key 'batchsize'; expected engine, device, precision, batch_size",
                f"{BASE}{MODEL}score: {{batchsize: 5}}\n",
            ),
            (
                "unknown key 'scores'; expected root, dataset, models, score, select, review, export, count",
                f"{BASE}{MODEL}scores: {{}}\n",
            ),
            (
                "models.standard: unknown key 'tag'; expected source, name, threat_model, weights, sha256",
                f"{BASE}models:\n  standard: {{source: timm, name: resnet18, tag: a1}}\n",
            ),
            (
                "score.batch_size: expected an integer; found '256'",
                f"{BASE}{MODEL}score: {{batch_size: '256'}}\n",
            ),
            (
                "score.precision: expected 'float64', 'float32', 'tf32' or 'bfloat16'; found 'float16'",
                f"{BASE}{MODEL}score: {{precision: float16}}\n",
            ),
            (
                "select.candidates: expected greater than or equal to 1; found 0",
                f"{BASE}{MODEL}select: {{candidates: 0}}\n",
            ),
            (
                "score.device: String should match pattern '^(auto|cpu|cuda(:[0-9]{1,3})?)$'; found 'gpu'",
                f"{BASE}{MODEL}score: {{device: gpu}}\n",
            ),
            ("dataset: Field required", f"root: .\n{MODEL}"),
            ("models: Dictionary should have at least 1 item after validation, not 0", f"{BASE}models: {{}}\n"),
            (
                "models.Standard.[key]: String should match pattern '^[a-z][a-z0-9_]*$'; found 'Standard'",
                f"{BASE}models:\n  Standard: {{source: timm, name: resnet18}}\n",
            ),
            (
                "models.standard: weights without sha256: a change would go unseen; add what sha256sum w.pt prints",
                f"{BASE}models:\n  standard: {{source: timm, name: resnet18, weights: w.pt}}\n",
            ),
            (
                "models.standard.sha256: String should match pattern '^[0-9a-f]{64}$'; found 'abc'",
                f"{BASE}models:\n  standard: {{source: timm, name: resnet18, weights: w.pt, sha256: abc}}\n",
            ),
            (
                "models.standard: threat_model is needed for source robustbench, and for no other",
                f"{BASE}models:\n  standard: {{source: robustbench, name: Salman2020Do_R50}}\n",
            ),
            (
                "models.standard: threat_model is needed for source robustbench, and for no other",
                f"{BASE}models:\n  standard: {{source: timm, name: resnet18, threat_model: Linf}}\n",
            ),
            (
                "dataset.classes: 'n99999999' is unknown or doubled; expected all, or a list of distinct wnids of "
                "ILSVRC2012; found ['n01440764', 'n99999999']",
                f"root: .\ndataset: {{images: x, classes: [n01440764, n99999999]}}\n{MODEL}",
            ),
            (
                "dataset.classes: 'n01440764' is unknown or doubled; expected *",
                f"root: .\ndataset: {{images: x, classes: [n01440764, n01440764]}}\n{MODEL}",
            ),
            (
                "dataset.classes: ['n01440764'] is unknown or doubled; expected *",
                f"root: .\ndataset: {{images: x, classes: [[n01440764]]}}\n{MODEL}",
            ),
            (
                "dataset.classes: expected all, or a list of distinct wnids of ILSVRC2012; found []",
                f"root: .\ndataset: {{images: x, classes: []}}\n{MODEL}",
            ),
            (
                "select.tiers: expected [top5] or [top5, reserve] or [top5, reserve, relaxed]; found []",
                f"{BASE}{MODEL}select: {{tiers: []}}\n",
            ),
            ("select.tiers: expected [top5] or *; found ['reserve']", f"{BASE}{MODEL}select: {{tiers: [reserve]}}\n"),
            ("select.tiers: expected [top5] or *", f"{BASE}{MODEL}select: {{tiers: [top5, relaxed]}}\n"),
            (
                "export.images_per_class: expected less than or equal to 1000; found 2147483648",
                f"{BASE}{MODEL}export: {{images_per_class: 2147483648}}\n",
            ),
            (
                "models.b.weights: that of models.a; expected another network for each role: correct it, or *",
                f"{BASE}models:\n  a: {{source: timm, name: x, weights: w, sha256: {'a' * 64}}}\n"
                f"  b: {{source: timm, name: x, weights: w, sha256: {'b' * 64}}}\n",
            ),
            (
                "models.b.sha256: that of models.a; expected another network for each role: correct it, or *",
                f"{BASE}models:\n  a: {{source: timm, name: x, sha256: {'a' * 64}}}\n"
                + f"  b: {{source: timm, name: y, sha256: {'a' * 64}}}\n",
            ),
            ("the file: expected keys and values; found None", ""),
        ],
    )
    def test_wrong(self, made: Made, message: str, text: str) -> None:
        self.fails(made, message, text)

    @pytest.mark.parametrize(
        ("message", "text"),
        [
            (", line 3: not YAML: did not find expected ',' or '}'", "root: .\ndataset: {images: x\n"),
            (
                ", line 1: a tag, '!!python/object:os.system'; expected text, numbers, lists and tables",
                "root: !!python/object:os.system x\n",
            ),
        ],
    )
    def test_not_the_yaml_of_params(self, made: Made, message: str, text: str) -> None:
        made.archives()
        (made.folder / "params.yaml").write_text(text)
        made.fails(f"params.yaml{message}")

    def test_missing_file(self, made: Made) -> None:
        made.fails("params.yaml: missing; expected the folder of an edition, with params.yaml in UTF-8 (see README)")

    def test_other_encoding(self, made: Made) -> None:
        (made.folder / "params.yaml").write_bytes(b"root: \xff")
        made.fails(
            "params.yaml: not UTF-8 at byte 6; "
            "expected the folder of an edition, with params.yaml in UTF-8 (see README)"
        )

    def test_a_key_that_a_later_stage_needs(self, made: Made, repository: Path) -> None:
        """DVC would say so when that stage's turn comes, after the scoring."""
        made.archives()
        (made.folder / "dvc.yaml").write_text(of_one_model((repository / "dvc.yaml").read_text()))
        made.others = {"dataset": made.dataset | {"classes": "all"}} | {
            key: {} for key in ("select", "review", "export")
        }
        made.others |= {"score": {"precision": "float64"}, "review": {"min_crop_pixels": 32}}
        made.params()
        made.fails(
            "params.yaml: no export.images_per_class, which stage review_apply of dvc.yaml names: add it, as in "
            "imagenet/params.yaml"
        )
        made.others["export"] = {"images_per_class": 3}
        made.params()
        made.fails("params.yaml: no count, which stage count of dvc.yaml names: add it, as in imagenet/params.yaml")
        made.others["count"] = {}
        made.params()
        made.succeeds("preprocess")


NETWORK = "test_byobnet"


@pytest.fixture(scope="module")
def tensors() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    return dict(timm.create_model(NETWORK, pretrained=False).state_dict())


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ten images, preprocessed."""
    made = Made(tmp_path_factory.mktemp("indexed")).archives()
    made.succeeds("preprocess")
    return made.folder


@pytest.fixture
def scorable(made: Made, indexed: Path) -> Made:
    shutil.copytree(indexed, made.folder, dirs_exist_ok=True)
    made.dataset = {
        "images": AT_TAR,
        "devkit": AT_DEVKIT,
        "reassessed": "data/raw/reassessed.json",
        "expect_images": 10,
    }
    return made


def with_weights(made: Made, content: Any, name: str = "w.pt") -> None:
    """Save weights, as tensors or as the bytes that they are, and name them in params.yaml."""
    path = made.folder / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif name.endswith(".safetensors"):
        save_file(content, path)
    else:
        torch.save(content, path)
    with_model(made, name=NETWORK, weights=name, sha256=hashlib.sha256(path.read_bytes()).hexdigest())


def with_model(made: Made, **model: str) -> None:
    entry = {"source": "timm", "sha256": "0" * 64} | model
    made.others = {"models": {"standard": entry}, "score": {"device": "cpu"}}
    made.params()


SCORE = ("score", "--model", "standard")


class TestWeights:
    @pytest.mark.slow
    def test_accepted_shapes_of_a_checkpoint(self, scorable: Made, tensors: dict[str, torch.Tensor]) -> None:
        tables = set()
        parallel = {f"module.{key}": value for key, value in tensors.items()}
        lightning = {f"model.{key}": value for key, value in tensors.items()}
        for name, content in (
            ("w.pt", tensors),
            ("w.safetensors", tensors),
            ("nested.pth", {"state_dict": tensors, "epoch": 7}),
            ("parallel.pt", {"state_dict": parallel}),
            ("model.pt", lightning),
        ):
            with_weights(scorable, content, name)
            scorable.succeeds(*SCORE)
            tables.add((scorable.folder / "data/scores/standard.parquet").read_bytes())
        assert len(tables) == 1

    def test_missing(self, scorable: Made) -> None:
        with_model(scorable, name=NETWORK, weights="w.pt", sha256="0" * 64)
        scorable.fails(f"w.pt: missing; expected the weights of {NETWORK} (params.yaml)", *SCORE)

    def test_other_bytes(self, scorable: Made, tensors: dict[str, torch.Tensor]) -> None:
        with_weights(scorable, tensors)
        found = hashlib.sha256((scorable.folder / "w.pt").read_bytes()).hexdigest()
        with_model(scorable, name=NETWORK, weights="w.pt", sha256="0" * 64)
        scorable.fails(
            f"w.pt: SHA-256 {found}, expected {'0' * 64} as in params.yaml: fetch the weights again, "
            "or correct params.yaml if these are meant",
            *SCORE,
        )

    @pytest.mark.parametrize("name", ["w.pt", "w.safetensors"])
    def test_web_page(self, scorable: Made, name: str) -> None:
        with_weights(scorable, b"<!DOCTYPE html><html>Quota exceeded</html>", name)
        scorable.fails(f"{name}: a web page, not weights: remove it; expected the weights of {NETWORK}", *SCORE)

    @pytest.mark.parametrize("content", [b"\x80" * 9, b"x" * 1000])
    @pytest.mark.parametrize("name", ["w.pt", "w.safetensors"])
    def test_broken_file(self, scorable: Made, name: str, content: bytes) -> None:
        with_weights(scorable, content, name)
        scorable.fails(f"{name}: not plain tensors (*); expected safetensors, or a .pt with tensors only: *", *SCORE)

    @pytest.mark.parametrize(("name", "content"), [("w.pt", b"PK\x03\x04 and no more"), ("w.safetensors", b"\x80")])
    def test_truncated_file(self, scorable: Made, name: str, content: bytes) -> None:
        with_weights(scorable, content, name)
        scorable.fails(f"{name}: truncated; expected a whole weight file: remove it and run again *", *SCORE)

    def test_pickled_object_is_not_run(self, scorable: Made) -> None:
        with_weights(scorable, {"state_dict": Loud()})
        scorable.fails("w.pt: not plain tensors (*); expected *: load it where you trust it, and save *", *SCORE)
        assert not (scorable.folder / "pickled-code-ran").exists()

    @pytest.mark.parametrize("content", [[1, 2], {"a": 1}, torch.zeros(3)])
    def test_no_table_of_tensors(self, scorable: Made, content: Any) -> None:
        with_weights(scorable, content)
        scorable.fails("w.pt: no table of tensors; expected a state_dict", *SCORE)

    def test_missing_unexpected_and_misshapen_keys(self, scorable: Made, tensors: dict[str, torch.Tensor]) -> None:
        changed = {key: value for key, value in tensors.items() if key != "head.fc.bias"}
        changed |= {"head.fc.scale": torch.ones(1), "head.fc.weight": torch.ones(10, 32)}
        with_weights(scorable, changed)
        scorable.fails(
            "w.pt: does not fit the model: missing keys ['head.fc.bias'], unexpected keys ['head.fc.scale'], "
            "shape mismatch ['head.fc.weight'], type mismatch none; expected the weights of exactly this model",
            *SCORE,
        )

    def test_nan(self, scorable: Made, tensors: dict[str, torch.Tensor]) -> None:
        with_weights(scorable, tensors | {"head.fc.bias": torch.full((1000,), float("nan"))})
        scorable.fails("w.pt: 'head.fc.bias' holds NaN or infinity; expected finite weights: fetch them again", *SCORE)

    def test_model_with_another_number_of_classes(self, scorable: Made) -> None:
        with_model(scorable, name="vit_tiny_patch16_224.augreg_in21k")
        scorable.fails("vit_tiny_patch16_224.augreg_in21k: 21843 classes; expected 1000, those of ImageNet-1k", *SCORE)

    @pytest.mark.parametrize("name", ["resnet5", "resnet50.a9", "hf-hub:somebody/something"])
    def test_unknown_model(self, scorable: Made, name: str) -> None:
        with_model(scorable, name=name)
        scorable.fails(f"params.yaml: '{name}'*; expected a model name of timm {timm.__version__}", *SCORE)

    def test_unknown_model_of_robustbench(self, scorable: Made) -> None:
        with_model(scorable, source="robustbench", name="Salman2020", threat_model="Linf")
        scorable.fails(
            "params.yaml: 'Salman2020' is not in RobustBench's ImageNet zoo for Linf; "
            "expected one of *, Salman2020Do_R50, *",
            *SCORE,
        )

    def test_unknown_role(self, scorable: Made) -> None:
        with_model(scorable, name=NETWORK)
        for stage in ("score", "export"):
            scorable.fails("params.yaml: no model 'robust'; expected one of standard", stage, "--model", "robust")

    def test_unpinned_weights_of_any_model(self, scorable: Made) -> None:
        with_model(scorable, name=NETWORK)
        scorable.others["models"] |= {
            "a": {"source": "timm", "name": NETWORK},
            "b": {"source": "timm", "name": NETWORK},
        }
        scorable.params()
        scorable.fails(
            "params.yaml: no sha256 of the weights of a, b: run cleanset models --pin first, which downloads them "
            "and writes it",
            *SCORE,
        )

    def test_no_such_gpu(self, scorable: Made) -> None:
        with_model(scorable, name=NETWORK)
        scorable.others["score"] = {"device": "cuda:99"}
        scorable.params()
        scorable.fails("score.device cuda:99: * CUDA devices found; expected it among them: set auto or cpu", *SCORE)


class Loud:
    """Leaves a trace when it is unpickled."""

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, ("pickled-code-ran",)


EXPORT = ("export", "--model", "standard")


def select(made: Made, numbers: tuple[int, ...] = (1, 4, 9)) -> Edition:
    """A selection of images of different classes: the first whole, the second cropped, the third whole, and so on."""
    edition, box = Edition(made.folder), [0, 0, 20, 10]
    labels = {number: classes[0] for number, classes in enumerate(REASSESSED, start=1) if classes}
    rows = [
        {
            "image_id": id_of(number), "class_index": labels.get(number, 0), "place": 1, "tier": "top5", "rank": 1,
            "confidence": 0.5, "crop": box if number == numbers[1] else None,
        }
        for number in numbers
    ]  # fmt: skip
    write_table(edition.selection("standard"), pd.DataFrame(rows), SELECTION)
    crop_scores = [(id_of(numbers[1]), box, [labels[numbers[1]], 1, 2, 3, 4], [0.75, 0, 0, 0, 0])]
    write_table(edition.crop_scores("standard"), pd.DataFrame(crop_scores, columns=CROP_SCORES.names), CROP_SCORES)
    write_table(edition.votes("standard"), pd.DataFrame(columns=VOTES.names), VOTES)
    write_table(edition.rejected("standard"), pd.DataFrame(columns=REJECTED.names), REJECTED)
    write(edition.scored_with("standard"), json.dumps(SCORED).encode())
    return edition


class TestChangedSincePreprocess:
    @pytest.fixture
    def changed(self, scorable: Made, tensors: dict[str, torch.Tensor]) -> tuple[Made, str]:
        with_weights(scorable, tensors)
        select(scorable)
        other = jpeg(drawn_image(30, 30))
        scorable.file(TAR).write_bytes(official(ten_images() | {FOURTH: other}))
        found, expected = (hashlib.sha256(data).hexdigest() for data in (other, ten_images()[FOURTH]))
        return scorable, (
            f"{AT_TAR}: {FOURTH} has SHA-256 {found}, expected {expected} as in the index: fetch the images again, "
            "or run dvc repro --force preprocess if the new ones are meant"
        )

    @pytest.mark.parametrize("stage", [SCORE, EXPORT])
    def test_image(self, changed: tuple[Made, str], stage: tuple[str, ...]) -> None:
        made, message = changed
        made.fails(message, *stage)

    @pytest.mark.parametrize("stage", [SCORE, EXPORT])
    def test_missing_image(self, scorable: Made, tensors: dict[str, torch.Tensor], stage: tuple[str, ...]) -> None:
        with_weights(scorable, tensors)
        select(scorable)
        images = ten_images()
        del images[FOURTH]
        scorable.file(TAR).write_bytes(official(images))
        scorable.fails(f"{AT_TAR}: {FOURTH} is missing; the index has it: put it there", *stage)

    @pytest.mark.parametrize("stage", [SCORE, EXPORT])
    def test_missing_archive(self, scorable: Made, tensors: dict[str, torch.Tensor], stage: tuple[str, ...]) -> None:
        with_weights(scorable, tensors)
        select(scorable)
        scorable.file(TAR).unlink()
        scorable.fails(f"{AT_TAR}: missing; expected the validation images, a tar or a folder", *stage)

    def test_selection_of_another_index(self, scorable: Made) -> None:
        with_model(scorable, name=NETWORK)
        select(scorable, (1, 4, 12))
        scorable.fails(
            f"data/selection/standard.parquet: {id_of(12)} is not in data/index.parquet: run dvc repro", *EXPORT
        )

    def test_missing_index(self, scorable: Made) -> None:
        with_model(scorable, name=NETWORK)
        (scorable.folder / "data/index.parquet").unlink()
        scorable.fails("data/index.parquet: missing; run dvc repro, or dvc pull to fetch it", *SCORE)

    def test_table_that_is_none(self, scorable: Made) -> None:
        with_model(scorable, name=NETWORK)
        (scorable.folder / "data/index.parquet").write_text("x")
        scorable.fails(
            "data/index.parquet: not a Parquet file (*); run dvc checkout to restore it, or dvc repro", *SCORE
        )

    def test_table_of_another_kind(self, scorable: Made) -> None:
        with_model(scorable, name=NETWORK)
        edition = select(scorable)
        shutil.copy(edition.selection("standard"), edition.index)
        scorable.fails(
            "data/index.parquet: columns 'image_id, class_index, place, *'; expected image_id, size, *: run dvc *",
            *SCORE,
        )

    def test_strict_export_of_a_short_class(self, scorable: Made) -> None:
        with_model(scorable, name=NETWORK)
        scorable.others["export"] = {"strict": True}
        scorable.params(classes=["n02119789", "n02123045"])
        select(scorable)
        scorable.fails(
            "standard: short classes: 2, the first is n02119789 with 1 of 3 images: review more, "
            "or set export.strict: false (then data/short_classes.csv lists them all)",
            *EXPORT,
        )


class TestFullDisk:
    def test_index_larger_than_files_may_be(self, made: Made) -> None:
        made.archives().fails("data/index.parquet: File too large", "preprocess", most_bytes=1000)

    def test_image_larger_than_files_may_be(self, scorable: Made) -> None:
        with_model(scorable, name=NETWORK)
        select(scorable)
        scorable.fails("data/export/standard: File too large", *EXPORT, most_bytes=500)

    @pytest.fixture
    def small_disk(self, tmp_path: Path) -> Iterator[Path]:
        with small_disk_at(tmp_path / "data", kilobytes=40) as disk:
            yield disk

    def test_preprocess(self, small_disk: Path) -> None:
        made = Made(small_disk.parent, raw="raw").archives()
        (small_disk / "filling").write_bytes(bytes(36 * 1024))
        made.fails("data/index.parquet: No space left on device")

    def test_export(self, small_disk: Path) -> None:
        made = Made(small_disk.parent, raw="raw").archives()
        made.succeeds("preprocess")
        with_model(made, name=NETWORK)
        select(made)
        made.fails("data/export/standard: No space left on device", *EXPORT)


class TestKilled:
    """A named pipe instead of an image holds a stage at that image until it is killed."""

    def folder_edition(self, made: Made) -> Path:
        made.archives()
        for name, data in ten_images().items():
            write(made.file("val") / f"{name}.JPEG", data)
        made.params(images="data/raw/val")
        with_model(made, name=NETWORK)
        return made.file("val")

    def kill_at(self, made: Made, image: Path, stage: tuple[str, ...], sign: Path) -> None:
        """Kill a stage at an image, once the file `sign` is there."""
        data = image.read_bytes()
        image.unlink()
        os.mkfifo(image)
        process = made.start(*stage)
        for _ in range(1000):
            if sign.exists():
                break
            time.sleep(0.01)
        time.sleep(0.3)
        assert process.is_alive()
        process.kill()
        process.join()
        assert process.exitcode == -9
        image.unlink()
        image.write_bytes(data)

    def test_preprocess(self, made: Made) -> None:
        images = self.folder_edition(made)
        made.succeeds("preprocess")
        tables = made.outputs()
        assert set(tables) == {"data/index.parquet", "data/locations.parquet"}
        for name in tables:
            (made.folder / name).unlink()
        self.kill_at(made, images / f"{id_of(10)}.JPEG", ("preprocess",), made.folder / "params.yaml")
        assert made.outputs() == {}
        made.succeeds("preprocess")
        assert made.outputs() == tables

    def test_export(self, made: Made) -> None:
        images = self.folder_edition(made)
        made.succeeds("preprocess")
        select(made)
        made.succeeds(*EXPORT)
        whole = made.outputs()
        shutil.rmtree(made.folder / "data/export")

        self.kill_at(made, images / f"{id_of(9)}.JPEG", EXPORT, made.folder / "data/export")
        assert not (made.folder / "data/export/standard").exists()
        (workspace,) = (made.folder / "data/export").iterdir()
        assert (workspace / f"new/n01440764/{id_of(1)}.JPEG").exists()
        theirs = made.folder / "data/export/standard.partial/mine"  # not of this program: nobody else may remove it
        write(theirs, b"mine")
        theirs.with_name("lock").touch()

        made.succeeds("preprocess")  # any stage removes what a killed one has left
        assert not workspace.exists()
        made.succeeds(*EXPORT)
        assert theirs.read_bytes() == b"mine"
        shutil.rmtree(theirs.parent)
        assert made.outputs() == whole
        assert {path for path in whole if "export" in path} == {
            f"data/export/standard/n01440764/{id_of(1)}.JPEG",
            f"data/export/standard/n02119789/{id_of(4)}.png",
            f"data/export/standard/{wnids()[7]}/{id_of(9)}.JPEG",
            *(
                f"data/export/standard/{name}"
                for name in ("manifest.csv", "metadata.csv", "croissant.json", "README.md", "checksums.sha256")
            ),
        }

    def test_a_failed_export_leaves_the_last_one(self, made: Made) -> None:
        images = self.folder_edition(made)
        made.succeeds("preprocess")
        select(made)
        made.succeeds(*EXPORT)
        (images / f"{id_of(9)}.JPEG").unlink()
        made.fails(f"data/raw/val: {id_of(9)} is missing; *", *EXPORT)


def test_the_installed_command(made: Made) -> None:
    """The same through the script that pip installs, as a person runs it."""
    made.archives(images=official({FOURTH: b""})).params(expect_images=1)
    command = Path(sys.executable).with_name("cleanset")
    done = subprocess.run([command, "preprocess"], cwd=made.folder, capture_output=True, text=True, check=False)
    message = f"{AT_TAR}: {FOURTH} cannot be read (empty); expected a whole JPEG: fetch it again"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"error: {message}\n")


@pytest.mark.slow
def test_damage_anywhere_is_one_line(made: Made) -> None:
    """Random damage to archive and labels: either the run succeeds, or it is one line."""
    rng = random.Random(0)
    for _ in range(25):
        made.archives()
        path = made.file(rng.choice([TAR, DEVKIT, "reassessed.json"]))
        data = bytearray(path.read_bytes())
        start = rng.randrange(len(data))
        data[start : start + rng.choice([1, 20, 600])] = rng.randbytes(rng.choice([0, 1, 20]))
        path.write_bytes(data)
        made.settle()
        code, stderr = made.run("preprocess")
        assert (code, stderr) == (0, "") or (code == 1 and stderr.startswith("error: ") and stderr.count("\n") == 1)
        assert np.isin(list(made.outputs()), ["data/index.parquet", "data/locations.parquet"]).all()
        shutil.rmtree(made.folder / "data")
