"""Generated small worlds against an oracle that is written from the rules, without tables and without sorting."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from random import Random
from typing import TypeVar

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleanset.images.boxes import Crop
from cleanset.selection.candidates import candidates, shared
from cleanset.selection.crop_check import Prediction
from cleanset.selection.fill import Filled, fill
from cleanset.selection.rule import Rule
from tests.properties import examples
from tests.selection.by_hand import after_crop_of, index_of, scores_of

small = examples(100)
fewer = examples(50, fast=10)
"""For what takes a tenth of a second each."""

STEPS = (
    ("top5", "clean"), ("top5", "crop"),
    ("reserve", "clean"), ("reserve", "crop"),
    ("relaxed", "clean"), ("relaxed", "crop"),
)  # fmt: skip
"""In the order in which a class is filled."""


# The oracle


@dataclass(frozen=True)
class OracleImage:
    """An image as one model sees it.

    `verdict` is undecided if nobody has reviewed it yet, and miscrop where the model misclassifies the crop: no
    step takes such an image.
    """

    image_id: str
    labels: tuple[int, ...]
    confidence: float
    predictions: tuple[int, ...]
    """The top-1 class of every model, this model's first."""
    verdict: str = "undecided"
    tier: str = ""


def best(pool: Iterable[OracleImage]) -> OracleImage:
    """The one that no other beats: more confidence, or the same and the lower id."""
    first, *others = pool
    for other in others:
        if other.confidence > first.confidence or (
            other.confidence == first.confidence and other.image_id < first.image_id
        ):
            first = other
    return first


def pick(pool: Iterable[OracleImage], count: int | None = None) -> list[OracleImage]:
    """The best, then the best of what is left, and so on."""
    left, picked = list(pool), list[OracleImage]()
    while left and (count is None or len(picked) < count):
        picked.append(best(left))
        left.remove(picked[-1])
    return picked


def ranked(images: Iterable[OracleImage], class_index: int, count: int) -> list[OracleImage]:
    """The candidates of a class by rank, each with its tier."""
    easy, mine, several = list[OracleImage](), list[OracleImage](), list[OracleImage]()
    for image in images:
        if class_index in image.labels and image.predictions[0] == class_index:
            if len(image.labels) > 1:
                several.append(image)
            elif set(image.predictions) == {class_index}:
                easy.append(image)
            else:
                mine.append(image)
    top5 = pick(easy, count)
    reserve = pick([*mine, *(image for image in easy if image not in top5)])
    tiers = (("top5", top5), ("reserve", reserve), ("relaxed", pick(several)))
    return [replace(image, tier=tier) for tier, pool in tiers for image in pool]


def chosen(images: list[OracleImage], places: int) -> list[str]:
    """The ids that fill a class, in order: step after step, the best image that is left of it."""
    ids = list[str]()
    for tier, verdict in STEPS:
        of_step = [image for image in images if (image.tier, image.verdict) == (tier, verdict)]
        ids += [image.image_id for image in pick(of_step, places - len(ids))]
    return ids


def completions(images: list[OracleImage]) -> Iterable[list[OracleImage]]:
    """Every way in which the undecided images could still be decided."""
    options = [
        [replace(image, verdict=verdict) for verdict in ("clean", "crop", "miscrop", "reject")]
        if image.verdict == "undecided"
        else [image]
        for image in images
    ]
    return map(list, product(*options))


def could_enter(images: list[OracleImage], places: int) -> set[str]:
    """The undecided images that some completion brings in."""
    undecided = {image.image_id for image in images if image.verdict == "undecided"}
    return undecided & {image_id for way in completions(images) for image_id in chosen(way, places)}


# The worlds


@dataclass(frozen=True)
class World:
    """Images with their labels, each model's predictions, the verdicts, and the two numbers."""

    labels: dict[str, tuple[int, ...]]
    models: list[dict[str, tuple[int, float]]]
    verdicts: dict[str, str]
    classes: list[int]
    count: int
    places: int

    def images(self, model: int) -> list[OracleImage]:
        """All images as this model sees them."""
        own, others = self.models[model], self.models[:model] + self.models[model + 1 :]
        return [
            OracleImage(
                image_id=image_id,
                labels=labels,
                confidence=own[image_id][1],
                predictions=tuple(predictions[image_id][0] for predictions in [own, *others]),
                verdict=self.verdicts[image_id],
            )
            for image_id, labels in self.labels.items()
        ]


