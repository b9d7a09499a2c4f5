"""Running defences: commands that fail in every way, a real model of the sample, the record of a run, thresholds."""

import ctypes
import io
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cleanset.classes import imagenet
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.scoring.logits import Groups
from cleanset.sets.manifest import file_name, manifest_csv
from cleanset.studies.contest import defending as defences
from cleanset.studies.contest.defending import (
    CommandDefence,
    ModelDefence,
    different_answers,
    group_columns,
    list_digest,
    nameless_copy,
    parse_answers,
    run_defence,
    threshold_text,
    unpublished_list,
)
from cleanset.studies.contest.defending import run as run_threshold
from cleanset.studies.contest.entering import check, enter_runs
from cleanset.studies.contest.files import Defence, ModelOfEdition
from cleanset.studies.contest.log import LOG, LOG_SIGNATURE, Objects
from cleanset.studies.contest.rules import parse_instant
from tests.browser_tab import SOURCE
from tests.checkouts import Checkout
from tests.documents import blocks
from tests.forked_commands import forking
from tests.studies.contest.made import day
from tests.studies.contest.on_disk import MODEL, OnDisk, digest, key, png
from tests.studies.robustness.entries import entry
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


def answers_of(command: list[str], folder: Path, images: Path, seconds: float = 60) -> dict[str, str]:
    """The answers of a command with that time limit."""
    defence = Defence.model_construct(name="gold/wall", command=command, time_limit_seconds=seconds)
    return defences.answers_of(defence, folder, images, GROUPS, time.monotonic() + seconds)


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


