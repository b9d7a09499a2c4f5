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

from cleanset.edition import Edition
from cleanset.ilsvrc import wnids
from cleanset.tables import REJECTED, SELECTION, write_table
from inputs.made import (
    DEVKIT,
    REASSESSED,
    SCORED,
    TAR,
    TRUTH_LINES,
    Made,
    devkit_files,
    image,
    jpeg,
    official,
    picture_id,
    tar,
    ten_pictures,
    with_size,
    write,
)

AT_TAR = f"data/raw/{TAR}"
AT_DEVKIT = f"data/raw/{DEVKIT}"
FOURTH = picture_id(4)


def with_picture(made: Made, data: bytes, name: str = FOURTH) -> Made:
    """The edition with other bytes for one picture."""
    return made.archives(images=official(ten_pictures() | {name: data}))


def with_member(made: Made, info: tarfile.TarInfo, data: bytes = b"") -> Made:
    """The edition with one more member in the tar."""
    members = [(tarfile.TarInfo(f"{name}.JPEG"), content) for name, content in ten_pictures().items()]
    return made.archives(images=tar([*members, (info, data)]))


def a_member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


class TestPictures:
    CANNOT = f"{AT_TAR}: {FOURTH} cannot be read (*{{}}*); expected a whole JPEG: fetch it again"

    @pytest.mark.parametrize("cut", [20, 100, 400])
    def test_truncated(self, made: Made, cut: int) -> None:
        data = ten_pictures()[FOURTH]
        with_picture(made, data[:-cut]).fails(self.CANNOT.format("truncated"))

    def test_cut_within_the_header(self, made: Made) -> None:
        with_picture(made, ten_pictures()[FOURTH][:20]).fails(self.CANNOT.format(""))

    def test_empty(self, made: Made) -> None:
        with_picture(made, b"").fails(self.CANNOT.format("empty"))

    def test_png_under_another_name(self, made: Made) -> None:
        out = io.BytesIO()
        image(20, 20).save(out, format="PNG")
        with_picture(made, out.getvalue()).fails(self.CANNOT.format("not a JPEG"))

    def test_text_under_another_name(self, made: Made) -> None:
        with_picture(made, b"<html>404</html>").fails(self.CANNOT.format("not a JPEG"))

    def test_decompression_bomb(self, made: Made) -> None:
        with_picture(made, with_size(jpeg(image(16, 16)), 65_000, 65_000)).fails(
            self.CANNOT.format("4225000000 pixels) exceeds limit of")
        )

    def test_small_decompression_bomb(self, made: Made) -> None:
        with_picture(made, with_size(jpeg(image(16, 16)), 12_000, 12_000)).fails(
            self.CANNOT.format("12000 x 12000 pixels, more than 100,000,000")
        )

    @pytest.mark.parametrize("name", ["holiday.JPEG", "ILSVRC2012_val_4.JPEG", f"{FOURTH}.jpg", "ILSVRC2012_val.txt"])
    def test_wrongly_named_in_a_tar(self, made: Made, name: str) -> None:
        with_member(made, a_member(name), b"x").fails(
            f"{AT_TAR}, member '{name}': not the name of a validation picture; "
            "expected ILSVRC2012_val_00000001.JPEG or alike: remove or rename it"
        )

    def test_a_line_break_in_a_name_stays_on_the_line(self, made: Made) -> None:
        with_member(made, a_member("a\nb.JPEG"), b"x").fails(f"{AT_TAR}, member 'a\\nb.JPEG': not the name of a *")

    def test_duplicate_in_a_tar(self, made: Made) -> None:
        with_member(made, a_member(f"again/{FOURTH}.JPEG"), b"x").fails(
            f"{AT_TAR}, member 'again/{FOURTH}.JPEG': {FOURTH} occurs twice; remove one of the two"
        )

    def test_missing(self, made: Made) -> None:
        pictures = ten_pictures()
        del pictures[FOURTH]
        made.archives(images=official(pictures)).fails(
            f"{AT_TAR}: 9 pictures, expected 10 (dataset.expect_images); the first that is missing is {FOURTH}: "
            "complete the set or correct params.yaml"
        )

    def test_too_many(self, made: Made) -> None:
        made.archives()
        made.params(expect_images=9)
        made.fails(
            f"{AT_TAR}: 10 pictures, expected 9 (dataset.expect_images): complete the set or correct params.yaml"
        )

    def test_number_beyond_the_labels(self, made: Made) -> None:
        pictures = ten_pictures()
        pictures[picture_id(11)] = pictures.pop(FOURTH)
        made.archives(images=official(pictures)).fails(
            f"{AT_DEVKIT}, ILSVRC2012_validation_ground_truth.txt: no label for ILSVRC2012_val_00000011; it lists "
            "10 pictures: remove that picture, or take the labels that belong to it (dataset.devkit)"
        )


