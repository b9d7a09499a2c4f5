"""Digests of bytes and files. That writing is whole or not at all is tested where stages and reviews are killed."""

import fcntl
import hashlib
import os
import shutil
import signal
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from socket import AF_UNIX, socket

import pytest

from cleanset.dataset.archives import check_archive, locate, read_md5_list
from cleanset.edition.params import read_params
from cleanset.errors import CleansetError
from cleanset.evaluation.compare import report as compare
from cleanset.plumbing.file_locks import only_run
from cleanset.plumbing.files import (
    BLOCK_BYTES,
    append_line,
    blocks_of,
    cut_torn_line,
    md5,
    open_file,
    read_bytes,
    read_known,
    read_text,
    replacing,
)
from cleanset.plumbing.folder_updates import updating
from cleanset.plumbing.kept_files import KeptFiles
from cleanset.sets.archive import signer
from cleanset.sets.folder import read_regular_file
from cleanset.studies.contest.log import read_content
from cleanset.studies.realness.ratings import texts_of
from tests.small_disks import small_disk_at
from tests.time_limits import at_most


@pytest.mark.parametrize(
    ("blocks", "digest"),
    [
        ([], "d41d8cd98f00b204e9800998ecf8427e"),
        ([b"abc"], "900150983cd24fb0d6963f7d28e17f72"),
        ([b"message", b"", b" digest"], "f96b697d7cb7938d525a2f31aaf161d0"),
    ],
)
def test_md5_of_rfc_1321(blocks: list[bytes], digest: str) -> None:
    assert md5(blocks) == digest


def test_a_published_file_is_known_by_its_digest(tmp_path: Path) -> None:
    path = tmp_path / "list.csv"
    abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    with pytest.raises(CleansetError, match=f"^{path}: missing; expected SHA-256 {abc}: download it$"):
        read_known(path, abc, "download it")
    path.write_bytes(b"abc")
    assert read_known(path, abc, "download it") == b"abc"
    path.write_bytes(b"")
    with pytest.raises(CleansetError, match=f"SHA-256 e3b0c442.*; expected {abc}, the published file: download it$"):
        read_known(path, abc, "download it")


@pytest.mark.parametrize("size", [0, 1, BLOCK_BYTES, BLOCK_BYTES + 1])
def test_a_file_in_blocks(tmp_path: Path, size: int) -> None:
    data = bytes(range(256)) * (size // 256) + b"\1" * (size % 256)
    (tmp_path / "file").write_bytes(data)
    blocks = list(blocks_of(tmp_path / "file"))
    assert (b"".join(blocks) == data, len(blocks)) == (True, -(-size // BLOCK_BYTES))
    assert md5(blocks) == hashlib.md5(data).hexdigest()


NOT_REGULAR = {
    "a named pipe": os.mkfifo,
    "a socket": lambda path: socket(AF_UNIX).bind(str(path)),
    "a folder": Path.mkdir,
}


@pytest.mark.parametrize("read", [open_file, read_bytes, lambda path: read_text(path, "expected text")])
@pytest.mark.parametrize("kind", NOT_REGULAR)
def test_what_is_not_a_regular_file_is_refused_without_waiting(
    kind: str, read: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the name of a socket is short
    NOT_REGULAR[kind](Path("name"))
    with at_most(5), pytest.raises(CleansetError, match=f"^name: {kind}; expected a regular file: name another"):
        read(Path("name"))


def test_a_device_is_refused() -> None:
    with pytest.raises(CleansetError, match=r"^/dev/null: a device; expected a regular file"):
        read_bytes(Path(os.devnull))


def test_a_file_replaced_by_a_pipe_while_it_is_opened_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "name"
    path.touch()
    status = path.stat()
    path.unlink()
    os.mkfifo(path)
    monkeypatch.setattr(Path, "stat", lambda self: status)
    with at_most(5), pytest.raises(CleansetError, match="a named pipe; expected a regular file"):
        open_file(path)


ARMOUR = b"-----BEGIN SSH SIGNATURE-----\nU1NIU0lH\n-----END SSH SIGNATURE-----\n"


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("params.yaml", lambda path: read_params(path.parent)),
        ("contest.yaml", read_content),
        ("ratings.csv", lambda path: texts_of([path])),
        ("a.parquet", lambda path: compare.run(path, path, None, None, 10)),
        ("ILSVRC2012_img_val.tar", locate),
        ("raw.md5", read_md5_list),
        ("reassessed.json", lambda path: check_archive(path, path.name, {}, path)),
        ("allowed_signers", lambda path: signer(b"", ARMOUR, path)),
    ],
)
def test_whatever_a_user_names_may_be_a_pipe(name: str, read: Callable[[Path], object], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / name)
    with (
        at_most(10),
        pytest.raises(CleansetError, match=rf"/{name}: a (named|link or) pipe; expected a (regular )?file"),
    ):
        read(tmp_path / name)


def test_a_link_to_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    (tmp_path / "link").symlink_to("file")
    assert read_bytes(tmp_path / "link") == b"abc"


def test_a_folder_takes_the_place_of_a_link(tmp_path: Path) -> None:
    """As of an output that DVC links to its cache: what the link leads to stays unchanged."""
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "before").touch()
    (tmp_path / "out").symlink_to("cache")
    with replacing(tmp_path / "out") as new:
        new.mkdir()
        (new / "after").touch()
    assert not (tmp_path / "out").is_symlink()
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.glob("*/*")) == [
        "cache/before",
        "out/after",
    ]


