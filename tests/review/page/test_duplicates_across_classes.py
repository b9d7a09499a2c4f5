"""A near-duplicate in another class is a hint that names image and class."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cleanset.vocabulary import imagenet, use_classes
from tests import own_edition

from .reviewing import TabAlone


@pytest.fixture
def tab(tmp_path: Path) -> Iterator[TabAlone]:
    """The first class of an edition in which an image of it is in another class, too."""
    edition = own_edition.make(tmp_path, each=3, copies={"ripe pears/copy.png": "001/002.png"})
    tab = TabAlone(edition.folder)
    yield tab
    tab.session.hints.close()
    use_classes(imagenet())


def test_it_is_on_the_card(tab: TabAlone) -> None:
    end = time.monotonic() + 60
    wanted = "nearly the same as ripe pears/copy.png of class ripe pears"
    while wanted not in "".join(tab.type().values()):
        assert time.monotonic() < end, tab.session.hints.of(tab.cursor.images())
        time.sleep(0.1)
    found = tab.session.hints.of(["001/000.png", "001/002.png"])
    assert [hint.others for hint in found["001/002.png"] if hint.kind == "duplicate"] == [("ripe pears/copy.png",)]
    assert not [hint for hint in found["001/000.png"] if hint.kind == "duplicate"]
