"""Defences that are programs, under gVisor: what they are given and see, and what ends them."""

import shutil
import time
from pathlib import Path

import pytest

from cleanset.errors import CleansetError
from cleanset.studies.contest import programs
from cleanset.studies.contest.entries import Defence
from cleanset.studies.contest.log import Objects
from cleanset.studies.contest.programs import ProgramDefence, nameless_copy, write_files
from tests.studies.contest.on_disk import digest, png

GVISOR = pytest.mark.skipif(shutil.which("runsc") is None, reason="needs gVisor: apt install runsc")
pytestmark = [pytest.mark.long, GVISOR]
FIRST = "import os, sys, time\nfile = os.listdir(sys.argv[1])[0]\nanswer = 'bird'\n"
LAST = "\nprint(file + ', ' + str(answer))\n"


def program(tmp_path: Path, code: str, seconds: int = 60, *command: str, **files: bytes) -> ProgramDefence:
    """A program in Python, whose files are objects."""
    contents = {"run.py": (FIRST + code + LAST).encode(), **{f"{name}.txt": data for name, data in files.items()}}
    objects = tmp_path / "objects"
    objects.mkdir(exist_ok=True)
    for data in contents.values():
        (objects / digest(data)).write_bytes(data)
    content = {
        "command": [*(command or ("python3", "run.py"))],
        "files": {name: digest(data) for name, data in contents.items()},
    }  # fmt: skip
    defence = Defence.model_validate({"name": "gold/wall", "open": False, "program": content})
    return ProgramDefence(Objects(tmp_path), defence, ("bird", "bicycle"), 60 / seconds)


def answer_to(defence: ProgramDefence, tmp_path: Path) -> str:
    path = tmp_path / "image.png"
    path.write_bytes(png((200, 10, 20)))
    (answer,) = defence({"x": path})[0].values()
    return answer


def said(tmp_path: Path, code: str, seconds: int = 60, *command: str) -> str:
    """The refusal of a program."""
    with pytest.raises(CleansetError) as caught:
        answer_to(program(tmp_path, code, seconds, *command), tmp_path)
    return str(caught.value)


def test_a_program_answers_one_image_at_a_time(tmp_path: Path) -> None:
    """Each start sees a single file, of one size and name that show nothing, and no trace of the one before."""
    code = """
data = open(os.path.join(sys.argv[1], file), "rb").read()
assert len(os.listdir(sys.argv[1])) == 1 and data[:2] == b"P6" and len(data) == 3 * 299 * 299 + 15
assert not os.path.exists("/tmp/before")
open("/tmp/before", "w").write("x")
answer = "bird" if data[-3] > 100 else "abstain"
"""
    paths = {}
    for name, color in {"a": (200, 0, 0), "b": (10, 0, 0)}.items():
        paths[name] = tmp_path / f"{name}.jpg"
        paths[name].write_bytes(png(color, (40, 30), "JPEG"))
    answers, seconds = program(tmp_path, code)(paths)
    assert answers == {"a": "bird", "b": "abstain"}
    assert seconds > 0


def test_what_a_program_sees(tmp_path: Path) -> None:
    """Its files, the system's programs, one image: neither the machine's files nor variables, processes or network."""
    (tmp_path / "secret").write_text("s")
    code = f"""
import socket
assert sorted(os.listdir("/defence")) == ["more.txt", "run.py"], os.listdir("/defence")
assert open("/defence/more.txt").read() == "m"
for path in ({str(tmp_path)!r}, "/root", "/home/x", "/etc/passwd", "/usr/local", "/usr/share", "/work"):
    assert not os.path.exists(path), path
assert os.getuid() == 65534 and os.environ.keys() <= {{"PATH", "LANG", "HOME", "TMPDIR", "LC_CTYPE"}}, os.environ
assert len([each for each in os.listdir("/proc") if each.isdigit()]) == 1
for target in (("127.0.0.1", 22), ("1.1.1.1", 53)):
    try:
        socket.create_connection(target, 2)
        sys.exit(3)
    except OSError:
        pass
for path in ("/defence/x", "/images/x", "/usr/bin/x", "/x"):
    try:
        open(path, "w")
        sys.exit(4)
    except OSError:
        pass
"""
    assert answer_to(program(tmp_path, code, more=b"m"), tmp_path) == "bird"


