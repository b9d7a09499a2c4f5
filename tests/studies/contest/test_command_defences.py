"""Defences that are commands: what they see, what they leave behind, and every way in which they fail."""

import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from PIL import Image

from cleanset.errors import CleansetError
from cleanset.studies.contest import command_defences
from cleanset.studies.contest.bubblewrap import Bubblewrap
from cleanset.studies.contest.command_defences import SANDBOXES, CommandDefence, nameless_copy, parse_answers
from cleanset.studies.contest.entries import Defence
from cleanset.studies.contest.objects import Objects
from cleanset.studies.contest.sandbox import Confined, Sandbox, Start, can_start, scope
from tests.conftest import without
from tests.documents import blocks
from tests.studies.contest.on_disk import digest, png
from tests.time_limits import at_most

GROUPS = ("bicycle", "bird")
ANSWERS = {"a.png": "bird", "b.png": "abstain"}


def test_the_lines_of_an_answer() -> None:
    text = "b.png, abstain\n\na.png,bird\r\n"
    assert parse_answers(text, ["a.png", "b.png"], GROUPS, "gold/wall") == ANSWERS


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a.png, bird\n", "gold/wall: no answer to 1 of 2 images, b.png among them; expected a line of a file, a"),
        ("", "no answer to 2 of 2 images, a.png among them"),
        ("a.png, cat\nb.png, bird\n", "line 1 of its output: answers 'cat'; expected one of bicycle, bird, abstain"),
        ("a.png, bird\na.png, bird\n", "line 2 of its output: a.png a second time"),
        ("a.png, bird\nc.png, bird\n", "line 2 of its output: 'c.png, bird'; expected a file that it was given"),
        ("a.png bird\n", "line 1 of its output: 'a.png bird'; expected a file"),
    ],
)
def test_refused_output(text: str, message: str) -> None:
    with pytest.raises(CleansetError, match=message):
        parse_answers(text, ["a.png", "b.png"], GROUPS, "gold/wall")


def installed(sandbox: Sandbox) -> Sandbox:
    """A sandbox, if this machine has it and lets it confine a command."""
    if shutil.which(sandbox.program) is None:
        without(f"{sandbox.program} is not installed")
    if not can_start(sandbox):
        pytest.skip(f"this machine does not let {sandbox.program} confine a command, as in some containers")
    return sandbox


@pytest.fixture(params=SANDBOXES, ids=[each.program for each in SANDBOXES])
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    return installed(request.param)


def answers_of(
    command: list[str], folder: Path, images: Path, seconds: float = 60, sandboxes: Sequence[Sandbox] = SANDBOXES
) -> dict[str, str]:
    """The answers of a command with that time limit."""
    entry = Defence.model_construct(name="gold/wall", command=command, time_limit_seconds=seconds)
    defence = CommandDefence(Objects(folder), entry, GROUPS, unconfined=True, sandboxes=sandboxes)
    return defence.answers_of(folder, images, time.monotonic() + seconds)


@pytest.fixture
def images(tmp_path: Path) -> Path:
    folder = tmp_path / "images"
    folder.mkdir()
    for name in ANSWERS:
        (folder / name).write_bytes(png((0, 0, 0)))
    return folder


def script(tmp_path: Path, code: str) -> tuple[list[str], Path]:
    """A command in a folder of its own."""
    folder = tmp_path / "defence"
    folder.mkdir(parents=True)
    (folder / "run.py").write_text("import os, sys, time\n" + textwrap.dedent(code))
    return [sys.executable, "run.py"], folder


