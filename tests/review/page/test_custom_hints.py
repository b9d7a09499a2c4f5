"""Hints of users, by MODULE:NAME in params.yaml: the example of docs/extending.md on the review page."""

from pathlib import Path

import pytest

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.review.hints.hints import KEPT_MEASURES
from cleanset.review.page.library import background_hints, open_library
from tests.documents import blocks
from tests.review.page.reviewing import TabAlone, change_review, wait_until


def glare(edition: Path, repository: Path, *changes: tuple[str, str]) -> None:
    """Name the example in params.yaml of an edition, and put it there with some changes."""
    text = next(each for each in blocks(repository, "python", "docs/extending.md") if "MeasuredHint" in each)
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    (edition / "my_hints.py").write_text(text)
    change_review(edition, hints=["my_hints:Glare"])


def test_it_is_found_and_filtered_by(edition: Path, repository: Path) -> None:
    glare(edition, repository, ("self.white >= 0.2", "self.white >= 0.0"))
    tab = TabAlone(edition)
    image_id = next(iter(tab.library.images))
    hints = background_hints(tab.library)
    hints.request([image_id])
    wait_until(lambda: not hints.is_measuring(image_id))
    assert [hint.text for hint in hints.of([image_id])[image_id] if hint.kind == "glare"] == ["white areas"]
    kept = hints._kept_measures_of(image_id)
    assert kept is not None
    assert "glare" in KEPT_MEASURES.validate_json(KEPT_MEASURES.dump_json(kept)).kinds
    hints.close()
    assert '<button data-key="g"><kbd>g</kbd>glare' in tab.type("f", "h")["view"]
    tab.type("g")
    assert tab.said.startswith("No class with this filter yet: hint: glare.")
    tab.type("f", "h", "q")  # the key of no hint
    assert tab.mode == "filter_by_hint"


def test_what_is_kept_is_of_its_code(edition: Path, repository: Path) -> None:
    before = open_library(Edition(edition)).own_code
    glare(edition, repository)
    first = open_library(Edition(edition)).own_code
    glare(edition, repository, ("250", "251"))
    assert len({before, first, open_library(Edition(edition)).own_code}) == 3


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("(MeasuredHint)", ""), "expected a subclass of cleanset.review.hints.kinds.MeasuredHint with kind, measure"),
        (("def signs", "def sign"), "expected a subclass of cleanset.review.hints.kinds.MeasuredHint with kind"),
        (('key = "g"', ""), "Glare: without key; expected of every hint"),
        (('key = "g"', 'key = "n"'), "Glare: with the key n, as Noise; expected another"),
        (('kind = "glare"', 'kind = "Glare!"'), "kind 'Glare!'; expected small letters, digits and _"),
        (("class Glare", "class Other"), "my_hints has no Glare; expected a callable"),
    ],
)
def test_what_is_no_hint(edition: Path, repository: Path, change: tuple[str, str], problem: str) -> None:
    glare(edition, repository, change)
    with pytest.raises(CleansetError, match=rf"^review\.hints my_hints:Glare: .*{problem}"):
        open_library(Edition(edition))


def test_code_that_raises_is_reported(edition: Path, repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    glare(edition, repository, ("float((image.grey >= 250).mean())", "1 / 0"))
    library = open_library(Edition(edition))
    hints = background_hints(library)
    ids = list(library.images)[:2]
    hints.request(ids)
    wait_until(lambda: not any(map(hints.is_measuring, ids)))
    hints.close()
    assert capsys.readouterr().err.count("my_hints:Glare: raises ZeroDivisionError (division by zero)") == 1
