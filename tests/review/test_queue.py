"""Which images are asked for, in what order, and that no order could ask for fewer."""

from collections.abc import Mapping, Sequence
from itertools import combinations_with_replacement, product
from random import Random

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleanset.images.boxes import Crop
from cleanset.review.consensus import Policy, consensus
from cleanset.review.queue import (
    Candidate,
    ClassStatus,
    DecideInClass,
    Decisions,
    Question,
    candidates_by_class,
    class_status,
    for_reviewer,
    questions,
)
from cleanset.review.store import BOARD
from cleanset.review.verdicts import Clean, Cropped, Rejected, Review, Unsure
from cleanset.selection.crop_check import Prediction, after_crop
from cleanset.selection.fill import UNREVIEWED, Decision, fill
from cleanset.vocabulary import TIERS
from tests.properties import examples
from tests.review.classes import DECISIONS, Ranked, candidates_of, decide_by, fewest, kept, must_be_asked
from tests.selection.by_hand import reviewed

small = examples(150)
FINAL = ("clean", "crop", "reject")


# One model


def of_words(*words: str) -> tuple[list[Candidate], DecideInClass]:
    """One class's candidates by rank, each "<tier> <verdict>": their ids are p1, p2, ..."""
    pairs = [word.split() for word in words]
    ranked = tuple((f"p{rank}", tier) for rank, (tier, _) in enumerate(pairs, start=1))
    return candidates_of(ranked), decide_by({f"p{rank}": verdict for rank, (_, verdict) in enumerate(pairs, start=1)})


def asked(*words: str, places: int = 3) -> str:
    return " ".join(class_status(*of_words(*words), places).open)


def test_a_crop_waits_for_the_rest_of_its_tier() -> None:
    """Two clean and a crop: any further clean one of the five goes before the crop; the reserve does not."""
    two = ("top5 clean", "top5 clean", "top5 crop")
    assert asked(*two, "top5 undecided", "top5 undecided", "reserve undecided") == "p4 p5"
    assert asked(*two, "top5 reject", "top5 undecided", "reserve undecided") == "p5"
    assert asked(*two, "top5 reject", "top5 crop", "reserve undecided") == ""


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        (["top5 undecided"] * 5 + ["reserve undecided", "relaxed undecided"], "p1 p2 p3 p4 p5 p6 p7"),
        (["top5 clean"] * 3 + ["top5 undecided", "reserve undecided"], ""),
        (["top5 clean", "top5 undecided", "top5 clean", "top5 clean", "top5 undecided"], "p2"),
        (["top5 crop", "top5 crop", "reserve clean", "reserve undecided"], ""),
        (["top5 crop", "top5 crop", "reserve crop", "reserve undecided", "relaxed undecided"], "p4"),
        (["top5 reject", "reserve clean", "relaxed crop", "relaxed conflict", "relaxed too_few"], "p4 p5"),
        (["top5 reject"], ""),
    ],
)
def test_open_images(words: list[str], ids: str) -> None:
    assert asked(*words) == ids


tiers = st.lists(st.sampled_from(TIERS), min_size=1, max_size=9).map(lambda some: sorted(some, key=TIERS.index))


@small
@given(tiers, st.data(), st.integers(1, 4), st.randoms(use_true_random=False))
def test_the_open_ones_are_those_of_the_pipeline(
    of_tiers: list[str], data: st.DataObject, places: int, random: Random
) -> None:
    words = [f"{tier} {data.draw(st.sampled_from(['clean', 'crop', 'reject', 'undecided']))}" for tier in of_tiers]
    rejected = fill(reviewed(*words), places).rejected
    by_rank = rejected[rejected["open"]].sort_values("rank")
    candidates, decide = of_words(*words)
    random.shuffle(candidates)
    assert list(class_status(candidates, decide, places).open) == list(by_rank["image_id"])


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["top5 clean", "top5 clean", "top5 clean", "top5 undecided"], ClassStatus("settled", 3, (), ())),
        (["top5 clean", "top5 clean", "top5 clean", "top5 clean"], ClassStatus("settled", 3, (), ())),
        (["top5 clean", "top5 reject", "relaxed crop"], ClassStatus("short", 2, (), ())),
        ([], ClassStatus("short", 0, (), ())),
        (
            ["top5 clean", "top5 undecided", "top5 crop", "top5 undecided", "top5 undecided", "reserve undecided"],
            ClassStatus("open", 2, ("p2", "p4"), ("p2", "p4", "p5", "p6")),
        ),
        (
            ["top5 clean", "top5 clean", "top5 conflict", "top5 undecided"],
            ClassStatus("conflict", 2, ("p3",), ("p3", "p4")),
        ),
        (["top5 clean", "top5 conflict", "top5 too_few"], ClassStatus("open", 1, ("p2", "p3"), ("p2", "p3"))),
        (["top5 clean", "top5 clean", "top5 clean", "top5 conflict"], ClassStatus("settled", 3, (), ())),
    ],
)
def test_the_status_of_a_class(words: list[str], expected: ClassStatus) -> None:
    assert class_status(*of_words(*words), 3) == expected


