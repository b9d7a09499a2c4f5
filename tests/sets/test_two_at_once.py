"""Two processes that write the same set, and what killed ones leave."""

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest

from cleanset.edition.paths import Edition
from cleanset.plumbing.files import new_folder, remove_abandoned, replacing
from tests.checkouts import files
from tests.sets.conftest import make_edition
from tests.ten_images import Made

FORKSERVER = multiprocessing.get_context("forkserver")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("rounds", [3, pytest.param(12, marks=pytest.mark.exhaustive)])
def test_two_exports_of_one_model(rounds: int, tmp_path: Path) -> None:
    """Both end well, and the set is whole, whichever comes first; with and without an older set in the way."""
    edition = make_edition(tmp_path)
    expected = files(edition.export("standard"))
    made = Made(tmp_path)
    for number in range(rounds):
        processes: list[ForkServerProcess] = []
        for _ in range(2):
            processes.append(made.start("export", "--model", "standard"))
            time.sleep(number % 5 / 100)
        for process in processes:
            process.join(60)
        assert [process.exitcode for process in processes] == [0, 0], number
        assert files(edition.export("standard")) == expected, number
        assert names(edition.export("standard").parent) == ["standard"]
        if number % 2:
            shutil.rmtree(edition.export("standard"))


def write_often(path: Path, times: int) -> None:
    for _ in range(times):
        with replacing(path) as folder:
            folder.mkdir()
            for name in range(20):
                (folder / str(name)).write_text("x" * 1000)


@pytest.mark.long
@pytest.mark.slow
def test_many_processes_replace_a_folder(tmp_path: Path) -> None:
    path = tmp_path / "set"
    processes = [FORKSERVER.Process(target=write_often, args=(path, 50)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * 4
    assert set(files(path)) == set(map(str, range(20)))
    assert names(tmp_path) == ["set"]


HOLDING = """
import sys, time
from pathlib import Path
from cleanset.plumbing.files import replacing
with replacing(Path(sys.argv[1])) as folder:
    folder.mkdir()
    (folder / "file").touch()
    print("here", flush=True)
    time.sleep(60)
"""


def test_only_what_no_living_process_owns_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "set"
    command = [sys.executable, "-c", HOLDING, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
        (workspace,) = tmp_path.iterdir()
        remove_abandoned(tmp_path)
        with new_folder(path) as folder:  # another one continues meanwhile
            folder.mkdir()
        assert sorted(tmp_path.iterdir()) == [workspace, path]
        process.send_signal(signal.SIGKILL)
    assert (workspace / "new" / "file").exists()
    remove_abandoned(tmp_path)
    assert list(tmp_path.iterdir()) == [path]


def test_the_workspace_of_a_process_killed_before_it_took_the_lock_goes(tmp_path: Path) -> None:
    """A minute later; one that is just being made stays."""
    workspaces = [tmp_path / f".out.abcd{number}.partial" for number in ("1234", "5678")]
    for workspace in workspaces:
        workspace.mkdir()
        (workspace / "unlocked").touch()
    before = time.time() - 61
    os.utime(workspaces[0], (before, before))
    remove_abandoned(tmp_path)
    assert list(tmp_path.iterdir()) == workspaces[1:]


def test_the_partial_folder_of_somebody_else_stays(tmp_path: Path) -> None:
    """With any name that looks like ours, and with the same content."""
    for name in ("out.partial", "out.old.partial", ".out.partial", ".out.partial-shards"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "lock").touch()
        (tmp_path / name / "mine").touch()
    (tmp_path / ".out.abcd1234.partial").mkdir()  # without a lock
    (tmp_path / ".out.abcd5678.partial").touch()
    before = sorted(tmp_path.rglob("*"))
    with new_folder(tmp_path / "out") as folder:
        folder.mkdir()
    assert sorted(tmp_path.rglob("*")) == sorted([*before, tmp_path / "out"])


def fill_half(folder: Path) -> None:
    folder.mkdir()
    raise ZeroDivisionError


def test_what_fails_leaves_the_old_one_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "set"
    path.mkdir()
    (path / "old").touch()
    with pytest.raises(ZeroDivisionError), replacing(path) as folder:
        fill_half(folder)
    with pytest.raises(FileNotFoundError) as raised, replacing(path):
        pass  # nothing was written
    assert raised.value.filename == str(path)
    assert names(tmp_path) == ["set"]
    assert names(path) == ["old"]


def test_a_stage_of_an_edition_cleans_it(edition: Edition, tmp_path: Path) -> None:
    """Also if DVC has restored the output meanwhile, so that the stage which was killed does not run again."""
    copy = make_edition(tmp_path)
    command = [sys.executable, "-c", HOLDING, str(copy.export("other"))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.kill()
    assert len(names(copy.export("other").parent)) == 2
    Made(tmp_path).succeeds("preprocess")
    assert names(copy.export("other").parent) == ["standard"]
