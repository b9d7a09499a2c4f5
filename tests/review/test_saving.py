"""Saving verdicts as it happens: killed processes, full disks, several writers, other people's edits."""

import errno
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cleanset.classes import imagenet
from cleanset.errors import CleansetError
from cleanset.plumbing.file_locks import ChangedMeanwhileError
from cleanset.review.page.stored import StoredVotes
from cleanset.review.store import read_reviews
from cleanset.review.verdicts import Clean, Rejected, Review, Vote
from tests.review.texts import save
from tests.small_disks import small_disk_at

TENCH, TENCH_INDEX = "n01440764", 0
SHA = "3f6c0a" + "0" * 58
FIRST, SECOND = "ILSVRC2012_val_00000001", "ILSVRC2012_val_00000002"
CLEAN = Review(verdict=Clean(), sha256=SHA)
BLURRED = Review(verdict=Rejected("blur"), sha256=SHA, note="soft all over")
TEXT_OF_FIRST = f"{TENCH}:\n  {FIRST}:\n    verdict: clean\n    sha256: {SHA}\n"
TEXT_OF_BOTH = TEXT_OF_FIRST + (
    f"  {SECOND}:\n    verdict: reject\n    reason: blur\n    sha256: {SHA}\n    note: soft all over\n"
)


@pytest.fixture
def reviews(tmp_path: Path) -> Path:
    folder = tmp_path / "reviews"
    folder.mkdir()
    return folder


def file_of(reviews: Path, reviewer: str = "ann") -> Path:
    return reviews / reviewer / f"{TENCH}.yaml"


def test_a_file_with_a_byte_order_mark(reviews: Path) -> None:
    """It is read, and the next verdict leaves the mark out."""
    file_of(reviews).parent.mkdir()
    file_of(reviews).write_bytes(f"\ufeff{TEXT_OF_FIRST}".encode())
    assert list(read_reviews(reviews, imagenet())) == [(TENCH_INDEX, FIRST)]
    save(reviews, "ann", TENCH, SECOND, BLURRED)
    assert file_of(reviews).read_text() == TEXT_OF_BOTH


def test_saving_and_taking_away(reviews: Path) -> None:
    save(reviews, "ann", TENCH, SECOND, BLURRED)
    save(reviews, "ann", TENCH, FIRST, CLEAN)
    assert file_of(reviews).read_text() == TEXT_OF_BOTH
    assert {key: list(votes) for key, votes in read_reviews(reviews, imagenet()).items()} == {
        (TENCH_INDEX, FIRST): ["ann"],
        (TENCH_INDEX, SECOND): ["ann"],
    }
    save(reviews, "ann", TENCH, SECOND, None)
    assert file_of(reviews).read_text() == TEXT_OF_FIRST
    save(reviews, "ann", TENCH, FIRST, None)
    save(reviews, "ann", TENCH, FIRST, None, expected=CLEAN)  # taken away in two places: no conflict
    assert sorted(path.name for path in (reviews / "ann").iterdir()) == [".lock"]
    assert read_reviews(reviews, imagenet()) == {}


def test_a_verdict_that_is_there_already_writes_nothing(reviews: Path) -> None:
    save(reviews, "ann", TENCH, FIRST, CLEAN)
    os.utime(file_of(reviews), ns=(0, 0))
    save(reviews, "ann", TENCH, FIRST, CLEAN, expected=None)
    assert file_of(reviews).stat().st_mtime_ns == 0