def test_a_command_is_given_the_folder_of_images(tmp_path: Path, images: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing of this process's environment but its path and language; its home is empty."""
    command, folder = script(
        tmp_path,
        """
        assert "PYTHONPATH" not in os.environ and not os.listdir(os.environ["HOME"])
        for name in os.listdir(sys.argv[1]):
            print(f"{name}, {'bird' if name == 'a.png' else 'abstain'}")
        """,
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert answers_of(command, folder, images) == ANSWERS


class Open:
    """Starts a command as it is, with what the program of a sandbox is given."""

    program = "sh"

    @contextmanager
    def open(self, confined: Confined, scratch: Path) -> Iterator[Start]:
        yield Start(command=[*confined.command, str(confined.images.resolve())])


def test_a_sandbox_without_a_scope_is_given_nothing_of_it(
    tmp_path: Path, images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    command, folder = script(
        tmp_path,
        f"""
        assert ("XDG_RUNTIME_DIR" in os.environ) == {bool(scope())}
        for name in os.listdir(sys.argv[1]):
            print(f"{{name}}, {{'bird' if name == 'a.png' else 'abstain'}}")
        """,
    )
    assert answers_of(command, folder, images, sandboxes=[Open()]) == ANSWERS


@pytest.mark.parametrize(
    ("code", "seconds", "message"),
    [
        ("sys.exit(3)", 60, "gold/wall: its command failed with exit code 3"),
        ("raise ValueError('no weights')", 60, r"failed with exit code 1 \('ValueError: no weights'\)"),
        ("time.sleep(60)", 0.5, "its command took more than 0.5 s; expected it to end within that time"),
        ("print('a.png, bird')", 60, "no answer to 1 of 2 images, b.png among them"),
    ],
)
def test_a_command_that_fails(code: str, seconds: float, message: str, tmp_path: Path, images: Path) -> None:
    command, folder = script(tmp_path, code)
    with pytest.raises(CleansetError, match=message):
        answers_of(command, folder, images, seconds)


def test_a_program_that_is_not_there(tmp_path: Path, images: Path) -> None:
    with pytest.raises(CleansetError, match="gold/wall: its command did not start"):
        answers_of(["./no-such-program"], tmp_path, images, sandboxes=())


@pytest.mark.long
@pytest.mark.slow
def test_a_command_leaves_nothing_running(tmp_path: Path, images: Path) -> None:
    """Not what it started itself either: a child that outlives it would write the file."""
    late = tmp_path / "late"
    command, folder = script(
        tmp_path,
        f"""
        import subprocess
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1); open({str(late)!r}, 'w')"])
        print("a.png, bird"), print("b.png, abstain")
        """,
    )
    assert answers_of(command, folder, images) == ANSWERS
    time.sleep(1.5)
    assert not late.exists()


@pytest.mark.long
def test_a_command_has_no_network(tmp_path: Path, images: Path, sandbox: Sandbox) -> None:
    command, folder = script(
        tmp_path,
        """
        names = [line.split(":")[0].strip() for line in open("/proc/net/dev").readlines()[2:]]
        assert names == ["lo"], names
        print("a.png, bird"), print("b.png, abstain")
        """,
    )
    assert answers_of(command, folder, images, sandboxes=[sandbox]) == ANSWERS


@pytest.mark.long
def test_a_command_sees_its_files_and_the_images(
    tmp_path: Path, images: Path, monkeypatch: pytest.MonkeyPatch, sandbox: Sandbox
) -> None:
    """And the system's programs; no other file of its user, no other process; it can write to its home alone."""
    (tmp_path / "secret").write_text("the unpublished list")
    monkeypatch.setenv("HOME", str(tmp_path))
    # beside the system's folders it sees its interpreter, wherever that is installed
    installed = [Path(prefix).parts for prefix in (sys.prefix, sys.base_prefix)]
    allowed = {
        "dev",
        "home",
        *(["sys"] if sandbox.program == "runsc" else []),
        "proc",
        "tmp",
        "defence",
        "images",
        *(parts[1] for parts in installed),
    }
    in_tmp = sorted({parts[2] for parts in installed if parts[1] == "tmp"})
    command, folder = script(
        tmp_path,
        f"""
        assert os.listdir(".") == ["run.py"] and sorted(os.listdir(sys.argv[1])) == ["a.png", "b.png"]
        assert set(os.listdir("/usr")) <= {{"bin", "lib", "lib32", "lib64", "libx32", "local"}}, os.listdir("/usr")
        assert set(os.listdir("/usr/local")) <= {{"bin", "lib"}}
        seen = set(os.listdir("/")) - {{"bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "etc", "nix", "root"}}
        assert seen <= {allowed}, seen
        assert not os.path.exists({str(tmp_path)!r}) and os.listdir(os.environ["HOME"]) == []
        assert sorted(os.listdir("/tmp")) == {in_tmp}
        assert [each for each in os.listdir("/proc") if each.isdigit()] == ["1"]
        for path in ("run.py", sys.argv[1] + "/a.png", os.__file__):
            try:
                open(path, "a").close()
            except OSError:
                continue
            sys.exit(path + " can be written")
        open(os.environ["HOME"] + "/cache", "w").close()
        print("a.png, bird"), print("b.png, abstain")
        """,
    )
    assert answers_of(command, folder, images, sandboxes=[sandbox]) == ANSWERS


@pytest.mark.long
def test_the_environment_of_an_interpreter(tmp_path: Path, images: Path, sandbox: Sandbox) -> None:
    """Also one in the temporary folder, which the command has anew."""
    with tempfile.TemporaryDirectory(dir="/tmp") as environment:
        venv.create(environment, with_pip=False)
        command, folder = script(
            tmp_path,
            f"""
            assert sys.prefix == {environment!r} != sys.base_prefix, sys.prefix
            print("a.png, bird"), print("b.png, abstain")
            """,
        )
        command[0] = f"{environment}/bin/python"
        assert answers_of(command, folder, images, sandboxes=[sandbox]) == ANSWERS


@pytest.mark.long
def test_a_callable_takes_part_as_a_command(tmp_path: Path, repository: Path) -> None:
    """By the page's program, with a network that sees birds in red."""
    (program,) = blocks(repository, "python", "docs/contest.md")
    command, folder = script(tmp_path, program)
    (folder / "mine.py").write_text(
        "import numpy as np\n"
        "def network(pixels):\n"
        "    assert pixels.shape == (1, 3, 224, 224) and pixels.dtype == np.float32\n"
        "    logits = np.zeros((1, 1000))\n"
        "    logits[0, 11] = 20 * pixels[0, 0].mean()\n"
        "    return logits\n"
    )
    images = tmp_path / "images"
    images.mkdir()
    for name, color in {"a.png": (255, 0, 0), "b.png": (0, 0, 0)}.items():
        (images / name).write_bytes(png(color))
    assert answers_of(command, folder, images) == ANSWERS


@pytest.mark.long
def test_what_leaves_the_session_ends_too(tmp_path: Path, images: Path, sandbox: Sandbox) -> None:
    """A child in a session of its own is not killed by its group, but it is with its namespace."""
    mark = f"sleep {os.getpid() % 1000 + 3000}"
    command, folder = script(
        tmp_path,
        f"""
        import subprocess
        subprocess.Popen({mark.split()!r}, start_new_session=True)
        print("a.png, bird"), print("b.png, abstain")
        """,
    )
    assert answers_of(command, folder, images, sandboxes=[sandbox]) == ANSWERS
    assert mark not in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout


@pytest.mark.long
def test_output_without_end_is_stopped(tmp_path: Path, images: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While it runs, long before its time is over."""
    monkeypatch.setattr(command_defences, "MAX_OUTPUT_BYTES", 1_000_000)
    for stream in ("stdout", "stderr"):
        command, folder = script(tmp_path / stream, f"while True: sys.{stream}.write('x' * 10_000)")
        with (
            at_most(30),
            pytest.raises(CleansetError, match="gold/wall: its command printed more than 1,000,000 bytes"),
        ):
            answers_of(command, folder, images, 600)


@pytest.mark.long
def test_output_that_is_too_long_when_the_command_has_ended(
    tmp_path: Path, images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_defences, "MAX_OUTPUT_BYTES", 100)
    end = "print('a.png, bird'); print('b.png, abstain', flush=True); os.write(2, b'x' * {}); os._exit(0)"
    command, folder = script(tmp_path / "as_much", end.format(100))
    assert answers_of(command, folder, images) == ANSWERS
    command, folder = script(tmp_path / "more", end.format(101))
    with pytest.raises(CleansetError, match="gold/wall: its command printed more than 100 bytes"):
        answers_of(command, folder, images)


def test_files_that_tell_nothing(tmp_path: Path) -> None:
    """Named anew, and all alike: PNGs of one size and one date, without any metadata, each alone in its folder."""
    found = []
    for name, size, kind in (("a", (40, 30), "JPEG"), ("b", (40, 30), "PNG"), ("c", (600, 900), "PNG")):
        (tmp_path / name).write_bytes(png((9, 200, 30), size, kind, icc_profile=b"profile"))
        for _ in range(2):
            found.append(nameless_copy(tmp_path / name, tmp_path / "given"))
            (file,) = (tmp_path / "given").iterdir()
            assert file.name == found[-1]
            with Image.open(file) as image, Image.open(tmp_path / name) as original:
                assert (image.format, image.mode, image.size, image.info) == ("PNG", "RGB", (299, 299), {})
                assert image.getcolors() == [(299 * 299, original.convert("RGB").getpixel((0, 0)))]
            assert file.stat().st_mtime == file.parent.stat().st_mtime == 0
    assert len(set(found)) == 6
    assert all(re.fullmatch(r"[0-9a-f]{32}\.png", each) for each in found)


def given(tmp_path: Path, count: int) -> dict[str, Path]:
    """Images of different sizes by a name."""
    found = {f"image {number}": tmp_path / f"{number}.png" for number in range(count)}
    for number, path in enumerate(found.values()):
        path.write_bytes(png((10 * number, 0, 0), (20 + number, 30)))
    return found


def command_defence(
    folder: Path, code: str, sandboxes: Sequence[Sandbox] = SANDBOXES, **changed: object
) -> CommandDefence:
    """A command whose only file is the program."""
    text = "import os, sys, time\n" + textwrap.dedent(code)
    (folder / "objects").mkdir()
    (folder / "objects" / digest(text.encode())).write_text(text)
    content: dict[str, object] = {"name": "gold/wall", "submitted": "2026-11-01", "open": False}
    content |= {"command": [sys.executable, "run.py"], "files": [{"path": "run.py", "sha256": digest(text.encode())}]}
    entry = Defence.model_validate(content | changed)
    return CommandDefence(Objects(folder), entry, GROUPS, unconfined=True, sandboxes=sandboxes)


@pytest.mark.long
def test_a_command_sees_one_image_at_a_time(tmp_path: Path) -> None:
    """Neither another one nor anything that it has left: it cannot compare them, nor remember what it has seen."""
    folder = tmp_path / "wall"
    folder.mkdir()
    answer = command_defence(
        folder,
        """
        from PIL import Image
        (file,) = os.listdir(sys.argv[1])
        image = Image.open(os.path.join(sys.argv[1], file))
        assert image.size == (299, 299) and not os.listdir(os.environ["HOME"])
        open(os.environ["HOME"] + "/seen", "w").close()
        print(f"{file}, {'bird' if image.getpixel((0, 0))[0] == 20 else 'abstain'}")
        """,
    )
    found, _ = answer(given(tmp_path, 4))
    assert found == {f"image {number}": "bird" if number == 2 else "abstain" for number in range(4)}
    assert answer.preparation_seconds > 0


@pytest.mark.long
@pytest.mark.parametrize(
    "code",
    [
        "(os.getuid(), os.geteuid(), os.getgid()) != (65534, 65534, 65534)",
        'os.access("/proc/sys/kernel/core_pattern", os.W_OK)',
        'any(os.access(each, os.W_OK) for each in in_proc if "self" not in each)',
        "opens(lambda: socket.socket(40, socket.SOCK_STREAM))",  # AF_VSOCK
        "opens(lambda: socket.socket(38, socket.SOCK_SEQPACKET))",  # AF_ALG
        'opens(lambda: open("/left", "w"))',
        'opens(lambda: open("/dev/left", "w"))',
        "opens(lambda: os.posix_fallocate(1, 0, 2 * 10**9))",
        'opens(lambda: [open(f"/tmp/{n}", "w").truncate(10**8) for n in range(20)]) and opens(written)',
        "not opens(lambda: socket.socket(socket.AF_INET))",
        'not opens(lambda: open("/home/seen", "w"))',
        'not opens(lambda: open("/dev/null", "w"))',
    ],
)
def test_what_is_not_let_out(code: str, tmp_path: Path, sandbox: Sandbox) -> None:
    """Neither into the machine's settings, nor to a socket of the host, nor to more memory than granted."""
    assert not is_true_inside(code, tmp_path, sandbox)


@pytest.mark.parametrize(
    "code",
    [
        "ctypes.CDLL(None).unshare(0x10000000) == 0",  # CLONE_NEWUSER
        "ctypes.CDLL(None).syscall(425, 1, ctypes.create_string_buffer(120)) >= 0",  # io_uring_setup
    ],
)
def test_what_the_kernel_does_not_do_for_a_command(code: str, tmp_path: Path) -> None:
    """Of gVisor's kernel a command may have such calls: no other kernel carries them out."""
    assert not is_true_inside(code, tmp_path, installed(Bubblewrap()))


def is_true_inside(code: str, tmp_path: Path, sandbox: Sandbox) -> bool:
    """What an expression is for a confined command."""
    (tmp_path / "wall").mkdir()
    answer = command_defence(
        tmp_path / "wall",
        f"""
        import ctypes, glob, socket
        in_proc = [*glob.glob("/proc/[a-z]*"), *glob.glob("/proc/[a-z]*/*")]
        def opens(act):
            try:
                act()
            except OSError:
                return False
            return True
        def written():
            for number in range(12):
                with open(f"/tmp/{{number}}", "wb") as file:
                    file.write(bytes(10**8))
        print(os.listdir(sys.argv[1])[0] + (", bird" if {code} else ", abstain"))
        """,
        sandboxes=[sandbox],
    )
    (found,) = answer(given(tmp_path, 1))[0].values()
    return found == "bird"


def test_another_user_reads_what_it_is_given(tmp_path: Path, sandbox: Sandbox) -> None:
    """Whatever the umask of whoever starts it."""
    before = os.umask(0o077)
    try:
        assert is_true_inside("True", tmp_path, sandbox)
    finally:
        os.umask(before)


def test_no_sandbox_is_chosen_where_its_program_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The first that is there is."""
    programs = {each: shutil.which(each) or without(f"{each} is not installed") for each in ("bwrap", "true")}
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [each.program for each in SANDBOXES if can_start(each)] == []
    assert scope() == []
    for name, place in programs.items():
        (tmp_path / name).symlink_to(place)
    assert [each.program for each in SANDBOXES if can_start(each)] == ["bwrap"]


@pytest.mark.skipif(command_defences._KEYCTL is None, reason="needs the number of a system call")
def test_a_command_leaves_nothing_in_a_keyring(tmp_path: Path) -> None:
    """As of a login session, which all its processes share, whatever namespaces they are in; gVisor has no keyrings."""
    add_key = {250: 248, 219: 217}[command_defences._KEYCTL or 0]
    if ctypes.CDLL(None).syscall(command_defences._KEYCTL, 1, None) < 0:
        pytest.skip("this machine has no keyrings")
    (tmp_path / "wall").mkdir()
    answer = command_defence(
        tmp_path / "wall",
        f"""
        import ctypes
        system = ctypes.CDLL(None).syscall
        seen = system({command_defences._KEYCTL}, 10, -3, b"user", b"seen", 0) > 0
        assert system({add_key}, b"user", b"seen", b"x", 1, -3) > 0
        print(os.listdir(sys.argv[1])[0] + (", bird" if seen else ", abstain"))
        """,
        sandboxes=[installed(Bubblewrap())],
    )
    assert set(answer(given(tmp_path, 3))[0].values()) == {"abstain"}


@pytest.mark.long
def test_the_time_limit_is_for_all_images_together(tmp_path: Path) -> None:
    folder = tmp_path / "wall"
    folder.mkdir()
    code = "time.sleep(0.6), print(os.listdir(sys.argv[1])[0] + ', abstain')"
    with at_most(20), pytest.raises(CleansetError, match="gold/wall: its command took more than 2 s; expected it to"):
        command_defence(folder, code, time_limit_seconds=2)(given(tmp_path, 5))


def test_the_order_of_images_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wall").mkdir()
    answer, paths = command_defence(tmp_path / "wall", ""), given(tmp_path, 6)
    answers = {each.name: "bird" for each in paths.values()}
    monkeypatch.setattr(command_defences, "nameless_copy", lambda path, folder: path.name)
    monkeypatch.setattr(answer, "answers_of", lambda *_: answers)
    assert len({tuple(answer(paths)[0]) for _ in range(4)}) > 1


@pytest.mark.parametrize("name", ["README.md", "run.py", ".table", "objects/table"])
def test_what_the_entry_does_not_name_is_not_there(name: str, tmp_path: Path) -> None:
    """Else a staked defence could change with all digests as they were."""
    folder = tmp_path / "wall"
    folder.mkdir()
    answer = command_defence(
        folder,
        f"""
        found = sorted(each for _, folders, files in os.walk(".") for each in folders + files)
        assert found == ["run.py"] and not os.path.exists({str(folder)!r}), found
        assert os.stat("run.py").st_mtime == 0 and os.access("run.py", os.X_OK)
        print(os.listdir(sys.argv[1])[0] + ", bird")
        """,
    )
    (folder / name).write_text("bird")
    assert answer(given(tmp_path, 1))[0] == {"image 0": "bird"}


def test_a_file_of_a_defence_that_has_changed(tmp_path: Path) -> None:
    (tmp_path / "wall").mkdir()
    answer = command_defence(tmp_path / "wall", "print('bird')")
    (path,) = (tmp_path / "wall" / "objects").iterdir()
    path.write_text("print('abstain')")
    with pytest.raises(CleansetError, match=f"SHA-256 .*; expected {path.name}: the file has changed"):
        answer(given(tmp_path, 1))
