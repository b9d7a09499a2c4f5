"""Wrong labels and raw files are one line: what was found where, what was expected and what to do."""

import hashlib
import json
import random
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cleanset.plumbing.validation import shown
from tests.stages.inputs import AT_DEVKIT, AT_TAR, FOURTH, a_member
from tests.ten_images import DEVKIT, REASSESSED, TAR, TRUTH_LINES, Made, devkit_files, official, tar

pytestmark = pytest.mark.slow


TRUTH = "ILSVRC2012_validation_ground_truth.txt"
KIT = tar(devkit_files(), "w:gz")
KIT_XZ = tar(devkit_files(), "w:xz")
NO_KIT = f"no {TRUTH} in it; expected ILSVRC2012_devkit_t12: this is the devkit of another year or task"


def with_noise(data: bytes, at: int) -> bytes:
    return data[:at] + b"\xff" * 50 + data[at + 50 :]


def sparse_member() -> tarfile.TarInfo:
    member = a_member("ILSVRC2012_devkit_t12/data/meta.mat")
    member.pax_headers = {"GNU.sparse.map": "0,1"}
    return member


@pytest.mark.parametrize("line", ["0", "1001", "fox", "", "-1", "1.5", "²", "٣", "9" * 5000])
def test_a_wrong_ground_truth(made: Made, line: str) -> None:
    found = f"'{line}'" if line.isascii() and len(line) < 80 else "'*'*"
    truth = TRUTH_LINES.replace("450\n1\n", f"450\n{line}\n")
    made.archives(devkit=tar(devkit_files(truth), "w:gz")).fails(
        f"{AT_DEVKIT}, {TRUTH}, line 4: {found}; expected an ILSVRC id from 1 to 1000"
    )


@pytest.mark.parametrize(
    ("devkit", "message"),
    [
        (tar({"ILSVRC2014_devkit/data/meta_clsloc.mat": b"x"}, "w:gz"), f": {NO_KIT}"),
        (tar({"data/ILSVRC2014_clsloc_validation_ground_truth.txt": TRUTH_LINES.encode()}, "w:gz"), f": {NO_KIT}"),
        (b"<html>sign up first</html>", ": not a tar archive (*); fetch it again"),
        (KIT[:-2000], ": not a tar archive (*); fetch it again"),
        (with_noise(KIT, 20), ": not a tar archive (*); fetch it again"),
        (with_noise(KIT_XZ, len(KIT_XZ) // 2), ": not a tar archive (*); fetch it again"),
        (
            tar([(sparse_member(), b"x")], "w:gz"),
            ", member 'ILSVRC2012_devkit_t12/data/meta.mat': a sparse file; expected *",
        ),
        # four times 64 MiB of zeros are a quarter of a MiB compressed
        (
            tar([(a_member(f"{number}"), bytes(2**26)) for number in range(4)], "w:gz"),
            ": more than 268,435,456 bytes unpacked; fetch it again",
        ),
    ],
    ids=["other", "other truth", "page", "truncated", "damaged", "damaged xz", "sparse", "endless"],
)
def test_a_wrong_devkit(made: Made, devkit: bytes, message: str) -> None:
    made.archives(devkit=devkit).fails(f"{AT_DEVKIT}{message}")


def test_links_next_to_what_is_read_from_a_devkit(made: Made) -> None:
    link = tarfile.TarInfo("ILSVRC2012_devkit_t12/latest")
    link.type, link.linkname = tarfile.SYMTYPE, "/anywhere"
    members = [(tarfile.TarInfo(name), data) for name, data in devkit_files().items()]
    made.archives(devkit=tar([(link, b""), *members], "w:gz")).succeeds("preprocess")


def test_an_empty_folder_of_a_devkit(made: Made) -> None:
    made.archives().file("kit").mkdir()
    made.params(devkit="data/raw/kit")
    made.fails(f"data/raw/kit: {NO_KIT}")


LISTS = "expected a list of lists of distinct class indices 0 to 999"
LENGTH = "expected 10, one for each image: take the list that belongs to these images (dataset.reassessed)"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        *(
            (json.dumps(lists), f": {len(lists)} lists, {LENGTH}")
            for lists in (REASSESSED[:-1], [*REASSESSED, [1]], [])
        ),
        ("[[1],\n[2", f", line 2: not JSON (Expecting ',' delimiter); {LISTS}"),
        *((each, f": not JSON (*); {LISTS}") for each in ("\udcff", "[" * 100_000, "[[" + "9" * 5000 + "]]")),
        ("{}", f": {{}}; {LISTS}"),
        *(
            (
                json.dumps([*REASSESSED[:3], labels, *REASSESSED[4:]]),
                f", image 4: {labels!r}; {LISTS}",
            )
            for labels in ([1000], [-1], [5, 5], [True], ["5"], [5.0], 5, None)
        ),
    ],
)
def test_a_wrong_list_of_reassessed_labels(made: Made, content: str, message: str) -> None:
    made.archives()
    made.file("reassessed.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    made.settle()
    made.fails(f"data/raw/reassessed.json{message}")


def test_timms_list_for_ten_images(made: Made) -> None:
    made.archives()
    made.params(reassessed="timm")
    made.fails(f"timm's reassessed labels: 50000 lists, {LENGTH}")


DOWNLOAD = "download it from image-net.org, after signing up: ILSVRC2012,"


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        (TAR, f"{DOWNLOAD} Validation images (all tasks), 6.3 GB; put it there or link to it"),
        (DEVKIT, f"{DOWNLOAD} Development kit (Task 1 & 2), 2.5 MB; put it there or link to it"),
        ("reassessed.json", "put it there or correct params.yaml"),
    ],
)  # fmt: skip
def test_a_missing_raw_file(made: Made, name: str, remedy: str) -> None:
    made.archives().file(name).unlink()
    made.fails(f"data/raw/{name}: missing; {remedy}")


