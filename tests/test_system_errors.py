"""Errors of the system name the right file and say what to do; a closed pipe is not an error. Large files are never
read."""

import errno
import fcntl
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cleanset.classes import imagenet
from cleanset.dataset.folder import read_images, read_labels
from cleanset.edition.about import read_about
from cleanset.edition.params import read_params
from cleanset.errors import CleansetError, system_error
from cleanset.evaluation.compare.result_files import read_results
from cleanset.evaluation.predictions import read_predictions
from cleanset.evaluation.sets import EvaluationSet
from cleanset.plumbing.file_locks import locked
from cleanset.plumbing.files import blocks_of, read_bytes, replacing, sha256_of, write_text
from cleanset.review.gold_files import read_gold_key
from cleanset.review.opinions import read_look_again, read_opinions
from cleanset.scoring.brought import read_scores
from cleanset.sets.folder import read_regular_file
from cleanset.studies.realness.ratings import texts_of
from tests.evaluation.compare.drawn_results import NUMBERS, accuracies, put_results
from tests.small_disks import small_disk_at
from tests.ten_images import drawn_image
from tests.time_limits import at_most

UNREADABLE = Path("/proc/self/mem")
"""A file whose reading fails with EIO, as one on a failing disk."""
FAULT = "Input/output error while reading; expected a disk without faults: copy the readable files to another one"


def run(*arguments: str, **options: object) -> "subprocess.Popen[str]":
    program = (sys.executable, "-c", "from cleanset.cli import main; main()", *arguments)
    return subprocess.Popen(program, stderr=subprocess.PIPE, text=True, **options)  # type: ignore[call-overload,no-any-return]


@pytest.mark.parametrize("read", [read_bytes, read_regular_file, sha256_of, lambda path: list(blocks_of(path))])
def test_an_error_of_reading_names_what_is_read(read: Callable[[Path], object], tmp_path: Path) -> None:
    """Also while something else is written."""
    (tmp_path / "photo.jpg").symlink_to(UNREADABLE)
    with pytest.raises(OSError, match="Input/output error while reading") as raised, replacing(tmp_path / "out"):
        read(tmp_path / "photo.jpg")
    assert system_error(raised.value) == f"{tmp_path / 'photo.jpg'}: {FAULT}"


@pytest.mark.long
def test_a_full_disk_is_named_by_what_is_written(tmp_path: Path) -> None:
    """Not by the source of a copy: the table is copied into the new edition."""
    for seed, name in enumerate(("cat/1.png", "dog/2.png")):
        (tmp_path / "photos" / name).parent.mkdir(parents=True)
        drawn_image(40, 40, seed=seed).save(tmp_path / "photos" / name)
    (tmp_path / "labels.csv").write_text("file,class\ncat/1.png,cat\ndog/2.png,dog\n" + "\n" * 300_000)
    with small_disk_at(tmp_path / "disk", 256) as disk:
        command = ("edition", f"{disk}/mine", "--images", "photos", "--labels", "labels.csv")
        _, error = run(*command, cwd=tmp_path).communicate(timeout=60)
        assert error.startswith(f"error: {disk}/mine: No space left on device; expected room for it: free some space")
        assert list(disk.iterdir()) == []


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_locks(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As some network file systems are; none of those in the kernel that can be mounted here is."""

    def flock(descriptor: object, kind: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(OSError, match=os.strerror(number)) as raised, locked(tmp_path):
        pass
    remedy = "expected a file system with locks: name a folder on another disk, or mount this one with locks"
    assert system_error(raised.value) == f"{tmp_path}: {os.strerror(number)}; {remedy}"
    with pytest.raises(OSError, match=os.strerror(number)) as raised:
        write_text(tmp_path / "new.txt", "text")
    assert system_error(raised.value) == f"{tmp_path / 'new.txt'}: {os.strerror(number)}; {remedy}"


COMMANDS = [("--help",), ("evaluate", "--help"), ("--version",), ("compare", "a.json", "b.json", "--json")]
"""The last one prints what Python keeps until the program ends."""


@pytest.fixture
def results(tmp_path: Path) -> Path:
    for name in "ab":
        put_results(tmp_path / f"{name}.json", accuracies({name: NUMBERS}))
    return tmp_path


@pytest.mark.parametrize("arguments", COMMANDS)
def test_a_pipe_that_is_closed_early_ends_quietly(arguments: tuple[str, ...], results: Path) -> None:
    """As by `head` and `grep -q`."""
    ours, theirs = os.pipe()
    os.close(ours)
    done = run(*arguments, stdout=theirs, cwd=results)
    os.close(theirs)
    assert done.communicate(timeout=60)[1] == ""
    assert done.returncode in (1, 141)  # 1: typer's own, where it finds it out first


@pytest.mark.long
@pytest.mark.parametrize("arguments", COMMANDS[2:])
def test_output_to_a_full_device(arguments: tuple[str, ...], results: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = run(*arguments, stdout=full, cwd=results)
        error = done.communicate(timeout=60)[1]
    assert error.startswith("error: writing: No space left on device; expected room for it")
    assert error.count("\n") == 1
    assert done.returncode == 1


@pytest.mark.long
def test_too_little_memory_is_one_line(tmp_path: Path) -> None:
    """A limit of 512 MiB for a file of 250 MB, which is read as bytes, and then as text."""
    (tmp_path / "a.json").write_bytes(b"[" + b" " * 250_000_000 + b"]")
    limit = 2**20 * 512

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = run("compare", "a.json", "b.json", cwd=tmp_path, preexec_fn=limited, env=environment)
    error = done.communicate(timeout=60)[1]
    assert (error.count("\n"), done.returncode) == (1, 1), error
    assert error.startswith("error: ")
    assert "out of memory (MemoryError); expected more: end other programs, or give smaller batches or files" in error


SET = EvaluationSet(
    name="set",
    kind="folder",
    items=[],
    read=lambda file: None,  # type: ignore[arg-type,return-value]
    checked=None,
    classes=imagenet(),
)
READERS: dict[str, Callable[[Path], object]] = {
    "labels.csv": read_labels,
    "names.csv": lambda path: read_images(path.parent, path, path),
    "scores.csv": lambda path: read_scores(path, "model", {}, imagenet()),
    "predictions.csv": lambda path: read_predictions(path, SET),
    "predictions.parquet": lambda path: read_predictions(path, SET),
    "ratings.csv": lambda path: texts_of([path]),
    "card.yaml": read_about,
    "params.yaml": lambda path: read_params(path.parent),
    "results.json": read_results,
    "opinions.csv": lambda path: read_opinions([path], imagenet()),
    "look_again.csv": lambda path: read_look_again(path, {}, imagenet()),
    "gold.csv": lambda path: read_gold_key(path.parent, imagenet()),
}


@pytest.mark.parametrize("name", READERS)
def test_a_file_of_2_gb_is_refused_before_it_is_read(name: str, tmp_path: Path) -> None:
    with (tmp_path / name).open("wb") as file:
        file.truncate(2**31)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with at_most(5), pytest.raises(CleansetError, match=f"{name}: 2,147,483,648 bytes; expected at most [0-9,]+: "):
        READERS[name](tmp_path / name)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kB