IDS = [f"ILSVRC2012_val_{number:08d}" for number in (1, 2, 3, 9, 10, 11, 99, 100, 101)]
LABELS: list[tuple[int, ...]] = [(0,), (0,), (0,), (1,), (1,), (), (0, 1), (0, 2), (0, 1, 2)]
VERDICTS = ["clean", "crop", "miscrop", "reject", "undecided", "undecided"]
answers = st.tuples(st.sampled_from([0, 0, 0, 1, 1, 2]), st.sampled_from([0.25, 0.5, 0.75]))

T = TypeVar("T")


@st.composite
def worlds(draw: st.DrawFn) -> World:
    ids = draw(st.lists(st.sampled_from(IDS), min_size=1, unique=True))

    def of_each(values: st.SearchStrategy[T]) -> dict[str, T]:
        return {image_id: draw(values) for image_id in ids}

    return World(
        labels=of_each(st.sampled_from(LABELS)),
        models=[of_each(answers), of_each(answers), of_each(answers)],
        verdicts=of_each(st.sampled_from(VERDICTS)),
        classes=draw(st.sampled_from([[0, 1, 2], [0], [1, 2]])),
        count=draw(st.integers(1, 3)),
        places=draw(st.integers(1, 3)),
    )


@st.composite
def classes(draw: st.DrawFn) -> list[OracleImage]:
    """The candidates of one class by rank."""
    tiers = draw(st.lists(st.sampled_from(["top5", "reserve", "relaxed"]), min_size=1, max_size=7))
    order = sorted(tiers, key=["top5", "reserve", "relaxed"].index)
    return [
        OracleImage(image_id, (0,), 1 - place / 16, (0,), draw(st.sampled_from(VERDICTS)), tier)
        for place, (image_id, tier) in enumerate(zip(IDS, order, strict=False))
    ]


# The code under test, in the oracle's words


def shared_by_code(world: World, index: pd.DataFrame) -> pd.DataFrame:
    return shared(index, [scores_of(predictions) for predictions in world.models])


def candidates_by_code(world: World, model: int) -> pd.DataFrame:
    return candidates_among(shared_by_code(world, index_of(world.labels)), world, model)


def candidates_among(common: pd.DataFrame, world: World, model: int) -> pd.DataFrame:
    """As `candidates_by_code`, of shared images that are known."""
    index = index_of(world.labels)
    return candidates(index, common, scores_of(world.models[model]), world.classes, Rule(world.count))


def table_of(images: list[OracleImage]) -> pd.DataFrame:
    """One class's candidates, by rank, as a table."""
    return pd.DataFrame(
        {
            "image_id": [image.image_id for image in images],
            "class_index": 0,
            "tier": [image.tier for image in images],
            "rank": range(1, len(images) + 1),
            "confidence": [image.confidence for image in images],
        }
    )


def with_verdicts(table: pd.DataFrame, verdicts: Mapping[str, str]) -> pd.DataFrame:
    """The table as reviewed, then checked against the model's predictions on the crops."""
    of_row = [verdicts[image_id] for image_id in table["image_id"]]
    boxes = [BOX if verdict in ("crop", "miscrop") else None for verdict in of_row]
    reviewed = table.assign(
        verdict=[verdict.removeprefix("mis") for verdict in of_row],
        reason=pd.Series([REASONS[verdict] for verdict in of_row], index=table.index, dtype=object),
        crop=pd.Series(boxes, index=table.index, dtype=object),
    )
    classes = zip(table["image_id"], table["class_index"], of_row, strict=True)
    predictions = {
        Crop(image_id, BOX): Prediction(class_index + 1 if verdict == "miscrop" else class_index, 0.5)
        for image_id, class_index, verdict in classes
    }
    return after_crop_of(reviewed, predictions)


BOX = (3, 0, 40, 30)
REASONS = {"clean": None, "crop": "watermark", "miscrop": "text", "reject": "blur", "undecided": "unreviewed"}


def fill_class(images: list[OracleImage], places: int) -> Filled:
    verdicts = {image.image_id: image.verdict for image in images}
    return fill(with_verdicts(table_of(images), verdicts), places)


def ids_by_place(filled: Filled) -> list[str]:
    return list(filled.selection.sort_values("place")["image_id"])


def open_ids(filled: Filled) -> set[str]:
    return set(filled.rejected.loc[filled.rejected["open"], "image_id"])


# What must hold