@pytest.mark.parametrize(("expected", "words"), [(None, "no verdict"), (CLEAN, "verdict clean")])
def test_a_newer_verdict_is_not_replaced_unseen(reviews: Path, expected: Review | None, words: str) -> None:
    save(reviews, "ann", TENCH, FIRST, BLURRED)
    with pytest.raises(
        ChangedMeanwhileError,
        match=rf"ann/n01440764\.yaml, line 2, {FIRST}: found verdict reject, reason blur, note soft all over, "
        rf"expected {words}: it was changed meanwhile; look at it and decide again",
    ):
        save(reviews, "ann", TENCH, FIRST, None if expected else CLEAN, expected=expected)
    save(reviews, "ann", TENCH, FIRST, CLEAN, expected=BLURRED)
    assert file_of(reviews).read_text() == TEXT_OF_FIRST
    file_of(reviews).unlink()
    with pytest.raises(ChangedMeanwhileError, match=rf"yaml, {FIRST}: found no verdict, expected verdict clean: "):
        save(reviews, "ann", TENCH, FIRST, BLURRED, expected=CLEAN)
    assert not file_of(reviews).exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"n01440764:\n\t- x\n", r"ann/n01440764\.yaml, line 2: not YAML: found character that cannot start"),
        (b"n01440764:\n  P:\n    verdict: clean\n", r"ann/n01440764\.yaml, line 2, P: sha256: Field required"),
        (b"n01443537: {}\n", r"ann/n01440764\.yaml, line 1: found n01443537; expected one entry, n01440764"),
        ("# très\n".encode("latin-1"), r"ann/n01440764\.yaml: not UTF-8 at byte 4; save it as UTF-8"),
    ],
)
def test_a_broken_file_is_not_touched(reviews: Path, content: bytes, message: str) -> None:
    file_of(reviews).parent.mkdir()
    file_of(reviews).write_bytes(content)
    for review in (CLEAN, None):
        with pytest.raises(CleansetError, match=message):
            save(reviews, "ann", TENCH, FIRST, review)
    assert file_of(reviews).read_bytes() == content


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("../ann", TENCH, FIRST), r"reviewer '\.\./ann': expected a name of small letters, digits, - and _"),
        (("", TENCH, FIRST), "reviewer '': expected a name"),
        ((".", TENCH, FIRST), r"reviewer '\.': expected a name"),
        (("Ann", TENCH, FIRST), "reviewer 'Ann': expected a name"),
        (("ann\n", TENCH, FIRST), r"reviewer 'ann\\n': expected a name"),
        (("ann", "../n01440764", FIRST), r"unknown class '\.\./n01440764'; expected a wnid"),
        (("ann", "n00000001", FIRST), "unknown class 'n00000001'; expected a wnid"),
        (("ann", TENCH, "ILSVRC2012_val_1"), "image 'ILSVRC2012_val_1': expected an image id such as"),
        (("ann", TENCH, "x: y"), "image 'x: y': expected an image id"),
        (("ann", TENCH, f"{FIRST}_{TENCH}"), "image 'ILSVRC2012_val_00000001_n01440764': expected an image id"),
        (("board", TENCH, FIRST), r"board/n01440764\.yaml, ILSVRC2012_val_00000001: no note; the board's reason"),
    ],
)
def test_names_are_checked(reviews: Path, names: tuple[str, str, str], message: str) -> None:
    with pytest.raises(CleansetError, match=message):
        save(reviews, *names, CLEAN)
    assert [path.name for path in reviews.parent.rglob("*")] == ["reviews"]


def test_the_folder_of_an_edition_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(CleansetError, match="reviews: missing; make the folder"):
        save(tmp_path / "reviews", "ann", TENCH, FIRST, CLEAN)
    assert list(tmp_path.iterdir()) == []