class TestFolders:
    def folder(self, made: Made, files: dict[str, bytes], **dataset: Any) -> Made:
        made.archives()
        for name, data in files.items():
            write(made.file("val") / name, data)
        made.params(images="data/raw/val", **dataset)
        return made

    def test_wrong_wnid_folder(self, made: Made) -> None:
        files = {f"n01440764/{FOURTH}.JPEG": ten_pictures()[FOURTH]}
        self.folder(made, files, expect_images=1).fails(
            f"data/raw/val/n01440764/{FOURTH}.JPEG: {FOURTH} lies under n01440764, but {AT_DEVKIT}, "
            "ILSVRC2012_validation_ground_truth.txt says n02119789; move it"
        )

    def test_wrong_wnid_in_the_name(self, made: Made) -> None:
        files = {f"n02119789/{FOURTH}_n01440764.JPEG": b"x"}
        self.folder(made, files).fails(
            f"data/raw/val/n02119789/{FOURTH}_n01440764.JPEG: the name says n01440764, the folder n02119789; "
            "expected the same: move or rename it"
        )

    def test_unknown_wnid_in_the_name(self, made: Made) -> None:
        self.folder(made, {f"{FOURTH}_n99999999.JPEG": b"x"}).fails(
            f"data/raw/val/{FOURTH}_n99999999.JPEG: n99999999 is not one of the 1,000 wnids; "
            "take the name of the official picture"
        )

    def test_folder_that_is_no_wnid(self, made: Made) -> None:
        self.folder(made, {f"foxes/{FOURTH}.JPEG": b"x"}).fails(
            "data/raw/val/foxes: not one of the 1,000 wnids; expected folders like n01440764: *"
        )

    def test_the_same_picture_in_two_folders(self, made: Made) -> None:
        self.folder(made, {f"n01440764/{FOURTH}.JPEG": b"x", f"n02119789/{FOURTH}.JPEG": b"x"}).fails(
            f"data/raw/val/n02119789/{FOURTH}.JPEG: {FOURTH} occurs twice; remove one of the two"
        )

    def test_wrongly_named(self, made: Made) -> None:
        self.folder(made, {"readme.txt": b"x"}).fails(
            "data/raw/val/readme.txt: not the name of a validation picture; "
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
            "data/raw/val: holds no picture; expected ILSVRC2012_val_00000001.JPEG and so on"
        )

    def test_missing_folder(self, made: Made) -> None:
        self.folder(made, {}).fails("data/raw/val: missing; put it there or correct params.yaml")

    def test_link_to_nowhere(self, made: Made) -> None:
        self.folder(made, {f"{picture_id(1)}.JPEG": b"x"})
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
                f", line 2: {{'ImageId': '{FOURTH}', 'PredictionString': 'fox 1 2 3 4'}}; expected ImageId "
                "ILSVRC2012_val_00000001 and a PredictionString that begins with a wnid",
            ),
            (
                f"ImageId,PredictionString\n{FOURTH},n02119789 1 2 3 4\n",
                ": 1 pictures; expected one line for every picture from 1 on",
            ),
            ("", ": 0 pictures; expected one line for every picture from 1 on"),
        ],
    )
    def test_kaggle_list(self, made: Made, csv: str, message: str) -> None:
        files = {f"ILSVRC/Data/CLS-LOC/val/{FOURTH}.JPEG": b"x", "LOC_val_solution.csv": csv.encode()}
        self.folder(made, files, expect_images=1, devkit=None).fails(f"data/raw/val/LOC_val_solution.csv{message}")


