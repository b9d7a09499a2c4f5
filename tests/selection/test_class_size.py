"""Classes that keep all images that qualify, however many."""

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleanset.review.queue import class_status
from cleanset.selection.fill import Filled, fill
from cleanset.selection.metrics import short_classes, totals
from cleanset.selection.rule import ImagesPerClass, is_full
from cleanset.vocabulary import TIERS
from tests.properties import examples
from tests.review.test_queue import of_words

from .by_hand import SNOWMOBILE, SNOWPLOW, reviewed

ALL: Literal["all"] = "all"


def filled(*words: str, crops_in_rank: bool = False) -> Filled:
    return fill(reviewed(*words), ALL, crops_in_rank)


def test_all_that_qualify_are_kept_in_the_usual_order() -> None:
    words = ["top5 crop", "top5 clean", "reserve reject", "reserve clean", "relaxed clean", "relaxed clean"]
    found = filled(*words)
    assert found.selection["image_id"].tolist() == ["p2", "p1", "p4", "p5", "p6"]
    assert found.selection["place"].tolist() == [1, 2, 3, 4, 5]
    assert found.rejected[["image_id", "reason", "open"]].to_numpy().tolist() == [["p3", "watermark", False]]
    assert filled(*words, crops_in_rank=True).selection["image_id"].tolist() == ["p1", "p2", "p4", "p5", "p6"]


VERDICTS = st.sampled_from(["clean", "crop", "reject", "undecided", "boxless"])
CANDIDATES = st.lists(st.tuples(st.sampled_from(TIERS), VERDICTS), min_size=1, max_size=8).map(
    lambda some: sorted(some, key=lambda each: TIERS.index(each[0]))
)


@examples(100)
@given(CANDIDATES)
def test_nothing_is_left_out_as_not_needed_and_all_that_is_undecided_is_open(some: list[tuple[str, str]]) -> None:
    found = filled(*(f"{tier} {verdict}" for tier, verdict in some))
    accepted = {f"p{rank}" for rank, (_, verdict) in enumerate(some, start=1) if verdict in ("clean", "crop")}
    undecided = {f"p{rank}" for rank, (_, verdict) in enumerate(some, start=1) if verdict in ("undecided", "boxless")}
    assert set(found.selection["image_id"]) == accepted
    assert set(found.rejected.loc[found.rejected["open"], "image_id"]) == undecided
    assert "not_needed" not in set(found.rejected["reason"])


@pytest.mark.parametrize(
    ("words", "state"),
    [
        (["top5 clean", "top5 undecided"], "full 0, short 0, unsettled 1"),
        (["top5 undecided"], "full 0, short 1, unsettled 1"),
        (["top5 reject"], "full 0, short 1, unsettled 0"),
        (["top5 reject", "reserve clean"], "full 1, short 0, unsettled 0"),
    ],
)
def test_full_and_short(words: list[str], state: str) -> None:
    """Full: it has an image, and nothing is undecided; short: it has none."""
    found = filled(*words)
    counts = totals(found.selection, found.rejected, [SNOWMOBILE], ALL)
    assert ", ".join(f"{name} {counts[f'classes_{name}']}" for name in ("full", "short", "unsettled")) == state


def test_a_class_without_a_candidate_is_short() -> None:
    found = filled("top5 clean")
    short = short_classes(found.selection, found.rejected, [SNOWMOBILE, SNOWPLOW], ALL)
    assert short.to_numpy().tolist() == [[SNOWPLOW, 0, 0, ""]]


def test_every_candidate_is_asked_for() -> None:
    words = ["top5 clean", "top5 undecided", "reserve undecided", "relaxed undecided"]
    found = class_status(*of_words(*words), ALL)
    assert (found.state, found.kept, found.certain, found.open) == ("open", 1, ("p2", "p3", "p4"), ("p2", "p3", "p4"))
    assert class_status(*of_words("top5 clean", "reserve reject"), ALL).state == "settled"
    assert class_status(*of_words("top5 reject", "reserve reject"), ALL).state == "short"


@pytest.mark.parametrize(("wanted", "full"), [(1, True), (2, True), (3, False), (ALL, False)])
def test_a_number_is_full_whatever_else_is_undecided(wanted: ImagesPerClass, *, full: bool) -> None:
    assert is_full(2, undecided=1, images_per_class=wanted) is full