def test_on_the_disk_before_it_takes_its_name(reviews: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order of what reaches the disk: content, then name, then folder."""
    done: list[tuple[str, str]] = []
    fsync, rename, unlink = os.fsync, os.rename, os.unlink

    def name_of(descriptor: int) -> str:
        return Path(f"/proc/self/fd/{descriptor}").readlink().name

    def recorded_fsync(descriptor: Any) -> None:
        fsync(descriptor)
        done.append(("fsync", name_of(descriptor)))

    def recorded(call: Any, word: str) -> Any:
        def wrapped(source: Any, *target: Any, **options: Any) -> None:
            call(source, *target, **options)
            done.append((word, Path(target[0] if target else source).name))

        return wrapped

    monkeypatch.setattr(os, "fsync", recorded_fsync)
    monkeypatch.setattr(os, "replace", recorded(rename, "rename"))
    monkeypatch.setattr(os, "unlink", recorded(unlink, "unlink"))
    save(reviews, "ann", TENCH, FIRST, CLEAN)
    save(reviews, "ann", TENCH, FIRST, None)
    partial, file = f".{TENCH}.yaml.partial", f"{TENCH}.yaml"
    assert done == [
        ("fsync", "reviews"), ("fsync", partial), ("rename", file), ("fsync", "ann"),
        ("unlink", file), ("fsync", "ann"),
    ]  # fmt: skip


@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOTSUP])
def test_a_mount_that_cannot_sync_folders(reviews: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    fsync = os.fsync

    def refusing(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").readlink().is_dir():
            raise OSError(code, os.strerror(code))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", refusing)
    save(reviews, "ann", TENCH, FIRST, CLEAN)
    assert file_of(reviews).read_text() == TEXT_OF_FIRST


def test_the_error_is_that_of_the_disk(reviews: Path) -> None:
    """Not that of tidying up after it."""
    (reviews / "ann" / f".{TENCH}.yaml.partial").mkdir(parents=True)
    with pytest.raises(IsADirectoryError) as failure:
        save(reviews, "ann", TENCH, FIRST, CLEAN)
    assert failure.value.filename == str(file_of(reviews))


@pytest.mark.parametrize("note", ["x\ud83d", "\udc1f"])
def test_half_a_character_is_refused(reviews: Path, note: str) -> None:
    save(reviews, "ann", TENCH, FIRST, CLEAN)
    with pytest.raises(CleansetError, match=rf"{SECOND}: a note with half a character; write it again"):
        save(reviews, "ann", TENCH, SECOND, replace(CLEAN, note=note))
    assert file_of(reviews).read_text() == TEXT_OF_FIRST


KILLED = """
import os, signal, sys
from pathlib import Path
from cleanset.classes import imagenet
from cleanset.review import save as review_writing
from cleanset.review.store import read_file
from cleanset.review.verdicts import Clean, Rejected, Review

reviews, kind = Path(sys.argv[1]), sys.argv[2]
target = reviews / "ann" / "n01440764.yaml"
first, second = "ILSVRC2012_val_00000001", "ILSVRC2012_val_00000002"
sha256 = "3f6c0a" + "0" * 58
clean = Review(verdict=Clean(), sha256=sha256)
blurred = Review(verdict=Rejected("blur"), sha256=sha256, note="soft all over")

def save(image_id, review):
    found = {vote.image_id: vote.review for vote in read_file(target, imagenet())} if target.exists() else {}
    change = review_writing.VerdictChange(review=review, expected=found.get(image_id))
    review_writing.save_all(reviews, "ann", "n01440764", {image_id: change}, classes=imagenet())

def step(number):
    \"\"\"Kill this process at the call of that number that the module makes, before or after it happens.\"\"\"
    made = 0
    def profile(frame, event, called):
        nonlocal made
        caller = frame if event.startswith("c_") else frame.f_back
        if caller and caller.f_code.co_filename == review_writing.__file__:
            if made == number:
                os.kill(os.getpid(), signal.SIGKILL)
            made += 1
    sys.setprofile(profile)
    wanted = {"new": (first, clean), "more": (second, blurred), "last": (first, None)}[kind]
    save(*wanted)
    os._exit(0)

for number in range(1000):
    if kind == "new":
        for path in (reviews / "ann").glob("*"):
            path.unlink()
        (reviews / "ann").is_dir() and (reviews / "ann").rmdir()
    elif target.exists():
        target.write_text(before)
    else:
        save(first, clean)
        before = target.read_text()
    child = os.fork()
    if child == 0:
        step(number)
    _, status = os.waitpid(child, 0)
    print(status, repr(target.read_text() if target.exists() else ""), flush=True)
    if status != signal.SIGKILL:
        break
"""


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        ("new", "", TEXT_OF_FIRST),
        pytest.param("more", TEXT_OF_FIRST, TEXT_OF_BOTH, marks=pytest.mark.long),
        pytest.param("last", TEXT_OF_FIRST, "", marks=pytest.mark.long),
    ],
)
def test_killed_at_every_step(reviews: Path, kind: str, old: str, new: str) -> None:
    """A process is killed at each call that the module makes; what it leaves hinders nobody."""
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(reviews), kind], capture_output=True, text=True, check=True
    )
    states = [line.split(" ", 1) for line in done.stdout.splitlines()]
    assert [status for status, _ in states] == ["9"] * (len(states) - 1) + ["0"]
    texts = [text for _, text in states]
    assert len(texts) > 30
    changes = texts.index(repr(new))
    assert texts == [repr(old)] * changes + [repr(new)] * (len(texts) - changes)
    assert 0 < changes < len(texts) - 1
    assert len(read_reviews(reviews, imagenet())) == new.count("verdict:")


def test_what_a_killed_process_leaves_is_no_review(reviews: Path) -> None:
    save(reviews, "ann", TENCH, FIRST, CLEAN)
    (reviews / "ann" / f".{TENCH}.yaml.partial").write_text(TEXT_OF_BOTH[:-30])
    assert list(read_reviews(reviews, imagenet())) == [(TENCH_INDEX, FIRST)]
    save(reviews, "ann", TENCH, SECOND, BLURRED)
    assert file_of(reviews).read_text() == TEXT_OF_BOTH
    assert sorted(path.name for path in (reviews / "ann").iterdir()) == [".lock", f"{TENCH}.yaml"]


@pytest.mark.slow
def test_git_and_dvc_do_not_see_what_saving_leaves(repository: Path) -> None:
    names = [f"{folder}reviews/ann/{name}" for folder in ("", "imagenet/") for name in (".lock", ".a.yaml.partial")]
    ignored = subprocess.run(
        ["git", "check-ignore", "--no-index", *names], cwd=repository, capture_output=True, text=True, check=True
    )
    assert ignored.stdout.split() == names
    by_dvc = subprocess.run(
        ["dvc", "check-ignore", *names[:2]], cwd=repository, capture_output=True, text=True, check=False
    )
    assert by_dvc.stdout.split() == names[:2]
    assert (repository / ".dvcignore").read_bytes() == (repository / "imagenet" / ".dvcignore").read_bytes()


@pytest.fixture
def small_disk(reviews: Path) -> Iterator[Path]:
    with small_disk_at(reviews, kilobytes=16) as disk:
        yield disk


def test_full_disk(small_disk: Path) -> None:
    save(small_disk, "ann", TENCH, FIRST, CLEAN)
    filling = small_disk / ".filling"
    with pytest.raises(OSError, match="No space left"):
        filling.write_bytes(bytes(32 * 1024))
    with pytest.raises(OSError, match="No space left") as failure:
        save(small_disk, "ann", TENCH, SECOND, BLURRED)
    assert failure.value.filename == str(file_of(small_disk))
    assert file_of(small_disk).read_text() == TEXT_OF_FIRST
    assert sorted(path.name for path in (small_disk / "ann").iterdir()) == [".lock", f"{TENCH}.yaml"]
    filling.unlink()
    save(small_disk, "ann", TENCH, SECOND, BLURRED)
    assert file_of(small_disk).read_text() == TEXT_OF_BOTH


WRITER = """
import sys
from pathlib import Path
from cleanset.classes import imagenet
from cleanset.review.save import VerdictChange, save_all
from cleanset.review.verdicts import Clean, Review, Unsure
sys.stdin.read()
for number in range(int(sys.argv[2]), 401, 2):
    review = Review(verdict={"1": Clean(), "2": Unsure()}[sys.argv[2]], sha256="a" * 64)
    change = {f"ILSVRC2012_val_{number:08d}": VerdictChange(review=review, expected=None)}
    save_all(Path(sys.argv[1]), "ann", "n01440764", change, classes=imagenet())
"""


@pytest.mark.exhaustive
def test_two_processes_lose_nothing(reviews: Path) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(reviews), number], stdin=subprocess.PIPE)
        for number in ("1", "2")
    ]
    for writer in writers:
        assert writer.stdin
        writer.stdin.close()  # both begin
    assert [writer.wait(timeout=100) for writer in writers] == [0, 0]
    votes = read_reviews(reviews, imagenet())
    assert [(image_id, of["ann"].review.verdict.kind) for (_, image_id), of in votes.items()] == [
        (f"ILSVRC2012_val_{number:08d}", "clean" if number % 2 else "unsure") for number in range(1, 401)
    ]


def test_two_threads_lose_nothing(reviews: Path) -> None:
    def write(start: int) -> None:
        for number in range(start, 21, 2):
            save(reviews, "ann", TENCH, f"ILSVRC2012_val_{number:08d}", CLEAN)

    threads = [threading.Thread(target=write, args=(start,)) for start in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(read_reviews(reviews, imagenet())) == 20


# Reading a class again and again


@pytest.fixture
def stored(reviews: Path) -> StoredVotes:
    return StoredVotes(reviews, {}, imagenet(), 1)


def test_the_votes_on_a_class_follow_the_files(reviews: Path, stored: StoredVotes) -> None:
    assert stored.read(TENCH_INDEX) == {}
    save(reviews, "ann", TENCH, FIRST, CLEAN)
    save(reviews, "bob", TENCH, FIRST, BLURRED)
    save(reviews, "bob", "n01443537", SECOND, BLURRED)
    found = stored.read(TENCH_INDEX)
    assert {key: {name: vote.review for name, vote in of.items()} for key, of in found.items()} == {
        (TENCH_INDEX, FIRST): {"ann": CLEAN, "bob": BLURRED}
    }
    file_of(reviews).write_text(TEXT_OF_FIRST.replace("clean", "bogus"))
    with pytest.raises(CleansetError, match="verdict: expected 'clean'"):
        stored.read(TENCH_INDEX)
    file_of(reviews).unlink()
    assert list(stored.read(TENCH_INDEX)[TENCH_INDEX, FIRST]) == ["bob"]


def test_an_unchanged_text_is_not_parsed_again(reviews: Path, stored: StoredVotes) -> None:
    save(reviews, "ann", TENCH, FIRST, CLEAN)

    def vote() -> Vote:
        return stored.read(TENCH_INDEX)[TENCH_INDEX, FIRST]["ann"]

    before = vote()
    assert vote() is before
    os.utime(file_of(reviews), ns=(1, 1))
    assert vote() is before
    file_of(reviews).write_text(TEXT_OF_BOTH)
    assert vote() is not before
