"""What a process sees of a folder that changes: a memory on the disk, in the working and the temporary folder."""

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from cleanset.studies.attacks.earlier_disk import beginning
from tests.conftest import without


def files_seen(folder: Path, moment: float, kept: tuple[Path, ...] = ()) -> dict[str, str]:
    """The files below a folder that a program sees as of a moment, and their texts."""
    command = beginning(moment, kept)
    if command is None and shutil.which("bwrap") is None:
        without("no bubblewrap: install the package of that name")
    if command is None:
        pytest.skip("this machine does not let bubblewrap mount, as in most containers")
    program = 'find "$0" -type f -printf "%P " -exec cat {} \\; -printf "\\n" | sort'
    found = subprocess.run([*command, "sh", "-c", program, folder], capture_output=True, text=True, check=True)
    return dict(line.split(" ", 1) for line in found.stdout.splitlines())


@pytest.mark.exhaustive
def test_what_was_written_since_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """New files and changed ones, in folders that are new, too; then once more, after a further change."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old.txt").write_text("old")
    (tmp_path / "within").mkdir()
    (tmp_path / "within" / "old.txt").write_text("old, too")
    (tmp_path / "within" / "changed.txt").write_text("before")
    moment = time.time()
    time.sleep(0.1)  # the clock of file systems has ticks
    (tmp_path / "within" / "changed.txt").write_text("since")
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "memory.txt").write_text("seen")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "result.txt").write_text("a result")
    assert files_seen(tmp_path, moment, (tmp_path / "out",)) == {
        "old.txt": "old",
        "within/old.txt": "old, too",
        "out/result.txt": "a result",
    }
    (tmp_path / "old.txt").write_text("changed later")
    assert files_seen(tmp_path, moment) == {"within/old.txt": "old, too"}
    assert files_seen(tmp_path, time.time() + 1)["new/memory.txt"] == "seen"


@pytest.mark.long
def test_no_program_to_confine_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert beginning(time.time(), ()) is None