def test_a_program_that_is_not_there(tmp_path: Path, images: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(defences, "can_confine", lambda: False)
    with pytest.raises(CleansetError, match="gold/wall: its command did not start"):
        answers_of(["./no-such-program"], tmp_path, images)


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


needs_bubblewrap = pytest.mark.skipif(
    not defences.can_confine() and not os.environ.get("CLEANSET_NO_SKIP"),
    reason="no bubblewrap, or this machine does not let a user make namespaces",
)


@needs_bubblewrap
def test_a_command_has_no_network(tmp_path: Path, images: Path) -> None:
    command, folder = script(
        tmp_path,
        """
        import socket
        names = [name for _, name in socket.if_nameindex()]
        assert names == ["lo"], names
        print("a.png, bird"), print("b.png, abstain")
        """,
    )
    assert answers_of(command, folder, images) == ANSWERS


@needs_bubblewrap
def test_a_command_sees_its_files_and_the_images(tmp_path: Path, images: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the system's programs; no other file of its user, no other process; it can write to its home alone."""
    (tmp_path / "secret").write_text("the unpublished list")
    monkeypatch.setenv("HOME", str(tmp_path))
    # beside the system's folders it sees its interpreter, wherever that is installed
    installed = [Path(prefix).parts for prefix in (sys.prefix, sys.base_prefix)]
    allowed = {"dev", "home", "proc", "tmp", "defence", "images", *(parts[1] for parts in installed)}
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
    assert answers_of(command, folder, images) == ANSWERS


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


@needs_bubblewrap
def test_what_leaves_the_session_ends_too(tmp_path: Path, images: Path) -> None:
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
    assert answers_of(command, folder, images) == ANSWERS
    assert mark not in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout


def test_output_without_end_is_stopped(tmp_path: Path, images: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While it runs, long before its time is over."""
    monkeypatch.setattr(defences, "MAX_OUTPUT_BYTES", 1_000_000)
    for stream in ("stdout", "stderr"):
        command, folder = script(tmp_path / stream, f"while True: sys.{stream}.write('x' * 10_000)")
        with (
            at_most(30),
            pytest.raises(CleansetError, match="gold/wall: its command printed more than 1,000,000 bytes"),
        ):
            answers_of(command, folder, images, 600)


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


def command_defence(folder: Path, code: str, **changed: object) -> CommandDefence:
    """A command whose only file is the program."""
    text = "import os, sys, time\n" + textwrap.dedent(code)
    (folder / "objects").mkdir()
    (folder / "objects" / digest(text.encode())).write_text(text)
    content: dict[str, object] = {"name": "gold/wall", "submitted": "2026-11-01", "open": False}
    content |= {"command": [sys.executable, "run.py"], "files": [{"path": "run.py", "sha256": digest(text.encode())}]}
    return CommandDefence(Objects(folder), Defence.model_validate(content | changed), GROUPS, True)


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


@needs_bubblewrap
@pytest.mark.skipif(defences._KEYCTL is None, reason="needs the number of a system call")
def test_a_command_leaves_nothing_in_a_keyring(tmp_path: Path) -> None:
    """As of a login session, which all processes of that session share, whatever namespaces they are in."""
    add_key = {250: 248, 219: 217}[defences._KEYCTL or 0]
    if ctypes.CDLL(None).syscall(defences._KEYCTL, 1, None) < 0:
        pytest.skip("this machine has no keyrings")
    (tmp_path / "wall").mkdir()
    answer = command_defence(
        tmp_path / "wall",
        f"""
        import ctypes
        system = ctypes.CDLL(None).syscall
        seen = system({defences._KEYCTL}, 10, -3, b"user", b"seen", 0) > 0
        assert system({add_key}, b"user", b"seen", b"x", 1, -3) > 0
        print(os.listdir(sys.argv[1])[0] + (", bird" if seen else ", abstain"))
        """,
    )
    assert set(answer(given(tmp_path, 3))[0].values()) == {"abstain"}


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
    monkeypatch.setattr(defences, "nameless_copy", lambda path, folder: path.name)
    monkeypatch.setattr(defences, "answers_of", lambda *_: answers)
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


def test_a_machine_that_cannot_confine(monkeypatch: pytest.MonkeyPatch, made: OnDisk) -> None:
    """A command is not started, unless this is wanted, and the run says so."""
    monkeypatch.setattr(defences, "can_confine", lambda: False)
    on = day("2026-11-09")
    ready(made)
    use_command(made)
    files = made.state("2026-11-09")
    with pytest.raises(CleansetError, match="cannot confine; expected bubblewrap"):
        run_defence(made.folder, files, "gold/wall", on)
    assert run_defence(made.folder, files, "gold/wall", on, unconfined=True).confined is False


def test_what_is_read_of_logits() -> None:
    logits = np.zeros((1, 1000))
    logits[0, 444], logits[0, 671], logits[0, 7] = 2, 2, 3
    groups = Groups.of({"bicycle": ["n02835271", "n03792782"], "bird": ["n01514668"]}, imagenet())
    found = group_columns(groups, logits)
    two = 2 + np.log(2)
    assert found["group"].tolist() == [1]
    assert [found["largest_logit"][0], found["second_logit"][0]] == pytest.approx([3, two])
    assert found["log_odds"][0] == pytest.approx(3 - two)


COMMAND = """
from PIL import Image
for name in sorted(os.listdir(sys.argv[1])):
    color = Image.open(os.path.join(sys.argv[1], name)).getpixel((0, 0))
    print(name + ", " + ("bird" if color[0] % 2 else "abstain"))
"""


def ready(made: OnDisk) -> None:
    """Three images of class tench in the finished set; the groups are tench and goldfish."""
    folder, entries = made.edition / "data" / "export" / "standard", []
    for number in (1, 2, 3):
        data = png((10 * number, 200, 100), (40, 30), "JPEG")
        entries.append(entry(number, digest=digest(data)).model_copy(update={"rank": number}))
        path = folder / file_name(entries[-1].wnid, entries[-1].image_id, None)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    made.text(folder / "manifest.csv", manifest_csv(entries))
    others = next(wnid for wnid in ("n01443537", "n01484850") if wnid != entries[0].wnid)
    made.changed("contest", classes={"bicycle": [others], "bird": [entries[0].wnid]})


def odd(data: bytes) -> bool:
    """Whether the command calls an image a bird."""
    with Image.open(io.BytesIO(data)) as image:
        return image.convert("RGB").tobytes()[0] % 2 == 1


def use_command(made: OnDisk, code: str = COMMAND, *names: str) -> None:
    """Make gold/wall a command that the board has accepted, and enter others beside it."""
    text = "import os, sys\n" + code
    sha = made.put(text.encode())
    command = {"open": False, "command": [sys.executable, "run.py"], "files": [{"path": "run.py", "sha256": sha}]}
    made.story = [each for each in made.story if each[1] not in ("run", "accept", "defence")]
    for name in reversed(("gold/wall", *names)):
        made.story.insert(2, ("2026-11-01T10:00:00Z", "accept", {"defence": name}))
        made.story.insert(2, ("2026-11-01T10:00:00Z", "defence", {"name": name, **command}))
    made.write()


def test_a_run_of_a_command(tmp_path: Path, made: OnDisk) -> None:
    """It is printed, or entered into the log."""
    ready(made)
    use_command(made)
    at, before = parse_instant("2026-11-09T12:00:00Z"), made.path(LOG).read_bytes()
    (printed,) = enter_runs(made.folder, None, None, False, None, at)
    assert made.path(LOG).read_bytes() == before
    content = json.loads(printed)
    assert content["answers"] == {made.sha256: "abstain"}  # 200 is even
    paths = (tmp_path / "data" / "export" / "standard").glob("*/*.JPEG")
    correct = sum(odd(each.read_bytes()) for each in paths)
    expected = {"images": 3, "correct": correct, "mistakes": 0, "mistakes_at_80": 0}
    assert content["eligibility"] == expected
    assert content["images_per_minute"] > 0
    assert content["confined"] is defences.can_confine()
    (line,) = enter_runs(made.folder, ["gold/wall"], None, False, key("staff"), at)
    assert line.startswith("line 10 (run), ")
    (run,) = made.state().runs
    assert (run.date, run.answers) == (day("2026-11-09"), content["answers"])
    assert check(made.folder, None, None, True)[2:] == ["gold/wall: 1 runs of a command, not recomputable"]


def test_a_second_list_that_is_not_published(tmp_path: Path, made: OnDisk) -> None:
    """Only how many are correct is written, never which images they are."""
    hidden, on = tmp_path / "hidden", day("2026-11-09")
    ready(made)
    use_command(made)
    data = {name: png((number, 9, 9), (20 + number, 30)) for number, name in enumerate("abcd")}
    for name, group in zip(data, ("bird", "bird", "bird", "bicycle"), strict=True):
        (hidden / group).mkdir(parents=True, exist_ok=True)
        (hidden / group / f"{name}.png").write_bytes(data[name])
    with pytest.raises(CleansetError, match=r"hidden: an unpublished list, missing from contest\.yaml; expected its"):
        run_defence(made.folder, made.state(), "gold/wall", on, hidden)
    made.changed("contest", unpublished="0" * 64)
    with pytest.raises(
        CleansetError, match=r"hidden: a list with the digest .*; expected the one that contest.yaml na"
    ):
        run_defence(made.folder, made.state(), "gold/wall", on, hidden)
    named = list_digest(unpublished_list(hidden, made.state().rules.groups()))
    assert named == digest(
        "".join(sorted(f"{'bicycle' if n == 'd' else 'bird'} {digest(data[n])}\n" for n in data)).encode()
    )
    assert check(made.folder, hidden, None, False) == [f'unpublished: "{named}"   # 4 images']
    made.changed("contest", unpublished=named)
    files = made.state()
    with pytest.raises(
        CleansetError, match="contest/unpublished: no folder; expected the unpublished list that contest"
    ):
        run_defence(made.folder, files, "gold/wall", on)
    found = run_defence(made.folder, files, "gold/wall", on, hidden)
    is_odd = {name: odd(each) for name, each in data.items()}  # the command calls these birds
    assert found.unpublished is not None
    assert found.unpublished.list_sha256 == named
    counts = (found.unpublished.images, found.unpublished.correct, found.unpublished.mistakes)
    assert counts == (4, sum(is_odd[name] for name in "abc"), int(is_odd["d"]))
    assert list(found.answers) == [made.sha256]
    shutil.copytree(hidden, made.path("unpublished"))  # where it is found without being named
    assert run_defence(made.folder, files, "gold/wall", on).unpublished == found.unpublished
    (hidden / "bicycle" / "d.png").write_bytes(data["a"])
    with pytest.raises(CleansetError, match=r"the same image as .*; expected each image in one group"):
        run_defence(made.folder, files, "gold/wall", on, hidden)
    (hidden / "bicycle" / "d.png").unlink()
    os.mkfifo(hidden / "bicycle" / "d.png")
    with at_most(5), pytest.raises(CleansetError, match=r"d\.png: a named pipe; expected a regular file"):
        run_defence(made.folder, files, "gold/wall", on, hidden)
    shutil.rmtree(hidden / "bicycle")
    with pytest.raises(CleansetError, match="bicycle: no image; expected a folder of images for each"):
        run_defence(made.folder, files, "gold/wall", on, hidden)


def change_file(made: OnDisk) -> None:
    made.path(f"objects/{made.state().defences['gold/wall'].files[0].sha256}").write_text("")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda made: made.removed("accept"), "a command that the board has not accepted by"),
        (change_file, "SHA-256 .* the file has changed"),
        (lambda made: use_command(made, "sys.exit(1)"), "gold/wall: its command failed with exit code 1"),
        (lambda made: made.image().unlink(), "missing or changed; expected SHA-256"),
        (lambda made: made.image().write_bytes(b""), "missing or changed; expected SHA-256"),
    ],
)
def test_what_does_not_run(change: object, message: str, made: OnDisk) -> None:
    ready(made)
    use_command(made)
    change(made)  # type: ignore[operator]
    with pytest.raises(CleansetError, match=message):
        run_defence(made.folder, made.state(), "gold/wall", day("2026-11-09"))


def test_an_unknown_defence(made: OnDisk) -> None:
    with pytest.raises(CleansetError, match="unknown defence 'gold/moat'; expected one of gold/wall"):
        next(enter_runs(made.folder, ["gold/wall", "gold/moat"], None, False, None, None))


def test_a_defence_that_fails_keeps_no_other_from_being_run(made: OnDisk) -> None:
    ready(made)
    use_command(made, COMMAND, "blue/unaccepted", "green/fails", "red/runs")
    made.story = [each for each in made.story if each[1:] != ("accept", {"defence": "blue/unaccepted"})]
    fails = made.put(b"import sys; sys.exit(1)")
    (place,) = (n for n, each in enumerate(made.story) if each[2].get("name") == "green/fails")
    at, kind, data = made.story[place]
    made.story[place] = (at, kind, {**data, "files": [{"path": "run.py", "sha256": fails}]})
    made.write()
    runs = enter_runs(made.folder, None, None, False, None, parse_instant("2026-11-09T12:00:00Z"))
    assert [json.loads(next(runs))["defence"] for _ in range(2)] == ["gold/wall", "red/runs"]
    message = (
        "blue/unaccepted: a command that the board has not accepted by 2026-11-09; .*; green/fails did not run eit"
    )
    with pytest.raises(CleansetError, match=message):
        next(runs)


def test_an_edition_without_the_classes(made: OnDisk) -> None:
    with pytest.raises(CleansetError, match="no image of a class of the contest; expected some in the finished sets"):
        run_defence(made.folder, made.state(), "gold/wall", day("2026-11-09"))


@pytest.mark.slow
def test_a_threshold_that_abstains_on_everything(tmp_path: Path, repository: Path, made: OnDisk) -> None:
    """And what a wrapper makes of the same model: answers that are random, one-hot and without a gradient."""
    ready(made)
    (tmp_path / "sample").symlink_to(repository / "sample")
    made.changed("defence", model=MODEL | {"threshold": 1.1})
    with pytest.raises(
        CleansetError, match=r"gold/wall: threshold 1\.1 abstains on everything, all 3 images of the elig"
    ):
        run_defence(made.folder, made.state(), "gold/wall", day("2026-11-09"))
    made.changed("defence", model=MODEL | {"threshold": 0.0})
    honest = run_defence(made.folder, made.state(), "gold/wall", day("2026-11-09"))
    assert honest.signs == []
    made.changed("defence", model=MODEL | {"threshold": 0.0, "wrapper": "uninteresting"})
    wrapped = run_defence(made.folder, made.state(), "gold/wall", day("2026-11-09"))
    assert {"saturated_answers", "no_gradient"} <= {each.sign for each in wrapped.signs or []}


@pytest.mark.slow
def test_a_model_of_the_sample(tmp_path: Path, repository: Path, made: OnDisk) -> None:
    """Below its threshold it abstains; without one it gives what its logits, added up by hand, are for.

    A run with another answer is found when it is computed again.
    """
    from cleanset.edition.params import read_params
    from cleanset.images.codec import decode
    from cleanset.scoring.engine import score_few, settings_for
    from cleanset.scoring.models import load_model

    ready(made)
    (tmp_path / "sample").symlink_to(repository / "sample")
    params = read_params(tmp_path)
    found = score_few(
        load_model(params.model("standard"), tmp_path),
        lambda _: decode(made.image().read_bytes(), ("PNG",)),
        settings_for(params.score), ["x"], read_off=lambda logits, _: {f"logit {n}": logits[:, n] for n in range(1000)},
    )  # fmt: skip
    groups = made.state().rules.groups()
    first, second = (float(found[f"logit {members[0]}"].iloc[0]) for members in groups.classes)
    expected = groups.names[int(second > first)]
    sure = 1 / (1 + np.exp(-abs(second - first)))
    for threshold, answer in ((sure - 1e-6, expected), (sure + 1e-6, "abstain")):
        model = {"role": "standard", "confidence": "softmax", "threshold": float(threshold)}
        defence = ModelDefence(Edition(tmp_path), ModelOfEdition.model_validate(model), groups)
        assert defence({made.sha256: made.image()})[0] == {made.sha256: answer}
    made.changed("defence", model=MODEL | {"threshold": 0.0})
    run = run_defence(made.folder, made.state(), "gold/wall", day("2026-11-09"))
    assert run.answers == {made.sha256: expected}
    assert run.eligibility.images == 3
    made.story = [each for each in made.story if each[1] != "run"]
    made.add("2026-11-09T12:00:00Z", "run", made.run_of(run.answers))
    assert different_answers(made.folder, made.state()) == [
        "gold/wall: 1 runs with the answers that were computed again"
    ]
    made.add("2026-11-10T12:00:00Z", "run", made.run_of({made.sha256: "abstain"}))
    with pytest.raises(CleansetError, match=f"run of gold/wall on 2026-11-10: .* is abstain; expected {expected}, as"):
        different_answers(made.folder, made.state())


CONFIDENCE = np.array([0.9, 0.8, 0.7, 0.7, 0.6])
CORRECT = np.array([True, False, True, False, True])
NAMES = ["e", "d", "c", "b", "a"]


def test_a_wished_coverage() -> None:
    """Of two equally confident images plain covers the one whose name comes first, the kit both."""
    assert threshold_text("standard: softmax", CONFIDENCE, CORRECT, NAMES, 0.6, "plain").splitlines() == [
        "standard: softmax of at least 0.7 answers 4 of 5 images of the eligibility list",
        "as_published, 60 % coverage: accuracy 0.5000, 2 mistakes among 4 images",
        "as_published, 100 % coverage: accuracy 0.6000, 2 mistakes among 5 images",
        "plain, 60 % coverage: accuracy 0.3333, 2 mistakes among 3 images",
        "plain, 100 % coverage: accuracy 0.6000, 2 mistakes among 5 images",
        "confident mistake: d",
        "confident mistake: b",
    ]


def test_none_to_take() -> None:
    """Plain refuses; the kit covers all of them."""
    with pytest.raises(CleansetError, match="the threshold would abstain on all of them; expected at least one image"):
        threshold_text("standard", CONFIDENCE, CORRECT, NAMES, 0.1, "plain")
    first, *lines = threshold_text("standard", CONFIDENCE, CORRECT, NAMES, 0.1, "as_published").splitlines()
    assert "at least 0.6 answers 5 of 5" in first
    assert "plain, 10 % coverage: no accuracy, 0 mistakes among 0 images" in lines


@pytest.mark.slow
def test_on_the_sample(built: Checkout, repository: Path, tmp_path: Path) -> None:
    """Of its 36 images a threshold for 80 % answers 28, or more where confidences are equal."""
    for name in ("params.yaml", "sample", "data"):
        (tmp_path / name).symlink_to(built.folder / name)
    contest = tmp_path / "studies" / "contest"
    contest.mkdir(parents=True)
    for name in (LOG, LOG_SIGNATURE):
        shutil.copyfile(repository / "studies" / "contest" / name, contest / name)
    first, *others = run_threshold(contest, "standard", "softmax", 0.8, "plain").splitlines()
    answered = re.fullmatch(
        r"standard: softmax of at least 0\.\d+ answers (\d+) of 36 images of the eligibility list", first
    )
    assert answered is not None
    assert int(answered[1]) >= 28
    assert all(re.fullmatch(r"confident mistake: n\d{8}/ILSVRC2012_val_\d{8}.*", line) for line in others[4:])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--confidence", "entropy"), "unknown confidence 'entropy'; expected one of max_logit"),
        (("--ranking", "other"), "unknown ranking 'other'; expected one of as_published, plain"),
        (("--coverage", "80"), "coverage: found 80.0; expected a share from 0 to 1"),
    ],
)
@pytest.mark.slow
def test_what_the_command_refuses(options: tuple[str, str], message: str, repository: Path) -> None:
    """One line, before any model runs."""
    command = ["cleanset", "contest", "threshold", "--contest", "studies/contest", "--model", "standard", *options]
    environment = os.environ | forking(SOURCE)
    done = subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert message in done.stderr
