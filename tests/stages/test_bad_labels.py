"""Wrong labels and raw files are one line: what was found where, what was expected and what to do."""

import hashlib
import json
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cleanset.validation import shown
from tests.stages.inputs import AT_DEVKIT, AT_TAR, FOURTH, a_member
from tests.ten_images import DEVKIT, REASSESSED, TAR, TRUTH_LINES, Made, devkit_files, official, tar

pytestmark = pytest.mark.slow


class TestDevkit:
    def test_other_year_by_its_names(self, made: Made) -> None:
        files = {
            "ILSVRC2014_devkit/data/ILSVRC2014_clsloc_validation_ground_truth.txt": TRUTH_LINES.encode(),
            "ILSVRC2014_devkit/data/meta_clsloc.mat": b"x",
        }
        made.archives(devkit=tar(files, "w:gz")).fails(
            f"{AT_DEVKIT}: no ILSVRC2012_validation_ground_truth.txt in it; expected ILSVRC2012_devkit_t12: "
            "this is the devkit of another year or task"
        )

    @pytest.mark.parametrize("line", ["0", "1001", "fox", "", "-1", "1.5", "²", "٣", "9" * 5000])
    def test_ground_truth(self, made: Made, line: str) -> None:
        found = f"'{line}'" if line.isascii() and len(line) < 80 else "'*'*"
        truth = TRUTH_LINES.replace("450\n1\n", f"450\n{line}\n")
        made.archives(devkit=tar(devkit_files(truth), "w:gz")).fails(
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
