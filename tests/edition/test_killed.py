"""A new edition with an older one's verdicts, killed at changes of files, or on a full disk: whole or absent."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cleanset.edition.paths import Edition
from tests import own_edition
from tests.small_disks import small_disk_at

pytestmark = [pytest.mark.slow, pytest.mark.long]

KILLING = """
import json, os, shutil, sys
from pathlib import Path
from cleanset.cli import app
import cleanset.edition.create, cleanset.review.carried, cleanset.dataset.duplicate_search, cleanset.scoring.brought
import PIL.JpegImagePlugin, PIL.PngImagePlugin
COMMAND, NEW = json.loads(sys.argv[1]), Path("new").resolve()
CHANGES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.symlink", "os.link", "os.truncate"}

def run(last):
    process = os.fork()
    if process == 0:
        count = 0
        def hook(event, arguments):
            nonlocal count
            writes = event == "open" and arguments[1] and any(each in arguments[1] for each in "wxa+")
            if (writes or event in CHANGES) and str(arguments[0]).startswith(str(NEW.parent)):
                count += 1
                Path("/dev/null").exists() if count < last else os._exit(9)
        sys.addaudithook(hook)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        try:
            app(COMMAND, standalone_mode=False)
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(1)
        Path("count").write_text(str(count))
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])

def state():
    files = [path for path in NEW.rglob("*") if path.is_file()]
    return {path.relative_to(NEW).as_posix(): path.read_bytes().hex() for path in files}

assert run(10**9) == 0
total, whole = int(Path("count").read_text()), state()
shutil.rmtree(NEW)
found = []
for last in range(1, total, 4):
    code = run(last)
    there = NEW.exists()
    same = there and state() == whole
    if there:
        shutil.rmtree(NEW)
    again = run(10**9)
    found.append([last, code, there, same, again, state() == whole, len(list(NEW.parent.glob(".new*/lock")))])
    shutil.rmtree(NEW)
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Edition:
    """An edition whose twelve images are all reviewed; not to be changed."""
    edition = own_edition.make(tmp_path_factory.mktemp("old"))
    own_edition.review(edition, "ada")
    own_edition.review(edition, "ben", {"001/000.png": own_edition.REJECT})
    return edition


def command(old: Edition, new: str) -> list[str]:
    images = str(old.folder / "../images")
    return ["edition", new, "--images", images, "--reviews", str(old.folder), "--no-git"]


@pytest.mark.exhaustive
def test_killed_at_changes_of_files(old: Edition, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLING, json.dumps(command(old, "new"))],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found) > 20
    for last, code, is_there, is_whole, again, is_whole_again, left in found:
        assert code == 9, last
        assert is_whole or not is_there, last
        # the same command makes it, and removes what was left; a folder that has no lock yet a minute later
        assert (again, is_whole_again, left) == (0, True, 0), last


@pytest.mark.parametrize("kilobytes", [4, 16, 32, 48])
def test_a_full_disk(kilobytes: int, old: Edition, tmp_path: Path) -> None:
    with small_disk_at(tmp_path / "disk", kilobytes) as disk:
        done = subprocess.run(
            [sys.executable, "-m", "cleanset", *command(old, str(disk / "new"))],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, "No space left on device" in done.stderr) == (1, True)
        assert list(disk.iterdir()) == []