# All models: no order asks fewer


def images_asked(models: Sequence[tuple[Ranked, Mapping[str, str]]], places: int) -> list[str]:
    """Always ask the first question and answer with the truth, until none is left."""
    by_role = {str(number): candidates_of(ranked) for number, (ranked, _) in enumerate(models)}
    answered: list[str] = []

    def seen(truth: Mapping[str, str]) -> DecideInClass:
        return lambda image_id: DECISIONS[truth[image_id] if image_id in answered else "undecided"]

    decided = {str(number): seen(truth) for number, (_, truth) in enumerate(models)}
    while to_ask := questions(by_role, decided, places):
        assert to_ask[0].certain
        answered.append(to_ask[0].image_id)
    for ranked, truth in models:
        assert kept(ranked, {name: truth[name] for name in answered if name in truth}, places) == kept(
            ranked, truth, places
        )
    return answered


@pytest.mark.slow
@pytest.mark.parametrize("count", [*range(1, 5), pytest.param(5, marks=pytest.mark.long)])
def test_one_model_in_every_case_of_up_to_five_candidates(count: int) -> None:
    ids = [f"p{number}" for number in range(1, count + 1)]
    for of_tiers in combinations_with_replacement(TIERS, count):
        ranked = tuple(zip(ids, of_tiers, strict=True))
        for verdicts in product(FINAL, repeat=count):
            truth = dict(zip(ids, verdicts, strict=True))
            for places in (1, 2, 3):
                asked = images_asked([(ranked, truth)], places)
                assert set(asked) == must_be_asked(ranked, truth, places)
                assert len(asked) == len(set(asked)) == fewest([(ranked, truth)], places)


@st.composite
def ensembles(draw: st.DrawFn, most: int) -> list[tuple[Ranked, dict[str, str]]]:
    """Models that rank some of the same images, each in its own way; some models misclassify some crops."""
    ids = [f"p{number}" for number in range(1, most + 1)]
    verdicts = draw(st.lists(st.sampled_from(FINAL), min_size=most, max_size=most))
    models = []
    for _ in range(draw(st.integers(1, 3))):
        own = draw(st.lists(st.sampled_from(ids), unique=True))
        of_tiers = sorted((draw(st.sampled_from(TIERS)) for _ in own), key=TIERS.index)
        misclassified = draw(st.sets(st.sampled_from(ids)))
        truth = {
            name: "reject" if verdict == "crop" and name in misclassified else verdict
            for name, verdict in zip(ids, verdicts, strict=True)
        }
        models.append((tuple(zip(own, of_tiers, strict=True)), truth))
    return models


@small
@given(ensembles(6), st.integers(1, 3))
def test_several_models_are_asked_the_fewest_images(models: list[tuple[Ranked, dict[str, str]]], places: int) -> None:
    assert len(images_asked(models, places)) == fewest(models, places)


@small
@given(ensembles(40), st.integers(1, 5))
def test_what_is_asked_is_what_each_model_needs(models: list[tuple[Ranked, dict[str, str]]], places: int) -> None:
    asked = images_asked(models, places)
    assert set(asked) == set().union(*(must_be_asked(ranked, truth, places) for ranked, truth in models))
    assert len(asked) == len(set(asked))


@small
@given(ensembles(12), st.integers(1, 3), st.integers(0, 12))
def test_at_least_and_at_most(models: list[tuple[Ranked, dict[str, str]]], places: int, decided: int) -> None:
    """With some verdicts given, what the statuses say is reached if all others are clean, or reject."""
    known = {f"p{number}" for number in range(1, decided + 1)}

    def still_asked(others: str | None) -> int:
        told = [
            (ranked, {name: verdict if name in known else others or verdict for name, verdict in truth.items()})
            for ranked, truth in models
        ]
        return len(set().union(*(must_be_asked(ranked, truth, places) for ranked, truth in told)) - known)

    statuses = [
        class_status(candidates_of(ranked), decide_by({name: truth[name] for name in known}), places)
        for ranked, truth in models
    ]
    at_least = len(set().union(*(each.certain for each in statuses)))
    at_most = len(set().union(*(each.open for each in statuses)))
    assert (at_least, at_most) == (still_asked("clean"), still_asked("reject"))
    assert at_least <= still_asked(None) <= at_most


