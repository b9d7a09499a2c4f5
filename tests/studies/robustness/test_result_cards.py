"""Comparability cards of changed images, and the digests that are kept while the images are made; no model."""

import json
from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cleanset.evaluation.comparability import CardModel, ComparabilityCard, first_difference
from cleanset.plumbing.files import sha256
from cleanset.studies.robustness.cards import family_card
from cleanset.studies.robustness.digests import DigestRun, ShownPixels
from cleanset.studies.robustness.families import ChangePlan, StudyParams, change_plan, family_named
from cleanset.studies.robustness.images import ChangeName, Sources
from tests.studies.robustness.sources import sources_of

pytestmark = pytest.mark.slow

WANTED: dict[str, Any] = {
    "corruptions": {"names": ["contrast", "impulse_noise"], "severities": [1]},
    "perturbations": {"names": ["brightness"], "frames": "first_30"},
}
MODEL = CardModel(weights_sha256="a" * 64, preprocessing="keras256", preprocessing_sha256="b" * 64, precision="float64")


@pytest.fixture(autouse=True)
def without_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process to make images in takes seconds to start."""

    def digests(run: DigestRun, names: Iterable[ChangeName]) -> Generator[str, None, None]:
        found = digests_of(run.plan)
        yield from (found[name] for name in names)

    monkeypatch.setattr(DigestRun, "digests", digests)


def plan_of(sources: Sources, params: StudyParams, name: str = "corruptions") -> ChangePlan:
    return change_plan(family_named(name), sources, params)


def digests_of(plan: ChangePlan) -> dict[ChangeName, str]:
    changed = plan.changed_images()
    return {name: sha256(np.asarray(changed(name)).tobytes()) for name in plan.names()}


def card_of(sources: Sources, name: str = "corruptions", /, **wanted: object) -> ComparabilityCard:
    params = StudyParams.model_validate(WANTED | wanted)
    plan = plan_of(sources, params, name)
    models = {"one": MODEL, "other": MODEL.model_copy(update={"weights_sha256": "c" * 64})}
    return family_card(plan, edition_classes=2, digests=digests_of(plan), models=models)


CORRUPTIONS = WANTED["corruptions"]
ONE_AT_A_TIME: list[tuple[dict[str, object], tuple[str, str, str]]] = [
    ({"jpeg": 90}, ("settings.jpeg", "85", "90")),
    ({"jpeg": None}, ("settings.jpeg", "85", "none")),
    ({"seed": 1}, ("settings.seed", "0", "1")),
    ({"bootstrap": {"draws": 20}}, ("interval.draws", "1000", "20")),
    ({"corruptions": CORRUPTIONS | {"severities": [1, 2]}}, ("changes.contrast", "1", "1 2")),
    ({"corruptions": CORRUPTIONS | {"names": ["contrast"]}}, ("changes.impulse_noise", "1", "none")),
    (
        {"corruptions": CORRUPTIONS | {"names": ["contrast", "impulse_noise", "saturate"]}},
        ("changes.saturate", "none", "1"),
    ),
]


@pytest.mark.parametrize(("wanted", "difference"), ONE_AT_A_TIME, ids=lambda each: str(each)[:40])
def test_one_setting_at_a_time(wanted: dict[str, object], difference: tuple[str, str, str], tmp_path: Path) -> None:
    """The setting is reported, rather than the pixels that it changes."""
    sources = sources_of(tmp_path)
    assert first_difference(card_of(sources), card_of(sources, "corruptions", **wanted)) == difference


def test_the_reference(tmp_path: Path) -> None:
    """The published table, or a model by its weights, whatever it is called."""
    sources = sources_of(tmp_path)
    published, one, other = (
        card_of(sources, measures={"corruptions": {"reference": name}}) for name in ("alexnet", "one", "other")
    )
    name, value, expected = first_difference(published, one) or ("", "", "")
    assert (name, value[:20], expected[:5]) == ("reference", "alexnet, published (", "one (")
    assert first_difference(one, other) is not None
    assert first_difference(published, card_of(sources)) is None


def test_the_difficulty_of_perturbations(tmp_path: Path) -> None:
    """The frames of brightness are the same, but they are compared with others."""
    sources = sources_of(tmp_path)
    harder = {"perturbations": WANTED["perturbations"] | {"difficulty": 2}}
    easy, hard = card_of(sources, "perturbations"), card_of(sources, "perturbations", **harder)
    assert first_difference(easy, hard) == ("settings.difficulty", "1", "2")
    assert easy.pixels_sha256 == hard.pixels_sha256
    assert easy.reference is None
    assert easy.changes == {"brightness": " ".join(map(str, range(30)))}


def test_other_images_and_other_names(tmp_path: Path) -> None:
    """Names of files do not matter; pixels do, also where only the code of a change is another."""
    card = card_of(sources_of(tmp_path / "a"))
    assert first_difference(card, card_of(sources_of(tmp_path / "b", prefix="img"))) is None
    shifted = card_of(sources_of(tmp_path / "c", shift=1))
    assert (first_difference(card, shifted) or ("",))[0] == "images"
    other = card.model_copy(update={"pixels_sha256": shifted.pixels_sha256})
    assert (first_difference(card, other) or ("",))[0] == "pixels"
    trained = card_of(sources_of(tmp_path / "d"), measures={"corruptions": {"trained_on": {"one": ["noise"]}}})
    assert trained.models["one"].trained_on == ["noise"]
    assert first_difference(card, trained) is None


def shown_in(folder: Path, **wanted: object) -> ShownPixels:
    sources, params = sources_of(folder), StudyParams.model_validate(WANTED | wanted)
    return ShownPixels(folder / "digests.txt", DigestRun(plan_of(sources, params)))


def test_digests_are_taken_while_models_are_shown_the_images(tmp_path: Path) -> None:
    """The same as those of the images made once more; for missing ones, these are made."""
    shown = shown_in(tmp_path)
    expected = digests_of(shown.run.plan)
    taken = shown.taken()
    assert taken is not None
    taken.take(expected, ["e" * 64, *list(expected.values())[1:]])
    found = shown.finish()
    assert found == expected | {next(iter(expected)): "e" * 64}  # not made again
    shown.path.unlink()
    assert shown.finish() == expected
    assert shown.taken() is None
    label, *lines = shown.path.read_text().splitlines()
    assert lines == [f"{expected[name]}  {name}" for name in sorted(expected)]
    before = shown.path.read_bytes()
    assert shown.finish() == expected
    assert shown.path.read_bytes() == before
    assert not list(tmp_path.glob("*partial*"))
    other = shown_in(tmp_path, seed=1)
    assert other.taken() is not None
    other.finish()
    assert other.path.read_text().splitlines()[0] != label
    assert other.stored() is not None
    assert shown.stored() is None


@pytest.mark.parametrize(
    "damage", [lambda text: text[:-40], lambda text: "", lambda text: text.replace(" 1.png", " 3.png")]
)
def test_a_damaged_file_of_digests_is_made_again(tmp_path: Path, damage: Callable[[str], str]) -> None:
    shown = shown_in(tmp_path)
    expected = shown.finish()
    shown.path.write_text(damage(shown.path.read_text()))
    assert shown.stored() is None
    assert shown.finish() == expected == shown.stored()


def test_a_card_is_json(tmp_path: Path) -> None:
    card = card_of(sources_of(tmp_path))
    assert ComparabilityCard.from_json(json.loads(json.dumps(card.as_json()))) == card
