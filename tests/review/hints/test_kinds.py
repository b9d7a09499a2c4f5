"""The classes of hints: their limits hide nothing by accident, and the docs list each of them."""

import re
from dataclasses import fields
from pathlib import Path

from cleanset.review.hints.duplicates import DUPLICATE_DOCS
from cleanset.review.hints.kinds import MEASURED_HINTS, AddedText, ImageHint


def test_the_docs_list_each_hint_in_its_own_words(repository: Path) -> None:
    text = (repository / "docs" / "review.md").read_text().partition("\n## Hints\n")[2]
    listed = re.findall(r"^\| ([a-z ]+) \| (.+) \|$", text.partition("RapidOCR")[0], re.MULTILINE)
    classes: list[type[ImageHint]] = [*MEASURED_HINTS, AddedText]
    hints = [(hint.kind.replace("_", " "), hint.docs) for hint in classes]
    assert listed == [("hint", "sign"), *hints, ("duplicate", DUPLICATE_DOCS)]


def test_a_hint_comes_after_those_that_hide_it() -> None:
    before = set[str]()
    for hint in MEASURED_HINTS:
        assert hint.hidden_by <= before, hint
        before.add(hint.kind)


def test_values_of_hints_have_different_names() -> None:
    names = [field.name for hint in MEASURED_HINTS for field in fields(hint)]  # type: ignore[arg-type]
    assert len(names) == len(set(names))