def test_the_order_of_questions() -> None:
    """Certain ones first; by the best rank with any model; among equals, the one that serves more."""
    by_role = {
        "a": candidates_of((("p1", "top5"), ("p2", "top5"), ("p5", "reserve"), ("p4", "reserve"))),
        "b": candidates_of((("p3", "top5"), ("p2", "top5"), ("p4", "reserve"))),
        "c": candidates_of((("p3", "top5"), ("p6", "relaxed"))),
    }
    decide = decide_by({"p6": "conflict"})
    found = questions(by_role, dict.fromkeys(by_role, decide), 2)
    assert found == [
        Question("p3", {"b": Candidate("p3", "top5", 1, 0.99), "c": Candidate("p3", "top5", 1, 0.99)}, True),
        Question("p1", {"a": Candidate("p1", "top5", 1, 0.99)}, True),
        Question("p2", {"a": Candidate("p2", "top5", 2, 0.98), "b": Candidate("p2", "top5", 2, 0.98)}, True),
        Question("p6", {"c": Candidate("p6", "relaxed", 2, 0.98)}, True),
        Question(
            "p4", {"a": Candidate("p4", "reserve", 4, 0.96), "b": Candidate("p4", "reserve", 3, 0.97)}, False
        ),
        Question("p5", {"a": Candidate("p5", "reserve", 3, 0.97)}, False),
    ]  # fmt: skip


def test_a_crop_that_one_model_misclassifies() -> None:
    """Only that model still needs the next image."""
    ranked = candidates_of((("p1", "top5"), ("p2", "reserve")))
    decided = {"a": decide_by({"p1": "crop"}), "b": decide_by({"p1": "reject"})}
    assert [(each.image_id, set(each.serves)) for each in questions({"a": ranked, "b": ranked}, decided, 1)] == [
        ("p2", {"b"})
    ]


def test_a_crop_that_is_scored() -> None:
    """Its box tells which crop is meant; one that is not scored yet counts as correct."""
    box = (0, 0, 9, 9)
    predictions = {
        Crop("p1", box): Prediction(7, 0.5), Crop("p2", box): Prediction(8, 0.5),
        Crop("p3", (0, 0, 9, 8)): Prediction(8, 0.5), Crop("p4", box): Prediction(8, 0.5),
    }  # fmt: skip
    decide = decide_by({"p1": "crop", "p2": "crop", "p3": "crop", "p4": "clean"})
    assert [after_crop(decide(image_id), image_id, 7, predictions) for image_id in ("p1", "p2", "p3", "p4", "p5")] == [
        DECISIONS["crop"], Decision("reject", "wrong_after_crop"), DECISIONS["crop"], DECISIONS["clean"], UNREVIEWED,
    ]  # fmt: skip


# From the tables


def test_candidates_by_class() -> None:
    columns = ["image_id", "class_index", "tier", "rank", "confidence"]
    a = pd.DataFrame(
        [("p1", 7, "reserve", 2, 0.5), ("p2", 7, "top5", 1, 0.25), ("p3", 8, "top5", 1, 0.5)], columns=columns
    )
    b = pd.DataFrame([("p3", 9, "relaxed", 1, 0.5)], columns=columns)
    assert candidates_by_class({"a": a, "b": b}, [9, 7]) == {
        7: {"a": [Candidate("p2", "top5", 1, 0.25), Candidate("p1", "reserve", 2, 0.5)], "b": []},
        9: {"a": [], "b": [Candidate("p3", "relaxed", 1, 0.5)]},
    }


def test_decisions_of_a_class() -> None:
    decided = Decisions({(7, "p1"): DECISIONS["clean"], (8, "p2"): DECISIONS["reject"]}, {"a": {}}, UNREVIEWED)
    decide = decided.for_class(7)["a"]
    assert (decide("p1"), decide("p2")) == (DECISIONS["clean"], UNREVIEWED)
    assert decided.for_candidate("a", 8, "p2") == DECISIONS["reject"]


# One reviewer

