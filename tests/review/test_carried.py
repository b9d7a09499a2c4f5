"""Verdicts of an older edition in a new one."""

import errno
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cleanset.classes import imagenet
from cleanset.cli import main
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.plumbing.files import replace_file, sha256
from cleanset.review import carried
from cleanset.review.carried import read_old_reviews
from cleanset.review.file_format import parse_review
from cleanset.review.save import with_reviews
from cleanset.review.store import read_reviews
from cleanset.stages import preprocess
from tests.ten_images import drawn_image

Run = Callable[..., list[str]]

SHA = "ab" * 32


@pytest.fixture
def edition(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The lines that `cleanset edition` prints."""

    def run(*arguments: object) -> list[str]:
        monkeypatch.setattr(sys, "argv", ["cleanset", "edition", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code == 0
        return capsys.readouterr().out.splitlines()

    return run


def drawn(folder: Path, name: str, seed: int) -> str:
    """Draw an image; its SHA-256."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    drawn_image(80, 90, seed=seed).save(path)
    return sha256(path.read_bytes())


def entry(image_id: str, digest: str, verdict: str = "verdict: clean") -> str:
    return f"  {image_id}:\n    {verdict}\n    sha256: {digest}\n"


def crop(box: str) -> str:
    return f"verdict: crop\n    reason: text\n    crop: [{box}]\n    object_fully_visible: true"


def test_an_edition_with_some_of_the_verdicts_is_never_put_in_place(
    tmp_path: Path, edition: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the disk is full at the second of two files of verdicts; then the same command makes it."""
    images, old, new = tmp_path / "images", tmp_path / "old", tmp_path / "new"
    digests = {key: drawn(images, f"{key}/0.png", seed) for seed, key in enumerate(("cat", "dog"))}
    edition(old, "--images", images)
    preprocess.run(Edition(old))
    (old / "reviews" / "ana").mkdir()
    for key, digest in digests.items():
        (old / "reviews" / "ana" / f"{key}.yaml").write_text(f"{key}:\n{entry(f'{key}/0.png', digest)}")
    written = list[Path]()

    def write_once(path: Path, data: bytes) -> None:
        if written:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        written.append(path)
        replace_file(path, data)

    with monkeypatch.context() as full:
        full.setattr(carried, "replace_file", write_once)
        full.setattr(sys, "argv", ["cleanset", "edition", str(new), "--images", str(images), "--reviews", str(old)])
        with pytest.raises(SystemExit, match="No space left"):
            main()
    assert [len(written), new.exists()] == [1, False]
    edition(new, "--images", images, "--reviews", old)
    assert sorted(path.name for path in (new / "reviews" / "ana").glob("*.yaml")) == ["cat.yaml", "dog.yaml"]


def test_what_was_seen_unchanged_holds(tmp_path: Path, edition: Run) -> None:
    images, old, new = tmp_path / "images", tmp_path / "old", tmp_path / "new"
    cats = [drawn(images, f"cat/{number}.png", number) for number in range(6)]
    dogs = [drawn(images, f"dog/{number}.png", 10 + number) for number in range(2)]
    bird = drawn(images, "bird/0.png", 20)
    edition(old, "--images", images)
    with pytest.raises(CleansetError, match=r"old/data/classes.tsv: missing; .*: run dvc repro there"):
        read_old_reviews(old)
    preprocess.run(Edition(old))
    for reviewer, name, entries in (
        ("ana", "cat", [
            "  # a note of ana\n", entry("cat/0.png", cats[0]), entry("cat/1.png", cats[1]),
            entry("cat/2.png", cats[2]), entry("cat/3.png", cats[3], crop("0, 0, 60, 60")),
            entry("cat/4.png", cats[4], crop("0, 0, 20, 60")), entry("cat/5.png", cats[5]),
        ]),
        ("ben", "dog", [entry("dog/0.png", dogs[0], "verdict: reject\n    reason: text"), entry("dog/1.png", dogs[1])]),
        ("ben", "bird", [entry("bird/0.png", bird)]),
    ):  # fmt: skip
        (old / "reviews" / reviewer).mkdir(exist_ok=True)
        (old / "reviews" / reviewer / f"{name}.yaml").write_text(f"{name}:\n{''.join(entries)}")
    (old / "reviews/GUIDELINES.md").write_text("Ours.\n")
    drawn(images, "cat/1.png", 31)  # drawn again
    (images / "cat/2.png").unlink()
    (images / "cat/5.png").rename(images / "cat/moved.png")
    (images / "dog/1.png").rename(images / "cat/dog.png")  # of another class now
    shutil.rmtree(images / "bird")
    lines = edition(new, "--images", images, "--reviews", old)
    assert lines[-1] == (
        "4 of 9 verdicts carried over; not 1 (class not in the new edition), 1 (crop too small), "
        "2 (image not in the class), 1 (other bytes)"
    )
    preprocess.run(Edition(new))
    classes = Edition(new).read_classes()
    votes = read_reviews(new / "reviews", classes)
    assert {(classes.keys[index], image_id, *by) for (index, image_id), by in votes.items()} == {
        ("cat", "cat/0.png", "ana"), ("cat", "cat/3.png", "ana"), ("cat", "cat/moved.png", "ana"),
        ("dog", "dog/0.png", "ben"),
    }  # fmt: skip
    text = (new / "reviews/ana/cat.yaml").read_text()
    assert "# a note of ana" in text
    assert "crop: [0, 0, 60, 60]" in text
    assert not (new / "reviews/ben/bird.yaml").exists()
    assert (new / "reviews/GUIDELINES.md").read_text() == "Ours.\n"


def test_two_images_that_have_changed_names(tmp_path: Path, edition: Run) -> None:
    """Each verdict goes with its image, in any order."""
    images, old, new = tmp_path / "images", tmp_path / "old", tmp_path / "new"
    digests = [drawn(images, f"cat/{number}.png", number) for number in range(2)]
    drawn(images, "dog/0.png", 10)
    edition(old, "--images", images)
    preprocess.run(Edition(old))
    (old / "reviews/ana").mkdir()
    (old / "reviews/ana/cat.yaml").write_text(
        f"cat:\n{entry('cat/0.png', digests[0])}{entry('cat/1.png', digests[1], 'verdict: unsure')}"
    )
    (images / "cat/0.png").rename(images / "cat/x.png")
    (images / "cat/1.png").rename(images / "cat/0.png")
    (images / "cat/x.png").rename(images / "cat/1.png")
    assert edition(new, "--images", images, "--reviews", old)[-1] == "2 of 2 verdicts carried over"
    assert (new / "reviews/ana/cat.yaml").read_text() == (
        f"cat:\n{entry('cat/0.png', digests[1], 'verdict: unsure')}{entry('cat/1.png', digests[0])}"
    )


def test_a_verdict_of_its_own_stays_where_a_copy_moves_in() -> None:
    """The text of a file in one step: entries that stay, that move, that go, in the order of their ids."""
    text = "cat:\n" + "".join(entry(f"cat/{name}.png", SHA) for name in ("b", "d", "c", "e"))
    unsure = parse_review({"verdict": "unsure", "sha256": SHA}, "here")
    changed = with_reviews(text, "cat", {"cat/d.png": None, "cat/a.png": unsure, "cat/f.png": unsure}, "cat.yaml")
    moved = "".join(entry(f"cat/{name}.png", SHA) for name in ("b", "c", "e"))
    said = "verdict: unsure"
    assert changed == "cat:\n" + entry("cat/a.png", SHA, said) + moved + entry("cat/f.png", SHA, said)


@pytest.mark.long
def test_5000_changed_images_of_a_class_take_seconds() -> None:
    """Ten times as many entries take ten times as long, not a hundred times: processor time, with a margin of four."""

    def seconds(count: int) -> float:
        names = [f"cat/{number:05d}.png" for number in range(count)]
        text = "cat:\n" + "".join(entry(name, SHA) for name in names)
        review = parse_review({"verdict": "unsure", "sha256": SHA}, "here")
        begun = time.process_time()
        changed = with_reviews(
            text, "cat", {name: review if number % 2 else None for number, name in enumerate(names)}, "x"
        )
        assert changed.count("unsure") == count // 2
        return time.process_time() - begun

    assert seconds(5_000) < 40 * seconds(500)


def test_of_the_official_archive(tmp_path: Path, edition: Run, repository: Path) -> None:
    """The published verdicts name their images by the ids of the archive; its MD5 is in raw.md5."""
    published, old = repository / "imagenet", tmp_path / "old"
    (old / "reviews" / "scooter").mkdir(parents=True)
    for name in ("params.yaml", "raw.md5"):
        shutil.copy(published / name, old)
    for path in sorted((published / "reviews" / "scooter").iterdir())[:30]:
        shutil.copy(path, old / "reviews" / "scooter")
    lines, before = edition(tmp_path / "new", "--reviews", old), read_reviews(old / "reviews", imagenet())
    assert len(before) > 50
    assert lines[-1] == f"{len(before)} of {len(before)} verdicts carried over"
    assert read_reviews(tmp_path / "new/reviews", imagenet()).keys() == before.keys()


def test_of_another_archive(tmp_path: Path, edition: Run, repository: Path) -> None:
    """The sample's images are drawn: they have the ids of ImageNet's, and other bytes."""
    lines = edition(tmp_path / "new", "--reviews", repository)
    (new, old), why = lines[-1].partition(" verdicts")[0].split(" of "), lines[-1].partition("; not ")[2]
    assert (new, why) == ("0", f"{old} (not of the official archive)")
