"""A reason of `review.reasons` on the review page."""

from pathlib import Path

from tests.review.page.reviewing import TabAlone, change_review, reviews

REASONS = {"lens_flare": {"key": "e", "rule": "Spots of the sun."}, "rain_on_lens": {"key": "z", "rule": "Drops."}}


def test_it_has_its_key_and_its_rule(edition: Path) -> None:
    change_review(edition, reasons=REASONS)
    tab = TabAlone(edition)
    first, second = tab.cursor.images()[:2]
    assert '<button data-key="e"><kbd>e</kbd>lens flare' in tab.type("r")["view"]
    tab.type("e", "r", "z")
    saved = next(iter(reviews(edition).values()))
    assert [saved[each]["reason"] for each in (first, second)] == ["lens_flare", "rain_on_lens"]
    tab.type("h")
    part = next(each for each in tab.guidelines if "Spots of the sun." in each.html)
    # the image that has just been rejected is the example
    assert [each.caption for each in part.examples] == ["flawed: goldfish"]
    tab.type("Escape", "f", "r", "e")
    assert tab.order.filter == "reason: lens flare"


def test_a_key_without_a_reason_says_so(edition: Path) -> None:
    tab = TabAlone(edition)
    tab.type("r", "e")
    assert (tab.mode, reviews(edition)) == ("reason", {})
    assert tab.said.startswith("e is not the key of a reason")