class TestTar:
    @pytest.mark.parametrize("name", [f"../{FOURTH}.JPEG", f"val/../../{FOURTH}.JPEG", f"/etc/{FOURTH}.JPEG"])
    def test_path_outside(self, made: Made, name: str) -> None:
        with_member(made, a_member(name), b"x").fails(
            f"{AT_TAR}, member '{name}': a path outside the archive; take the official archive"
        )

    @pytest.mark.parametrize(
        "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.GNUTYPE_SPARSE]
    )
    def test_link_or_device(self, made: Made, kind: bytes) -> None:
        name = f"{picture_id(11)}.JPEG"
        with_member(made, a_member(name, kind, "/etc/passwd")).fails(
            f"{AT_TAR}, member '{name}': a link or device; expected plain files only: take the official archive"
        )

    def test_huge_member(self, made: Made) -> None:
        info = a_member(f"{picture_id(11)}.JPEG")
        info.size = 2**40
        header = info.tobuf()
        made.archives(images=official({picture_id(1): b"x"})[:1024] + header).fails(
            f"{AT_TAR}, member '{picture_id(11)}.JPEG': 1,099,511,627,776 bytes; expected at most 67,108,864: "
            "take the official file"
        )

    def test_truncated_within_a_picture(self, made: Made) -> None:
        made.archives(images=official(ten_pictures())[:5000]).fails(
            f"{AT_TAR}: not an uncompressed tar (unexpected end of data); expected ILSVRC2012_img_val.tar: "
            "decompress it or fetch it again"
        )

    @pytest.mark.parametrize("more", [0, 100])
    def test_truncated_between_pictures_or_in_a_header(self, made: Made, more: int) -> None:
        """Python's tarfile takes both for the end of the archive."""
        whole = official(ten_pictures())
        second = whole.index(f"{picture_id(2)}.JPEG".encode())
        made.archives(images=whole[: second + more])
        made.params(expect_images=None)
        made.fails(f"{AT_TAR}: no end mark after {second:,} bytes: truncated or damaged; fetch it again")

    def test_damaged_header(self, made: Made) -> None:
        whole = official(ten_pictures())
        second = whole.index(f"{picture_id(2)}.JPEG".encode())
        made.archives(images=whole[:second] + b"\xff" * 20 + whole[second + 20 :])
        made.params(expect_images=None)
        made.fails(f"{AT_TAR}: no end mark after {second:,} bytes: truncated or damaged; fetch it again")

    @pytest.mark.parametrize("compression", ["gz", "bz2", "xz"])
    def test_compressed(self, made: Made, compression: str) -> None:
        data = tar({f"{name}.JPEG": data for name, data in ten_pictures().items()}, f"w:{compression}")
        made.archives(images=data).fails(
            f"{AT_TAR}: not an uncompressed tar (*); expected ILSVRC2012_img_val.tar: decompress it or fetch it again"
        )

    def test_empty_archive(self, made: Made) -> None:
        made.archives(images=tar({})).fails(
            f"{AT_TAR}: holds no picture; expected ILSVRC2012_val_00000001.JPEG and so on"
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

    @pytest.mark.parametrize("line", ["0", "1001", "fox", "", "-1", "1.5"])
    def test_ground_truth(self, made: Made, line: str) -> None:
        self.kit(made, TRUTH_LINES.replace("722\n", f"{line}\n")).fails(
            f"{AT_DEVKIT}, ILSVRC2012_validation_ground_truth.txt, line 4: '{line}'; "
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
        middle = len(whole) // 2
        made.archives(devkit=whole[:middle] + b"\xff" * 50 + whole[middle + 50 :]).fails(
            f"{AT_DEVKIT}: not a tar archive (*); fetch it again"
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
            f"{self.AT}: {found} lists, expected 10, one for each picture: "
            "take the list that belongs to these pictures (dataset.reassessed)"
        )

    def test_timms_list_for_ten_pictures(self, made: Made) -> None:
        made.archives()
        made.params(reassessed="timm")
        made.fails(
            "timm's reassessed labels: 50000 lists, expected 10, one for each picture: "
            "take the list that belongs to these pictures (dataset.reassessed)"
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
            f"{self.AT}, picture 4: {labels!r}; expected a list of distinct class indices 0 to 999"
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
            f"data/raw/{name}: missing; it is had at image-net.org, after signing up: ILSVRC2012, {source}; "
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
        sums = made.archives().folder / "raw.md5"
        sums.write_text("".join(line for line in sums.open() if "devkit" not in line))
        made.fails(f"raw.md5: no line for {AT_DEVKIT}; add what md5sum {AT_DEVKIT} prints")

    @pytest.mark.parametrize("line", ["abc  data/raw/x", "", "MD5 (x) = 0" * 2, "0" * 64 + "  x"])
    def test_malformed_line(self, made: Made, line: str) -> None:
        sums = made.archives().folder / "raw.md5"
        sums.write_text(f"{'0' * 32}  other\n{line}\n")
        made.fails(f"raw.md5, line 2: '{line}'; expected what md5sum prints: sum, two spaces, path")

    def test_no_sums(self, made: Made) -> None:
        (made.archives().folder / "raw.md5").unlink()
        made.fails("raw.md5: missing; expected a line of md5sum for each raw file")

    def test_sums_in_another_encoding(self, made: Made) -> None:
        (made.archives().folder / "raw.md5").write_bytes(b"\xff\xfe0")
        made.fails("raw.md5: not a text file (*); expected UTF-8")


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
                "score.device: String should match pattern '^(auto|cpu|cuda(:\\d+)?)$'; found 'gpu'",
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
            ("not YAML: * line 2, column *", "root: .\ndataset: {images: x\n"),
            ("not YAML: could not determine a constructor for the tag *", "root: !!python/object:os.system x\n"),
            ("the file: expected keys and values; found None", ""),
        ],
    )
    def test_wrong(self, made: Made, message: str, text: str) -> None:
        self.fails(made, message, text)

    def test_missing_file(self, made: Made) -> None:
        made.fails("params.yaml: missing; expected the folder of an edition (see README)")

    def test_other_encoding(self, made: Made) -> None:
        (made.folder / "params.yaml").write_bytes(b"root: \xff")
        made.fails("params.yaml: not a text file (*); expected UTF-8")


NETWORK = "test_byobnet"


@pytest.fixture(scope="module")
def tensors() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    return dict(timm.create_model(NETWORK, pretrained=False).state_dict())


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ten pictures, preprocessed."""
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
    made.others = {"models": {"standard": {"source": "timm"} | model}, "score": {"device": "cpu"}}
    made.params()


SCORE = ("score", "--model", "standard")


class TestWeights:
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

    @pytest.mark.parametrize("content", [b"\x80", b"PK\x03\x04 and no more", b"x" * 1000])
    @pytest.mark.parametrize("name", ["w.pt", "w.safetensors"])
    def test_broken_file(self, scorable: Made, name: str, content: bytes) -> None:
        with_weights(scorable, content, name)
        scorable.fails(f"{name}: not plain tensors (*); expected safetensors, or a .pt with tensors only: *", *SCORE)

    def test_pickled_object_is_not_run(self, scorable: Made) -> None:
        with_weights(scorable, {"state_dict": Loud()})
        scorable.fails("w.pt: not plain tensors (*); expected *: load it where you trust it, and save *", *SCORE)
        assert not (scorable.folder / "pickled-code-ran").exists()

    @pytest.mark.parametrize("content", [[1, 2], {"a": 1}, torch.zeros(3)])
    def test_no_table_of_tensors(self, scorable: Made, content: Any) -> None:
        with_weights(scorable, content)
        scorable.fails("w.pt: no table of tensors; expected a state_dict", *SCORE)

    def test_missing_surplus_and_misshapen_keys(self, scorable: Made, tensors: dict[str, torch.Tensor]) -> None:
        changed = {key: value for key, value in tensors.items() if key != "head.fc.bias"}
        changed |= {"head.fc.scale": torch.ones(1), "head.fc.weight": torch.ones(10, 32)}
        with_weights(scorable, changed)
        scorable.fails(
            "w.pt: does not fit the model: missing ['head.fc.bias'], surplus ['head.fc.scale'], "
            "of another shape ['head.fc.weight']; expected the weights of exactly this model",
            *SCORE,
        )

    def test_nan(self, scorable: Made, tensors: dict[str, torch.Tensor]) -> None:
        with_weights(scorable, tensors | {"head.fc.bias": torch.full((1000,), float("nan"))})
        scorable.fails(
            f"{picture_id(1)}: a logit is NaN or infinite; the weights are broken, "
            "or the precision does not suffice: try float64",
            *SCORE,
        )

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

    def test_no_such_gpu(self, scorable: Made) -> None:
        scorable.others = {"score": {"device": "cuda:99"}}
        scorable.params()
        scorable.fails("score.device cuda:99: * CUDA devices found; expected one: take auto or cpu", *SCORE)


class Loud:
    """Leaves a trace when it is unpickled."""

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, ("pickled-code-ran",)


EXPORT = ("export", "--model", "standard")


def select(made: Made, numbers: tuple[int, ...] = (1, 4, 9)) -> Edition:
    """A selection: the first picture whole, the second cropped, the third whole, and so on."""
    edition = Edition(made.folder)
    rows = [
        {
            "image_id": picture_id(number), "class_index": 278, "place": place, "tier": "top5", "rank": place,
            "confidence": 0.5, "crop": [0, 0, 20, 10] if place == 2 else None,
        }
        for place, number in enumerate(numbers, start=1)
    ]  # fmt: skip
    write_table(edition.selection("standard"), pd.DataFrame(rows), SELECTION)
    write_table(edition.rejected("standard"), pd.DataFrame(columns=REJECTED.names), REJECTED)
    write(edition.scored_with("standard"), json.dumps(SCORED).encode())
    return edition


class TestChangedSincePreprocess:
    @pytest.fixture
    def changed(self, scorable: Made, tensors: dict[str, torch.Tensor]) -> tuple[Made, str]:
        with_weights(scorable, tensors)
        select(scorable)
        other = jpeg(image(30, 30))
        scorable.file(TAR).write_bytes(official(ten_pictures() | {FOURTH: other}))
        found, expected = (hashlib.sha256(data).hexdigest() for data in (other, ten_pictures()[FOURTH]))
        return scorable, (
            f"{AT_TAR}: {FOURTH} has SHA-256 {found}, expected {expected} as in the index: fetch the pictures again, "
            "or run dvc repro --force preprocess if the new ones are meant"
        )

    @pytest.mark.parametrize("stage", [SCORE, EXPORT])
    def test_picture(self, changed: tuple[Made, str], stage: tuple[str, ...]) -> None:
        made, message = changed
        made.fails(message, *stage)

    @pytest.mark.parametrize("stage", [SCORE, EXPORT])
    def test_missing_picture(self, scorable: Made, tensors: dict[str, torch.Tensor], stage: tuple[str, ...]) -> None:
        with_weights(scorable, tensors)
        select(scorable)
        pictures = ten_pictures()
        del pictures[FOURTH]
        scorable.file(TAR).write_bytes(official(pictures))
        scorable.fails(f"{AT_TAR}: {FOURTH} is missing; the index has it: put it there", *stage)

    @pytest.mark.parametrize("stage", [SCORE, EXPORT])
    def test_missing_archive(self, scorable: Made, tensors: dict[str, torch.Tensor], stage: tuple[str, ...]) -> None:
        with_weights(scorable, tensors)
        select(scorable)
        scorable.file(TAR).unlink()
        scorable.fails(f"{AT_TAR}: missing; expected the validation pictures, a tar or a folder", *stage)

    def test_selection_of_another_index(self, scorable: Made) -> None:
        with_model(scorable, name=NETWORK)
        select(scorable, (1, 4, 12))
        scorable.fails(
            f"data/selection/standard.parquet: {picture_id(12)} is not in data/index.parquet: run dvc repro", *EXPORT
        )

    def test_missing_index(self, scorable: Made) -> None:
        with_model(scorable, name=NETWORK)
        (scorable.folder / "data/index.parquet").unlink()
        scorable.fails("data/index.parquet: missing; run dvc repro, or dvc pull to fetch it", *SCORE)

    def test_table_that_is_none(self, scorable: Made) -> None:
        with_model(scorable, name=NETWORK)
        (scorable.folder / "data/index.parquet").write_text("x")
        scorable.fails("data/index.parquet: not a Parquet file (*); run dvc repro", *SCORE)

    def test_table_of_another_kind(self, scorable: Made) -> None:
        with_model(scorable, name=NETWORK)
        edition = select(scorable)
        shutil.copy(edition.selection("standard"), edition.index)
        scorable.fails("data/index.parquet: columns image_id string, *; expected image_id string, size *", *SCORE)

    def test_strict_export_of_a_short_class(self, scorable: Made) -> None:
        with_model(scorable, name=NETWORK)
        scorable.others["export"] = {"strict": True}
        scorable.params(classes=["n02119789", "n02123045"])
        select(scorable)
        scorable.fails(
            "standard: short classes: 1, the first is n02123045 with 0 of 3 pictures: review more, "
            "or set export.strict: false (then data/short_classes.csv lists them all)",
            *EXPORT,
        )


class TestFullDisk:
    def test_index_larger_than_files_may_be(self, made: Made) -> None:
        made.archives().fails("data/index.parquet: File too large", "preprocess", most_bytes=1000)

    def test_picture_larger_than_files_may_be(self, scorable: Made) -> None:
        with_model(scorable, name=NETWORK)
        select(scorable)
        scorable.fails("data/export/standard: File too large", *EXPORT, most_bytes=500)

    @pytest.fixture
    def small_disk(self, tmp_path: Path) -> Iterator[Path]:
        disk = tmp_path / "data"
        disk.mkdir()
        mount = ("mount", "-t", "tmpfs", "-o", "size=24k", "tmpfs", str(disk))
        if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
            pytest.skip("only root can mount a small disk")
        yield disk
        subprocess.run(("umount", "--lazy", str(disk)), check=True)

    def test_preprocess(self, small_disk: Path) -> None:
        made = Made(small_disk.parent, raw="raw").archives()
        (small_disk / "filling").write_bytes(bytes(20 * 1024))
        made.fails("data/index.parquet: No space left on device")

    def test_export(self, small_disk: Path) -> None:
        made = Made(small_disk.parent, raw="raw").archives()
        made.succeeds("preprocess")
        with_model(made, name=NETWORK)
        select(made)
        made.fails("data/export/standard: No space left on device", *EXPORT)


class TestKilled:
    """A named pipe instead of a picture holds a stage at that picture until it is killed."""

    def folder_edition(self, made: Made) -> Path:
        made.archives()
        for name, data in ten_pictures().items():
            write(made.file("val") / f"{name}.JPEG", data)
        made.params(images="data/raw/val")
        with_model(made, name=NETWORK)
        return made.file("val")

    def kill_at(self, made: Made, picture: Path, stage: tuple[str, ...], sign: Path) -> None:
        """Kill a stage at a picture, once the file `sign` is there."""
        data = picture.read_bytes()
        picture.unlink()
        os.mkfifo(picture)
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
        picture.unlink()
        picture.write_bytes(data)

    def test_preprocess(self, made: Made) -> None:
        pictures = self.folder_edition(made)
        made.succeeds("preprocess")
        index = made.folder / "data/index.parquet"
        whole, tables = index.read_bytes(), made.outputs()
        assert set(tables) == {"data/index.parquet", "data/locations.parquet"}
        for name in tables:
            (made.folder / name).unlink()
        self.kill_at(made, pictures / f"{picture_id(10)}.JPEG", ("preprocess",), made.folder / "params.yaml")
        assert made.outputs() == {}
        write(index.with_name("index.parquet.partial"), whole[: len(whole) // 2])  # killed while writing
        made.succeeds("preprocess")
        assert made.outputs() == tables

    def test_export(self, made: Made) -> None:
        pictures = self.folder_edition(made)
        made.succeeds("preprocess")
        select(made)
        made.succeeds(*EXPORT)
        whole = made.outputs()
        shutil.rmtree(made.folder / "data/export")

        self.kill_at(made, pictures / f"{picture_id(9)}.JPEG", EXPORT, made.folder / "data/export/standard.partial")
        assert not (made.folder / "data/export/standard").exists()
        assert (made.folder / f"data/export/standard.partial/n02119789/{picture_id(1)}.JPEG").exists()

        made.succeeds(*EXPORT)
        assert made.outputs() == whole
        assert {path for path in whole if "export" in path} == {
            f"data/export/standard/n02119789/{picture_id(1)}.JPEG",
            f"data/export/standard/n02119789/{picture_id(4)}.png",
            f"data/export/standard/n02119789/{picture_id(9)}.JPEG",
            *(
                f"data/export/standard/{name}"
                for name in ("manifest.csv", "metadata.csv", "croissant.json", "README.md")
            ),
        }

    def test_a_failed_export_leaves_the_last_one(self, made: Made) -> None:
        pictures = self.folder_edition(made)
        made.succeeds("preprocess")
        select(made)
        made.succeeds(*EXPORT)
        (pictures / f"{picture_id(9)}.JPEG").unlink()
        made.fails(f"data/raw/val: {picture_id(9)} is missing; *", *EXPORT)


def test_the_installed_command(made: Made) -> None:
    """The same through the script that pip installs, as a person runs it."""
    made.archives(images=official({FOURTH: b""})).params(expect_images=1)
    command = Path(sys.executable).with_name("cleanset")
    done = subprocess.run([command, "preprocess"], cwd=made.folder, capture_output=True, text=True, check=False)
    message = f"{AT_TAR}: {FOURTH} cannot be read (empty); expected a whole JPEG: fetch it again"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"error: {message}\n")


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