def test_the_first_word_of_a_command_shows_no_folder(tmp_path: Path) -> None:
    """A program that is elsewhere is not there, and neither is what is next to it."""
    tool = tmp_path / "X" / "bin" / "tool"
    tool.parent.mkdir(parents=True)
    tool.write_text("#!/bin/sh\nls $1 | sed 's/$/, bird/'\n")
    tool.chmod(0o755)
    (tmp_path / "X" / "lib").mkdir()
    assert "failed with exit code" in said(tmp_path, "", 60, str(tool))


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("sys.exit('sorry')", "failed with exit code 1 ('sorry'); expected 0: fix it"),
        ("answer = 'cat'", "answers 'cat'; expected one of bird, bicycle, abstain"),
        ("print(file + ', bird')", "a second time; expected one line for each image"),
        ("file = 'other'", "expected a file that it was given"),
        ("bytearray(9 * 2**30)", "failed with exit code 1 ('MemoryError')"),
        ("open('/tmp/x', 'wb').write(bytes(2**30 + 2**20))", "failed with exit code"),
        ("[os.fork() or time.sleep(9) for n in range(600)]", "failed with exit code"),
    ],
)  # fmt: skip
def test_a_program_that_fails(code: str, message: str, tmp_path: Path) -> None:
    """Also by the limits of memory, of what it writes, and of processes."""
    assert message in said(tmp_path, code)


def test_time_is_for_all_images_together(tmp_path: Path) -> None:
    begun = time.monotonic()
    assert "too slow; expected at least 30 images a minute" in said(tmp_path, "time.sleep(60)", 2)
    assert time.monotonic() - begun < 30
    assert not any("cleanset-" in text for text in processes())


def processes() -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes().decode(errors="replace"))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("code", ["while True: print('x' * 1000)", "os.lseek(1, 2**40, 0); os.write(1, b'x')"])
def test_output_without_end_is_stopped(code: str, tmp_path: Path) -> None:
    """Also one that only looks long."""
    assert "printed over 1,000,000 bytes" in said(tmp_path, code)


def test_a_program_gives_no_space_of_the_disk_away(tmp_path: Path) -> None:
    """By fallocate on its own output."""
    assert "failed with exit code 1" in said(tmp_path, "os.posix_fallocate(1, 0, 2**31)")


def test_without_gvisor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "RUNSC", "no-such-program")
    with pytest.raises(CleansetError, match="a program; expected gVisor's no-such-program to work: install"):
        program(tmp_path, "")


def test_files_that_tell_nothing(tmp_path: Path) -> None:
    """Neither kind, size, name nor date of an image, and of a program's files neither date nor permissions."""
    sizes = set()
    for name, data in {"a": png((9, 9, 9), (30, 30)), "b": png((9, 9, 9), (99, 40), "JPEG")}.items():
        (tmp_path / name).write_bytes(data)
        file = nameless_copy(tmp_path / name, tmp_path / "images")
        found = (tmp_path / "images" / file).stat()
        sizes.add((found.st_size, found.st_mtime, found.st_mode & 0o777, len(file)))
        assert [each.name for each in (tmp_path / "images").iterdir()] == [file]
    assert sizes == {(3 * 299 * 299 + 15, 0.0, 0o444, 36)}
    defence = program(tmp_path, "")
    write_files(Objects(tmp_path), tmp_path / "folder", defence._program)
    assert [(each.stat().st_mtime, each.stat().st_mode & 0o777) for each in (tmp_path / "folder").iterdir()] == [
        (0.0, 0o555)
    ]


def test_a_file_that_has_changed(tmp_path: Path) -> None:
    defence = program(tmp_path, "")
    for path in (tmp_path / "objects").iterdir():
        path.write_bytes(b"other")
    with pytest.raises(CleansetError, match=r"SHA-256 .*; expected "):
        answer_to(defence, tmp_path)