def test_other_bytes(made: Made) -> None:
    data = made.archives().file(TAR).read_bytes()
    made.file(TAR).write_bytes(data + b"\0")
    found, expected = (hashlib.md5(content).hexdigest() for content in (data + b"\0", data))
    remedy = "fetch it again, or correct raw.md5 if these bytes are meant"
    made.fails(f"{AT_TAR}: MD5 {found}, expected {expected} as in raw.md5: {remedy}")


SUM = "expected a line of md5sum for each raw file"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: "".join(each for each in text.splitlines(keepends=True) if "devkit" not in each),
         f": no line for {AT_DEVKIT}; add the output of md5sum {AT_DEVKIT}"),
        *((lambda text, line=line: f"{'0' * 32}  other\n{line}\n",
           f", line 2: {shown(line)}; expected the output of md5sum: digest, two spaces, path")
          for line in ("abc  data/raw/x", "", "MD5 (x) = 0" * 2, "0" * 64 + "  x")),
        (lambda text: f"{text}{'0' * 32}  {AT_TAR}\n",
         f", line 4: '{AT_TAR}' a second time; expected one line: remove one"),
        (lambda text: None, f": missing; {SUM}"),
        (lambda text: "\udcff\udcfe0", f": not UTF-8 at byte 0; {SUM}"),
    ],
)  # fmt: skip
def test_wrong_checksums(made: Made, change: Callable[[str], str | None], message: str) -> None:
    digests = made.archives().folder / "raw.md5"
    text = change(digests.read_text())
    digests.unlink()
    if text is not None:
        digests.write_bytes(text.encode("utf-8", "surrogateescape"))
    made.fails(f"raw.md5{message}")


@pytest.mark.long
def test_the_installed_command(made: Made) -> None:
    """The same through the script that pip installs, as a person runs it."""
    made.archives(images=official({FOURTH: b""})).params(expect_images=1)
    command = Path(sys.executable).with_name("cleanset")
    done = subprocess.run([command, "preprocess"], cwd=made.folder, capture_output=True, text=True, check=False)
    message = f"{AT_TAR}: 1 cannot be read: {FOURTH} (empty); expected whole JPEGs: fetch them"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"error: {message}\n")


@pytest.mark.long
def test_damage_anywhere_is_one_line(made: Made) -> None:
    """Random damage to archive and labels: either the run succeeds, or it is one line."""
    rng = random.Random(0)
    for _ in range(12):
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
