"""Verdicts that were parsed before come from the cache: exactly those of the text, never of another one."""

from pathlib import Path

import pytest

from cleanset.classes import class_table, imagenet
from cleanset.errors import CleansetError
from cleanset.images.boxes import UNKNOWN_BOX
from cleanset.plumbing.kept_files import NOTHING_KEPT, KeptFiles
from cleanset.review.file_format import kept_votes, parse_reviews, usual_verdict_files
from cleanset.review.store import read_votes
from cleanset.review.verdicts import Clean, Cropped, Rejected, Review, Unsure, Vote

WNID = "n01440764"
A = "a" * 64
TEXT = f"""{WNID}:
  ILSVRC2012_val_00000001:
    verdict: clean
    basis: implied
    seen: grid
    sha256: {A}
  ILSVRC2012_val_00000002:
    verdict: reject
    reason: wrong_class
    correct_class: n01443537
    sha256: official
    note: "a smile: \\U0001F600, é"
  ILSVRC2012_val_00000003: {{verdict: crop, reason: text, crop: [1, 2, 3, 4], object_fully_visible: true, sha256: {A}}}
  ILSVRC2012_val_00000004: {{verdict: crop, reason: border, crop: unknown, object_fully_visible: true, sha256: {A}}}
  ILSVRC2012_val_00000005: {{verdict: unsure, reason: noise, sha256: {A}}}
  ILSVRC2012_val_00000006: {{verdict: unsure, sha256: {A}}}
"""


def vote(number: int, review: Review, line: int, where: str) -> Vote:
    image_id = f"ILSVRC2012_val_{number:08}"
    return Vote(wnid=WNID, image_id=image_id, review=review, where=f"{where}, line {line}, {image_id}")


def expected(where: str) -> list[Vote]:
    note = "a smile: \U0001f600, é"
    return [
        vote(1, Review(verdict=Clean(), basis="implied", seen="grid", sha256=A), 2, where),
        vote(2, Review(verdict=Rejected("wrong_class", "n01443537"), sha256="official", note=note), 7, where),
        vote(3, Review(verdict=Cropped("text", (1, 2, 3, 4)), sha256=A), 13, where),
        vote(4, Review(verdict=Cropped("border", UNKNOWN_BOX), sha256=A), 14, where),
        vote(5, Review(verdict=Unsure("noise"), sha256=A), 15, where),
        vote(6, Review(verdict=Unsure(), sha256=A), 16, where),
    ]


def kept_file(folder: Path) -> Path:
    (found,) = folder.iterdir()
    return found


def test_what_comes_back_is_what_was_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = KeptFiles(tmp_path / "kept")
    assert kept_votes(TEXT, WNID, "one.yaml", imagenet(), kept) == expected("one.yaml")
    monkeypatch.setattr("cleanset.review.file_format.parse_reviews", None)  # nothing is parsed any more
    assert kept_votes(TEXT, WNID, "elsewhere/two.yaml", imagenet(), kept) == expected("elsewhere/two.yaml")


def test_another_text_is_parsed_though_it_has_the_same_length_and_time(tmp_path: Path) -> None:
    kept = KeptFiles(tmp_path)
    kept_votes(TEXT, WNID, "one.yaml", imagenet(), kept)
    found = kept_votes(TEXT.replace("reason: noise", "reason: blur"), WNID, "one.yaml", imagenet(), kept)
    assert found[4].review.verdict == Unsure("blur")


def test_a_text_with_an_error_is_not_kept(tmp_path: Path) -> None:
    kept = KeptFiles(tmp_path / "kept")
    for _ in range(2):
        with pytest.raises(CleansetError, match=r"line 2, ILSVRC2012_val_00000001: .*verdict"):
            kept_votes(TEXT.replace("verdict: clean", "verdict: cleaned"), WNID, "one.yaml", imagenet(), kept)
    assert not (tmp_path / "kept").exists()


def test_the_same_text_of_another_class_or_for_other_classes_is_refused(tmp_path: Path) -> None:
    kept = KeptFiles(tmp_path)
    kept_votes(TEXT, WNID, "one.yaml", imagenet(), kept)
    with pytest.raises(CleansetError, match="expected one entry, n01443537"):
        kept_votes(TEXT, "n01443537", "two.yaml", imagenet(), kept)
    others = class_table([(WNID, "tench"), ("n02", "shark")], "classes")
    with pytest.raises(CleansetError, match=r"one\.yaml, line 7, .*: correct_class 'n01443537'; expected"):
        kept_votes(TEXT, WNID, "one.yaml", others, kept)


def test_the_verdicts_of_a_folder_are_kept_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEANSET_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "reviews" / "ann" / f"{WNID}.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(TEXT)
    first = read_votes(tmp_path / "reviews", imagenet())
    folder = usual_verdict_files().folder
    assert folder is not None
    assert kept_file(folder).parent.parent == tmp_path / "cache" / "verdicts"
    assert read_votes(tmp_path / "reviews", imagenet()) == first
    assert [each["ann"] for each in first.values()] == parse_reviews(TEXT, WNID, str(path), imagenet())


def test_without_a_cache_nothing_changes() -> None:
    assert kept_votes(TEXT, WNID, "one.yaml", imagenet(), NOTHING_KEPT) == expected("one.yaml")