@pytest.mark.parametrize("read", [read_bytes, read_regular_file])
def test_a_lease_on_a_file_is_waited_for(read: Callable[[Path], bytes], tmp_path: Path) -> None:
    """File servers hold leases, and give them back when another process opens the file."""
    path = tmp_path / "manifest.csv"
    path.write_bytes(b"content")
    with path.open("r+b") as held, ThreadPoolExecutor(1) as opener:
        fcntl.fcntl(held, fcntl.F_SETSIG, signal.SIGURG)  # ignored, unlike the SIGIO that the kernel would send
        fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        reading = opener.submit(read, path)
        while fcntl.fcntl(held, fcntl.F_GETLEASE) == fcntl.F_WRLCK and not reading.done():
            time.sleep(0.01)
        time.sleep(0.1)
        assert not reading.done()
        fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        assert reading.result(10) == b"content"


def test_lines_appended_on_a_full_disk_are_whole(tmp_path: Path) -> None:
    """The line that finds no room leaves nothing, and is appended once there is some."""
    line = 99 * "x" + "\n"
    with small_disk_at(tmp_path / "disk", 16) as disk:
        (disk / "filler").write_bytes(bytes(8_000))
        path = disk / "lines"

        def fill() -> None:
            for _ in range(1_000):
                append_line(path, line, "header\n")

        with pytest.raises(OSError, match="No space left"):
            fill()
        whole = path.read_text()
        assert whole == "header\n" + line * whole.count("x\n")
        (disk / "filler").unlink()
        append_line(path, line, "header\n")
        assert path.read_text() == whole + line


@pytest.mark.parametrize(("content", "left"), [("", ""), ("a\nb", "a\n"), ("a\nb\n", "a\nb\n"), ("a", "")])
def test_a_torn_line_is_cut(tmp_path: Path, content: str, left: str) -> None:
    (tmp_path / "lines").write_text(content)
    cut_torn_line(tmp_path / "lines")
    assert (tmp_path / "lines").read_text() == left


def test_a_folder_of_results_has_one_run_at_a_time(tmp_path: Path) -> None:
    """The second is refused at once, and may begin when the first has ended; nothing of the lock is left."""
    out = tmp_path / "deep" / "out"
    with only_run(out):
        expected = r"out: another run is using this folder; expected one at a time: wait"
        with pytest.raises(CleansetError, match=expected), only_run(out):
            pass
        assert out.is_dir()
    assert not out.exists()
    with only_run(out):
        (out / "results.json").touch()
    assert [path.name for path in out.iterdir()] == ["results.json"]
    with only_run(out), only_run(None):
        pass
    assert [path.name for path in out.iterdir()] == ["results.json"]


def test_a_link_to_nothing_is_no_folder_of_results(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.symlink_to(tmp_path / "nothing")
    with pytest.raises(FileExistsError), only_run(out):
        pass


def test_two_runs_never_hold_one_folder(tmp_path: Path) -> None:
    """Though each removes the folder, which stays empty, and the other may be about to lock it."""
    out, marker = tmp_path / "out", tmp_path / "at work"
    children = []
    for _ in range(3):
        child = os.fork()
        if child == 0:
            status = 0
            try:
                for _ in range(1_000):
                    with suppress(CleansetError), only_run(out):
                        marker.mkdir()  # fails while another run is at work
                        time.sleep(0.0002)
                        marker.rmdir()
            except OSError:
                traceback.print_exc()
                status = 1
            os._exit(status)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]


