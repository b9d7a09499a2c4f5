"""The comparability card: which differences it names, what its digest covers, and which cards are refused."""

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from cleanset.errors import CleansetError
from cleanset.evaluation.comparability import (
    CardClasses,
    CardImages,
    CardReference,
    ComparabilityCard,
    card_model,
    first_difference,
    images_digest,
)
from tests.evaluation.compare.drawn_results import CORRUPTIONS as CARD
from tests.evaluation.compare.drawn_results import MODEL, A, B, C, D


def changed(**fields: object) -> ComparabilityCard:
    return CARD.model_copy(update=fields)


SHORT = {letter: f"{letter * 12}…" for letter in "abcd"}
DIFFERENT: dict[str, tuple[ComparabilityCard, str, str]] = {
    "measured": (changed(measured="perturbations"), "corruptions", "perturbations"),
    "number of images": (changed(images=CardImages(count=4, sha256=B)), "3", "4"),
    "images": (changed(images=CardImages(count=3, sha256=B)), SHORT["a"], SHORT["b"]),
    "classes of the images": (changed(classes=CardClasses(of_images=1, of_predictions=1000)), "2", "1"),
    "classes of predictions": (changed(classes=CardClasses(of_images=2, of_predictions=12)), "1000", "12"),
    "changes.snow": (changed(changes={"fog": "1 2 3 4 5"}), "1 2 3 4 5", "none"),
    "changes.fog": (changed(changes={"fog": "1", "snow": "1 2 3 4 5"}, pixels_sha256=A), "1 2 3 4 5", "1"),
    "changes.spatter": (changed(changes=CARD.changes | {"spatter": "1"}, pixels_sha256=A), "none", "1"),
    "settings.jpeg": (changed(settings={"jpeg": None, "seed": 0}, pixels_sha256=A), "85", "none"),
    "settings.matte": (changed(settings=CARD.settings | {"matte": "grey"}, pixels_sha256=A), "none", "grey"),
    "pixels": (changed(pixels_sha256=A), SHORT["c"], SHORT["a"]),
    "reference": (
        changed(reference=CardReference(name="alexnet", sha256=A)),
        f"alexnet, published ({SHORT['d']})",
        f"alexnet ({SHORT['a']})",
    ),
    "interval.kind": (
        changed(interval=CARD.interval.model_copy(update={"kind": "Wilson"})),
        "bootstrap within classes, one_fewer",
        "Wilson",
    ),
    "interval.level": (changed(interval=CARD.interval.model_copy(update={"level": 0.9})), "0.95", "0.9"),
    "interval.draws": (changed(interval=CARD.interval.model_copy(update={"draws": 20})), "1000", "20"),
    "interval.seed": (
        changed(interval=CARD.interval.model_copy(update={"seed": "corruptions 1"})),
        "corruptions 0",
        "corruptions 1",
    ),
}
"""By the field reported first: a card that differs in it, and both values as shown."""


@pytest.mark.parametrize("field", DIFFERENT)
def test_the_first_difference(field: str) -> None:
    """The cause of different pixels is reported before them; the digests differ, too, and either card may be first."""
    other, value, others = DIFFERENT[field]
    assert first_difference(CARD, other) == (field, value, others)
    assert first_difference(other, CARD) == (field, others, value)
    assert CARD.digest != other.digest


@pytest.mark.parametrize(
    "other",
    [
        changed(models={"other": MODEL.model_copy(update={"precision": "float32", "preprocessing": "Res256Crop224"})}),
        changed(models={}),
        changed(images=CardImages(count=3, sha256=A, manifest_sha256=B)),
        changed(reference=CardReference(name="standard", sha256=D)),
        changed(changes={"snow": "1 2 3 4 5", "fog": "1 2 3 4 5"}),
    ],
)
def test_what_need_not_be_equal(other: ComparabilityCard) -> None:
    """What belongs to a model, the rest of a manifest, names, and the order of keys."""
    assert first_difference(CARD, other) is None
    assert CARD.digest == other.digest


def test_pixels_that_nobody_knows() -> None:
    """They differ from none, but cards with and without them have different digests."""
    unknown = changed(pixels_sha256=None)
    assert first_difference(CARD, unknown) is None
    assert first_difference(unknown, CARD) is None
    assert unknown.digest != CARD.digest


