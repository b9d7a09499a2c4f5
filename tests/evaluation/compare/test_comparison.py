"""What two score tables or two exports disagree on."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleanset.evaluation.compare.releases import ManifestChange, compare_exports
from cleanset.evaluation.compare.report import compare_sets
from cleanset.scoring.distance import compare_scores
from cleanset.scoring.logits import log_odds_of
from cleanset.sets.manifest import Entry
from tests.properties import examples
from tests.sets.entries import ENCODER, WHOLE, changed, checked

small = examples(100, fast=20)

Answer = tuple[list[int], list[float]]


def scores(answers: dict[str, Answer]) -> pd.DataFrame:
    """A score table."""
    return pd.DataFrame(
        {
            "image_id": list(answers),
            "top5_class": [np.array(classes, dtype=np.int16) for classes, _ in answers.values()],
            "top5_probability": [np.array(numbers, dtype=np.float32) for _, numbers in answers.values()],
            "log_odds": log_odds_of(np.array([numbers[0] for _, numbers in answers.values()], dtype=np.float32)),
        }
    )


CLASSES = [7, 8, 9, 10, 11]
NUMBERS = [0.5, 0.25, 0.125, 0.0625, 0.03125]


NEXT = float(np.nextafter(np.float32(0.5), np.float32(1)))


@pytest.mark.parametrize(
    ("a", "b", "difference", "top1"),
    [
        ((CLASSES, NUMBERS), (CLASSES, NUMBERS), None, None),
        ((CLASSES, NUMBERS), (CLASSES, [0.375, 0.25, 0.125, 0.0625, 0.0]), 0.125, (7, 7)),
        # a class is compared wherever it is: 7 and 8 are a half against a quarter
        ((CLASSES, NUMBERS), ([8, 7, 9, 10, 11], NUMBERS), 0.25, (7, 8)),
        # a class that one side does not list is at most as probable as its fifth: 0, or a half less the fifth
        ((CLASSES, NUMBERS), ([20, 8, 9, 10, 11], [0.4375, 0.25, 0.125, 0.0625, 0.0]), 0.5, (7, 20)),
        ((CLASSES, NUMBERS), ([20, 8, 9, 10, 11], NUMBERS), 0.46875, (7, 20)),
        # the last digit of a float32 counts
        ((CLASSES, NUMBERS), (CLASSES, [NEXT, *NUMBERS[1:]]), 2.0**-24, (7, 7)),
        # the same probabilities of other classes
        ((CLASSES, [0.0] * 5), ([1, 2, 3, 4, 5], [0.0] * 5), 0.0, (7, 1)),
    ],
)
def test_one_image_of_two_tables(a: Answer, b: Answer, difference: float | None, top1: tuple[int, int] | None) -> None:
    found = compare_scores(scores({"x": a}), scores({"x": b}))
    numbers = (a[1][0], b[1][0])
    expected = [] if top1 is None else [("x", difference, top1[0], numbers[0], top1[1], numbers[1])]
    assert list(found.different.itertuples(index=False, name=None)) == expected
    assert (found.same, found.largest_difference) == (top1 is None, difference or 0.0)
    assert found.top1_changed == (top1 is not None and top1[0] != top1[1])


def test_images_of_one_side_only() -> None:
    """Rows may be in any order; tables may have nothing in common."""
    answers = {"x": (CLASSES, NUMBERS), "y": (CLASSES[::-1], NUMBERS)}
    found = compare_scores(scores(answers), scores({"z": answers["x"], "y": answers["y"], "w": answers["x"]}))
    assert (found.only_a, found.only_b, found.images, found.same) == (["x"], ["w", "z"], 1, False)
    assert compare_scores(scores(answers), scores(dict(reversed(answers.items())))).same
    found = compare_scores(scores({"x": answers["x"]}), scores({"y": answers["y"]}))
    assert (found.images, len(found.different), found.largest_difference) == (0, 0, 0.0)


def test_the_most_different_first_then_by_id() -> None:
    a = scores(dict.fromkeys("dcba", (CLASSES, NUMBERS)))
    moved = {name: (CLASSES, [0.5 + by, *NUMBERS[1:]]) for name, by in zip("dcba", (0.25, 0, 0.125, 0.25), strict=True)}
    assert list(compare_scores(a, scores(moved)).different["image_id"]) == ["a", "d", "b"]


@st.composite
def answers(draw: st.DrawFn) -> Answer:
    classes = draw(st.lists(st.integers(0, 6), min_size=5, max_size=5, unique=True))
    numbers = draw(st.lists(st.sampled_from([0.0, 0.125, 0.25, 0.375]), min_size=5, max_size=5))
    return classes, sorted(numbers, reverse=True)


tables = st.dictionaries(st.sampled_from("pqrs"), answers())


def least_difference(a: Answer, b: Answer) -> float:
    """By a dictionary of each side: what is certain about the largest difference."""
    of_a, of_b = dict(zip(*a, strict=True)), dict(zip(*b, strict=True))
    certain = [0.0]
    for of_one, of_other in ((of_a, of_b), (of_b, of_a)):
        for class_index, number in of_one.items():
            other = of_other.get(class_index)
            certain.append(abs(number - other) if other is not None else number - min(of_other.values()))
    return max(certain)


@small
@given(tables, tables)
def test_score_tables_against_an_oracle(a: dict[str, Answer], b: dict[str, Answer]) -> None:
    found = compare_scores(scores(a), scores(b))
    both = sorted(a.keys() & b.keys())
    expected = [(-least_difference(a[name], b[name]), name) for name in both if a[name] != b[name]]
    rows = found.different[["difference", "image_id"]].itertuples(index=False, name=None)
    assert [(-difference, name) for difference, name in rows] == sorted(expected)
    assert found.top1_changed == sum(a[name][0][0] != b[name][0][0] for name in both)
    assert (found.only_a, found.only_b) == (sorted(a.keys() - b.keys()), sorted(b.keys() - a.keys()))
    assert found.same == (a == b)


# Classes


def kept(of_class: dict[int, list[str]]) -> pd.DataFrame:
    rows = [(index, place, name) for index, ids in of_class.items() for place, name in enumerate(ids, start=1)]
    return pd.DataFrame(rows, columns=["class_index", "place", "image_id"])


def test_classes_whose_images_change() -> None:
    before = kept({1: ["a", "b"], 2: ["c"], 3: ["d", "e"], 4: ["f"]})
    after = kept({1: ["a", "b"], 2: ["c", "x"], 3: ["e", "d"], 5: ["g"]})
    assert compare_sets(before, after) == {
        2: (("c",), ("c", "x")), 3: (("d", "e"), ("e", "d")), 4: (("f",), ()), 5: ((), ("g",)),
    }  # fmt: skip


# Exports

CROP_OF_WHOLE = checked(
    WHOLE, crop=(0, 1, 480, 330), file="n01440764/ILSVRC2012_val_00000293.png", file_sha256="d" * 64,
    pixels_sha256="e" * 64, encoder=ENCODER,
)  # fmt: skip


def change(what: str, a: str, b: str) -> ManifestChange:
    return ManifestChange("n01440764", "ILSVRC2012_val_00000293", what, a, b)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (WHOLE, []),
        (changed(WHOLE, model="norm_robust"), []),
        (changed(WHOLE, rank=3), [change("rank", "1", "3")]),
        (CROP_OF_WHOLE, [change("crop", "whole", "0 1 480 330")]),
        (changed(WHOLE, tier="reserve"), [change("tier", "top5", "reserve")]),
        (changed(WHOLE, confidence=0.75), [change("confidence", "0.5", "0.75")]),
        (changed(WHOLE, confidence=None), [change("confidence", "0.5", "unknown")]),
        (changed(WHOLE, source_confidence=0.75), [change("source_confidence", "0.5", "0.75")]),
        (changed(WHOLE, ilsvrc_class=7, real_classes=(0, 7)), [change("labels", "0; 0", "7; 0 7")]),
        (changed(WHOLE, reviewers=0), [change("reviewers", "1", "0")]),
        (changed(WHOLE, file_sha256="c" * 64), [change("file", "a" * 64, "c" * 64)]),
        (
            changed(WHOLE, source_sha256="c" * 64, file_sha256="c" * 64, pixels_sha256="f" * 64),
            [change("source", "a" * 64, "c" * 64)],
        ),
        (
            changed(CROP_OF_WHOLE, rank=2, confidence=0.25),
            [change("crop", "whole", "0 1 480 330"), change("rank", "1", "2"), change("confidence", "0.5", "0.25")],
        ),
    ],
)
def test_one_image_of_two_exports(other: Entry, expected: list[ManifestChange]) -> None:
    assert compare_exports([WHOLE], [other]) == expected


def test_added_and_dropped_images() -> None:
    elsewhere = changed(WHOLE, wnid="n01443537", class_index=1, rank=2, tier="relaxed")
    assert compare_exports([WHOLE], [elsewhere]) == [
        ManifestChange("n01440764", "ILSVRC2012_val_00000293", "dropped", "rank 1, top5", ""),
        ManifestChange("n01443537", "ILSVRC2012_val_00000293", "added", "", "rank 2, relaxed"),
    ]
    assert compare_exports([], []) == []


@dataclass(frozen=True)
class Values:
    """Values of an image that may differ, easily compared."""

    crop: tuple[int, int, int, int] | None
    rank: int
    tier: str
    confidence: float
    source: str


VALUES = st.builds(
    Values,
    st.sampled_from([None, (0, 0, 5, 5), (0, 0, 5, 6)]),
    st.integers(1, 2),
    st.sampled_from(["top5", "reserve"]),
    st.sampled_from([0.5, 0.75]),
    st.sampled_from(["a" * 64, "b" * 64]),
)
exports = st.dictionaries(st.tuples(st.sampled_from(["n01440764", "n01443537"]), st.sampled_from("pq")), VALUES)


def entries(values: dict[tuple[str, str], Values]) -> list[Entry]:
    return [
        changed(
            WHOLE, wnid=wnid, image_id=image_id, crop=of.crop, rank=of.rank, tier=of.tier, confidence=of.confidence,
            source_sha256=of.source, file_sha256=f"{of.source}{of.crop}",
        )
        for (wnid, image_id), of in values.items()
    ]  # fmt: skip


@small
@given(exports, exports)
def test_exports_against_an_oracle(a: dict[tuple[str, str], Values], b: dict[tuple[str, str], Values]) -> None:
    expected = set()
    for key in a.keys() | b.keys():
        if key not in a:
            expected.add((*key, "added"))
        elif key not in b:
            expected.add((*key, "dropped"))
        else:
            names = ("crop", "rank", "tier", "confidence", "source")
            expected |= {(*key, name) for name in names if getattr(a[key], name) != getattr(b[key], name)}
    found = [(each.wnid, each.image_id, each.what) for each in compare_exports(entries(a), entries(b))]
    assert set(found) == expected
    assert len(found) == len(expected)
    assert [each[:2] for each in found] == sorted(each[:2] for each in found)