def test_the_lock_of_a_killed_run_is_released(tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        with only_run(tmp_path):
            os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    with only_run(tmp_path):
        pass


def contents(folder: Path) -> dict[str, bytes | str]:
    """The bytes of each file below a folder, and the target of each link, by path."""
    return {
        path.relative_to(folder).as_posix(): str(path.readlink()) if path.is_symlink() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


def write_three(folder: Path) -> None:
    """The folder that all tests of updates expect."""
    with updating(folder) as update:
        for name, data in THREE.items():
            update.write(name, data)


THREE = {"a": b"1", "b/c": b"2", "b/d/e": b"3"}


def test_an_update_leaves_files_with_their_bytes_alone(tmp_path: Path) -> None:
    """By inode: a file that is written is another one."""
    folder = tmp_path / "out"
    write_three(folder)
    assert contents(folder) == THREE
    before = {name: (folder / name).stat().st_ino for name in THREE}
    (folder / "b/d/e").write_bytes(b"hand")
    (folder / "a").chmod(0o444)
    with updating(folder) as update:
        assert update.content("a") == b"1"
        assert update.content("missing") is None
        update.keep("a")
        update.write("b/c", b"2")
        update.write("b/d/e", b"3")
    assert contents(folder) == THREE
    assert [name for name in THREE if (folder / name).stat().st_ino != before[name]] == ["b/d/e"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


def test_notes_hold_for_files_that_nobody_has_changed(tmp_path: Path) -> None:
    """Not for one of other bytes, for a copy of the same, and for a link; all are known by content again."""
    folder = tmp_path / "out"
    kept = KeptFiles(tmp_path / "kept")
    names = ("changed", "copied", "linked", "same", "without")

    def update_all() -> dict[str, str]:
        with updating(folder, kept) as update:
            notes = {name: update.note(name) for name in names}
            for name, note in notes.items():
                if note:
                    update.keep(name, note)
                else:
                    update.write(name, b"1", "" if name == "without" else f"of {name}")
            return notes

    assert set(update_all().values()) == {""}
    assert update_all() == {name: f"of {name}" if name != "without" else "" for name in names}
    (folder / "changed").write_bytes(b"2")
    shutil.copy2(folder / "copied", tmp_path / "copy")
    (tmp_path / "copy").replace(folder / "copied")
    (folder / "linked").rename(tmp_path / "elsewhere")
    (folder / "linked").symlink_to(tmp_path / "elsewhere")
    (folder / "same").chmod(0o444)  # as DVC does
    assert [name for name, note in update_all().items() if note] == ["same"]
    assert contents(folder) == dict.fromkeys(names, b"1")
    assert sum(bool(note) for note in update_all().values()) == 4
    shutil.rmtree(tmp_path / "kept")
    assert set(update_all().values()) == {""}
    assert contents(folder) == dict.fromkeys(names, b"1")


def test_whatever_is_in_a_folder_an_update_makes_it_the_same(tmp_path: Path) -> None:
    """Files and folders in each other's places, others of a user, links, and what a kill leaves."""
    folder = tmp_path / "out"
    write_three(folder)
    (folder / "a").unlink()
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "mine").write_bytes(b"1")
    shutil.rmtree(folder / "b" / "d")
    (folder / "b" / "d").write_bytes(b"a file")
    (folder / "empty").mkdir()
    write_three(folder)
    assert contents(folder) == THREE
    assert sorted(path.name for path in folder.iterdir()) == ["a", "b"]


def test_an_update_writes_through_no_link(tmp_path: Path) -> None:
    """DVC puts links into its cache: a hard link with the right bytes stays, all others are replaced."""
    cache = tmp_path / "cache"
    cache.mkdir()
    for name, data in {"one": b"1", "two": b"other", "three": b"3"}.items():
        (cache / name).write_bytes(data)
        (cache / name).chmod(0o444)
    elsewhere = tmp_path / "elsewhere"
    write_three(elsewhere)
    folder = tmp_path / "out"
    (folder / "b").mkdir(parents=True)
    (folder / "a").hardlink_to(cache / "one")
    (folder / "b" / "c").hardlink_to(cache / "two")
    (folder / "b" / "d").symlink_to(elsewhere / "b" / "d")
    (folder / "gone").symlink_to(tmp_path / "nowhere")
    write_three(folder)
    assert contents(folder) == THREE
    assert (folder / "a").samefile(cache / "one")
    assert contents(cache) == {"one": b"1", "three": b"3", "two": b"other"}
    assert contents(elsewhere) == THREE

    (folder / "a").unlink()
    (folder / "a").symlink_to(cache / "one")
    write_three(folder)
    assert contents(folder) == THREE


def test_an_update_of_a_link_to_a_folder_replaces_the_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a").write_bytes(b"0")
    (tmp_path / "out").symlink_to(tmp_path / "elsewhere")
    write_three(tmp_path / "out")
    assert not (tmp_path / "out").is_symlink()
    assert contents(tmp_path / "out") == THREE
    assert contents(tmp_path / "elsewhere") == {"a": b"0"}


def test_a_failed_update_changes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    write_three(folder)
    (folder / "mine").write_bytes(b"4")

    def fail() -> None:
        with updating(folder) as update:
            update.write("a", b"another")
            raise ValueError("of the block")

    with pytest.raises(ValueError, match="of the block"):
        fail()
    assert contents(folder) == {**THREE, "mine": b"4"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


def test_a_killed_update_is_completed_by_the_next(tmp_path: Path) -> None:
    """The process ends where it has removed an old file and not moved the new one yet."""
    folder = tmp_path / "out"
    with updating(folder) as update:
        for name, data in {"a": b"old", "b/c": b"old", "z": b"old"}.items():
            update.write(name, data)
    if not (child := os.fork()):
        with updating(folder) as update:
            update.write("a", b"1")
            update.write("b/c", b"2")
            (folder / "b" / "c").unlink()
            os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    assert contents(folder) == {"a": b"old", "z": b"old"}
    write_three(folder)
    assert contents(folder) == THREE
