"""A press parses each text of a review file once, and still what is on the disk decides."""

import os
from pathlib import Path

import pytest
import yaml

from tests.review.texts import GOLDFISH, sent

from .reviewing import TabAlone, reviews, write


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every text parsed as YAML after this."""
    texts: list[str] = []

    class Counting(yaml.CSafeLoader):
        def __init__(self, text: str) -> None:
            texts.append(text)
            super().__init__(text)

    monkeypatch.setattr(yaml, "CSafeLoader", Counting)
    return texts


def test_a_press_parses_the_file_that_it_writes_once(edition: Path, tab: TabAlone, parsed: list[str]) -> None:
    path = edition / "reviews" / "ada" / f"{GOLDFISH}.yaml"
    for key, verdicts, passes in (("c", 1, 1), ("u", 2, 1), ("z", 1, 0), ("u", 2, 0), ("c", 3, 1)):
        parsed.clear()
        tab.type(key)
        assert len(reviews(edition)[GOLDFISH]) == verdicts
        assert parsed == [path.read_text()] * passes  # a text that comes back has been parsed before


def test_all_the_rest_of_a_class_is_parsed_once(edition: Path, tab: TabAlone, parsed: list[str]) -> None:
    tab.type("a")
    assert [len(entries) for entries in reviews(edition).values()] == [8]
    assert parsed == [(edition / "reviews" / "ada" / f"{GOLDFISH}.yaml").read_text()]


def test_what_others_have_written_is_parsed_once(edition: Path, tab: TabAlone, parsed: list[str]) -> None:
    first, second, *_ = tab.cursor.asked()
    write(edition, "ben", second, {"verdict": "clean"})
    parsed.clear()
    tab.type("c")
    files = [edition / "reviews" / name / f"{GOLDFISH}.yaml" for name in ("ada", "ben")]
    assert len(parsed) == 1  # ben's was parsed when it was written here
    assert [path.is_file() for path in files] == [True, True]
    files[1].write_text(files[1].read_text().replace("clean", "unsure"))
    parsed.clear()
    tab.type("u")
    assert sorted(parsed) == sorted(path.read_text() for path in files)
    assert first in reviews(edition)[GOLDFISH]


def test_a_change_of_the_same_size_and_time_is_seen(edition: Path, tab: TabAlone) -> None:
    """An editor that writes in place within a tick of the clock leaves time, size and inode unchanged."""
    first = tab.cursor.focus or ""
    write(edition, "ada", first, {"verdict": "reject", "reason": "blur"})
    tab.type()
    path = edition / "reviews" / "ada" / f"{GOLDFISH}.yaml"
    before = path.stat()
    with path.open("r+") as file:
        text = file.read()
        file.seek(0)
        file.write(text.replace("blur", "text"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_mtime_ns, after.st_size, after.st_ino) == (before.st_mtime_ns, before.st_size, before.st_ino)
    tab.press(sent("c", [first]))  # the card still shows blur
    assert "found verdict reject, reason text, expected verdict reject, reason blur" in tab.said
    assert reviews(edition) == {GOLDFISH: {first: {"verdict": "reject", "reason": "text"}}}
    assert "text" in tab.type()["view"]
    assert tab.session.own(tab.cursor.class_index, first).reason == "text"  # type: ignore[union-attr]
