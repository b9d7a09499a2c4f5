"""The page of images without a model, of a label check and of an audit: it speaks of what there is."""

import re
from dataclasses import replace
from pathlib import Path

from bs4 import BeautifulSoup

from tests import own_edition

from .reviewing import TabAlone


def texts(html: str) -> str:
    return " ".join(BeautifulSoup(html, "html.parser").get_text(" ").split())


def test_without_a_model_none_is_named_and_a_class_has_one_name(tmp_path: Path) -> None:
    tab = TabAlone(own_edition.make(tmp_path).folder)
    view = tab.type()["view"]
    assert len(re.findall(r"\b001\b", texts(view.partition("</header>")[0]))) == 1
    for word in ("images", "rank", "top5", "reserve", "model", "–"):
        assert not re.search(rf"\b{word}\b", texts(view)), word
    assert re.search(r"search for a class by name\b(?! or)", texts(tab.type("?")["overlay"]))
    looked_back = texts(tab.type("Escape", "c", "b")["overlay"])
    assert "verdict: clean" in looked_back
    assert "model" not in looked_back


def test_the_end_says_what_comes_next(tmp_path: Path) -> None:
    edition = own_edition.make(tmp_path)
    own_edition.review(edition, "ada")
    tab = TabAlone(edition.folder)
    assert "Run dvc repro to make the set, and commit reviews/" in texts(tab.type()["view"])
    audit = TabAlone(edition.folder, session=replace(tab.session, task="audit"))
    assert "Run dvc repro to count the flaws that were found, and commit" in texts(audit.type()["view"])
    labels = TabAlone(edition.folder, session=replace(tab.session, task="labels"))
    assert "Run cleanset review relabel labels.csv to write the corrected labels," in texts(labels.type()["view"])