@pytest.mark.long
@pytest.mark.slow
@fewer
@given(worlds(), st.integers(0, 2))
def test_from_labels_to_the_finished_classes(world: World, model: int) -> None:
    common = shared_by_code(world, index_of(world.labels))
    assert set(common.itertuples(index=False, name=None)) == {
        (image.image_id, image.labels[0])
        for image in world.images(0)
        if len(image.labels) == 1 and all(predictions == image.labels[0] for predictions in image.predictions)
    }

    table = candidates_among(common, world, model)
    of_class = {each: ranked(world.images(model), each, world.count) for each in world.classes}
    columns = ["class_index", "rank", "image_id", "tier", "confidence"]
    by_code = table[columns].sort_values(["class_index", "rank"])
    assert list(by_code.itertuples(index=False, name=None)) == [
        (class_index, rank, image.image_id, image.tier, image.confidence)
        for class_index, images in of_class.items()
        for rank, image in enumerate(images, start=1)
    ]

    filled = fill(with_verdicts(table, world.verdicts), world.places)
    by_code = filled.selection[["class_index", "place", "image_id"]].sort_values(["class_index", "place"])
    assert list(by_code.itertuples(index=False, name=None)) == [
        (class_index, place, image_id)
        for class_index, images in of_class.items()
        for place, image_id in enumerate(chosen(images, world.places), start=1)
    ]
    assert open_ids(filled) == set().union(*(could_enter(of, world.places) for of in of_class.values()))
    # no image twice; kept and not kept together are the candidates
    everything = [*filled.selection["image_id"], *filled.rejected["image_id"]]
    assert sorted(everything) == sorted(table["image_id"])
    assert len(set(everything)) == len(everything)


@small
@given(classes(), st.integers(1, 3))
def test_filling_one_class(images: list[OracleImage], places: int) -> None:
    filled = fill_class(images, places)
    kept, could = chosen(images, places), could_enter(images, places)
    assert ids_by_place(filled) == kept
    assert list(filled.selection.sort_values("place")["place"]) == list(range(1, len(kept) + 1))
    assert open_ids(filled) == could
    assert dict(zip(filled.rejected["image_id"], filled.rejected["reason"], strict=True)) == {
        image.image_id: {"reject": "blur", "miscrop": "wrong_after_crop"}[image.verdict]
        if image.verdict in ("reject", "miscrop")
        else "unreviewed"
        if image.image_id in could
        else "not_needed"
        for image in images
        if image.image_id not in kept
    }


LATER = st.lists(st.sampled_from(["clean", "crop", "miscrop", "reject"]), min_size=len(IDS), max_size=len(IDS))


@small
@given(classes(), st.integers(1, 3), LATER)
def test_a_settled_class_never_changes(images: list[OracleImage], places: int, mixed: list[str]) -> None:
    filled = fill_class(images, places)
    if not open_ids(filled):
        for verdicts in (mixed, ["clean"] * len(IDS), ["crop"] * len(IDS)):
            later = [
                replace(image, verdict=verdict) if image.verdict == "undecided" else image
                for image, verdict in zip(images, verdicts, strict=False)
            ]
            assert ids_by_place(fill_class(later, places)) == ids_by_place(filled)


@small
@given(classes(), st.integers(1, 3))
def test_no_worse_step_while_a_better_image_is_left(images: list[OracleImage], places: int) -> None:
    kept = set(ids_by_place(fill_class(images, places)))
    usable = [image for image in images if image.verdict in ("clean", "crop")]
    assert len(kept) == min(places, len(usable))
    for inside in usable:
        for outside in usable:
            if inside.image_id in kept and outside.image_id not in kept:
                step_in, step_out = (STEPS.index((one.tier, one.verdict)) for one in (inside, outside))
                assert (step_in, -inside.confidence) < (step_out, -outside.confidence)


@pytest.mark.slow
@examples(25, fast=5)
@given(worlds(), st.randoms(use_true_random=False))
def test_the_order_of_the_rows_does_not_matter(world: World, random: Random) -> None:
    def shuffled(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.iloc[random.sample(range(len(frame)), len(frame))]

    def by_id(frame: pd.DataFrame) -> list[dict[Hashable, object]]:
        return frame.sort_values("image_id").to_dict("records")

    index, models = index_of(world.labels), [scores_of(predictions) for predictions in world.models]
    in_order = shared(index, models)
    mixed = shared(shuffled(index), [shuffled(model) for model in reversed(models)])
    assert by_id(mixed) == by_id(in_order)

    table = candidates(index, in_order, models[0], world.classes, Rule(world.count))
    again = candidates(shuffled(index), shuffled(mixed), shuffled(models[0]), world.classes[::-1], Rule(world.count))
    assert by_id(again) == by_id(table)

    filled = fill(with_verdicts(table, world.verdicts), world.places)
    refilled = fill(with_verdicts(shuffled(table), world.verdicts), world.places)
    assert by_id(refilled.selection) == by_id(filled.selection)
    assert by_id(refilled.rejected) == by_id(filled.rejected)