def test_a_card_as_json() -> None:
    content = json.loads(json.dumps(CARD.as_json()))
    assert ComparabilityCard.from_json(content) == CARD
    assert content["digest"] == CARD.digest
    assert CARD.line == f"Card {CARD.digest[:12]}: comparable with results of the same card (cleanset compare)."
    assert len(CARD.line) <= 80
    # the digest of the deciding fields, computed otherwise
    fields = {key: content[key] for key in ("measured", "classes", "changes", "settings", "pixels_sha256", "interval")}
    fields |= {"form": 1, "images": {"count": 3, "sha256": A}, "reference": {"sha256": D}}
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    assert hashlib.sha256(text.encode()).hexdigest() == CARD.digest


def leaves(content: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The paths of all values of a card that are not tables with entries."""
    if not isinstance(content, dict) or not content:
        return [path]
    return [leaf for key, value in content.items() for leaf in leaves(value, (*path, key))]


@pytest.mark.parametrize("path", leaves(CARD.as_json()), ids="/".join)
def test_an_edited_card_is_refused(path: tuple[str, ...]) -> None:
    """Every single value is covered by the digest or the checksum."""
    content = json.loads(json.dumps(CARD.as_json()))
    *folders, name = path
    table = content
    for folder in folders:
        table = table[folder]
    before = table[name]
    table[name] = {str: "0" * 64, int: 7, float: 0.5, list: ["fog"]}.get(type(before), "e" * 64)
    with pytest.raises((CleansetError, ValidationError), match=r"edited|form|expected|match|valid"):
        ComparabilityCard.from_json(content)


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        ({"settings": {"jpeg": 90, "seed": 0}}, r"^digest [0-9a-f]{12}…; expected [0-9a-f]{12}… of its fields: it"),
        ({"models": {}}, r"^checksum [0-9a-f]{12}…; expected"),
        ({"form": 2}, "^form 2; expected 1, the form of this version of cleanset"),
        ({"settings": {"jpeg": float("inf"), "seed": 0}}, "^a number that is not finite"),
    ],
)
def test_the_line_for_a_refused_card(edit: dict[str, Any], problem: str) -> None:
    with pytest.raises(CleansetError, match=problem):
        ComparabilityCard.from_json(CARD.as_json() | edit)


@pytest.mark.parametrize(
    "content", [None, [], "card", 1, {}, CARD.as_json() | {"more": 1}, CARD.as_json() | {"images": []}]
)
def test_what_is_not_a_card(content: object) -> None:
    with pytest.raises((CleansetError, ValidationError)):
        ComparabilityCard.from_json(content)


def test_a_card_with_the_digest_of_other_fields_is_refused() -> None:
    """The digest of accuracies had the pixels; today's has not."""
    card = changed(measured="accuracy")
    assert card.digest == card.model_copy(update={"pixels_sha256": None}).digest
    with pytest.raises(CleansetError, match=r"of its fields: it has been edited since it was written$"):
        ComparabilityCard.from_json(card.as_json() | {"digest": CARD.digest})


@given(st.lists(st.tuples(st.integers(0, 999), st.sampled_from([A, B, C, D])), min_size=1), st.randoms())
def test_the_digest_of_images(images: list[tuple[int, str]], random: Any) -> None:
    """Their order does not matter; one more or another class does."""
    shuffled = random.sample(images, len(images))
    assert images_digest(shuffled) == images_digest(images)
    assert images_digest([*images, images[0]]) != images_digest(images)
    (index, digest), *others = images
    assert images_digest([(index + 1, digest), *others]) != images_digest(images)


def test_the_digest_of_literal_images() -> None:
    """Names and tiers of the images are not in it."""
    found = images_digest([(1, A), (0, B), (1, D)])
    assert found == hashlib.sha256(f"0 {B}\n1 {A}\n1 {D}".encode()).hexdigest()


def test_a_models_part_from_a_record() -> None:
    model = card_model({"weights_sha256": A, "precision": "float32", "versions": {"torch": "2.4.0"}, "images": 3})
    assert (model.weights_sha256, model.preprocessing, model.precision) == (A, None, "float32")
    assert list(model.versions) == ["cleanset", "torch"]