SHA256 = "0" * 64
CLEAN = Review(verdict=Clean(), sha256=SHA256)
REJECT = Review(verdict=Rejected("blur"), sha256=SHA256)
UNSURE = Review(verdict=Unsure(), sha256=SHA256)

Votes = Mapping[str, Mapping[str, Review]]
"""By reviewer and image id."""


def to_ask(
    reviewer: str, ranked: Ranked, votes: Votes, policy: Policy, min_reviewers: int, places: int = 3
) -> list[str]:
    def decide(image_id: str) -> Decision:
        of_image = {name: reviews[image_id] for name, reviews in votes.items() if image_id in reviews}
        board = of_image.pop(BOARD, None)
        others = [review.verdict for review in of_image.values()]
        return consensus(others, board.verdict if board else None, policy, min_reviewers)

    theirs = for_reviewer(reviewer, votes.get(reviewer, {}), decide)
    return [each.image_id for each in questions({"a": candidates_of(ranked)}, {"a": theirs}, places)]


FIVE: Ranked = tuple((f"p{number}", "top5") for number in range(1, 6))


def test_who_has_voted_is_not_asked_again() -> None:
    votes = {"ann": {"p1": CLEAN, "p2": REJECT}, "bob": {"p1": CLEAN}}
    assert to_ask("ann", FIVE, votes, "majority", 2) == ["p3", "p4", "p5"]
    assert to_ask("bob", FIVE, votes, "majority", 2) == ["p2", "p3", "p4", "p5"]
    assert to_ask("cy", FIVE, votes, "majority", 2) == ["p2", "p3", "p4", "p5"]


def test_one_reviewer_need_not_wait_for_the_others() -> None:
    """What one has judged counts so for that one: with three clean, ann is done; bob is asked the same three."""
    votes = {"ann": {"p1": CLEAN, "p2": CLEAN, "p3": UNSURE}}
    assert to_ask("ann", FIVE, votes, "unanimous", 2) == ["p4", "p5"]
    votes["ann"]["p4"] = CLEAN
    assert to_ask("ann", FIVE, votes, "unanimous", 2) == []
    assert to_ask("bob", FIVE, votes, "unanimous", 2) == ["p1", "p2", "p3", "p4", "p5"]


def test_conflicts_are_for_the_board_alone() -> None:
    """Nobody is asked of p4 until the board has decided that it may be needed."""
    votes = {"ann": dict.fromkeys(("p1", "p2", "p3"), CLEAN), "bob": {"p1": REJECT}}
    assert [to_ask(name, FIVE, votes, "single", 1) for name in ("ann", "bob", "cy")] == [[], [], []]
    assert to_ask(BOARD, FIVE, votes, "single", 1) == ["p1"]
    overruled = {**votes, BOARD: {"p1": REJECT}}
    assert [to_ask(name, FIVE, overruled, "single", 1) for name in ("ann", "bob", "cy")] == [["p4", "p5"]] * 3
    assert to_ask(BOARD, FIVE, overruled, "single", 1) == []


def test_the_board_is_not_asked_of_a_conflict_that_no_longer_matters() -> None:
    votes = {"ann": dict.fromkeys(("p1", "p2", "p3", "p4"), CLEAN), "bob": {"p4": REJECT}}
    assert to_ask(BOARD, FIVE, votes, "single", 1) == []


@small
@given(ensembles(8), st.integers(1, 3), st.integers(1, 3), st.randoms(use_true_random=False))
def test_reviewers_who_agree_are_each_asked_the_fewest(
    models: list[tuple[Ranked, dict[str, str]]], places: int, min_reviewers: int, random: Random
) -> None:
    """As many as are needed, in turns that chance decides; nobody is asked twice, or of more than must be asked."""
    ranked, truth = models[0]
    crop = Review(verdict=Cropped("watermark", (0, 0, 9, 9)), sha256=SHA256)
    answers = {"clean": CLEAN, "crop": crop, "reject": REJECT}
    votes: dict[str, dict[str, Review]] = {name: {} for name in ("ann", "bob", "cy")[:min_reviewers]}
    while still := {
        name: asked for name in votes if (asked := to_ask(name, ranked, votes, "unanimous", min_reviewers, places))
    }:
        name = random.choice(sorted(still))
        assert still[name][0] not in votes[name]
        votes[name][still[name][0]] = answers[truth[still[name][0]]]
    assert [set(of_one) for of_one in votes.values()] == [must_be_asked(ranked, truth, places)] * min_reviewers
