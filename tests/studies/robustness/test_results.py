"""Lines of measures on selections of images, some of them too small."""

from collections.abc import Iterator

import numpy as np
import pytest

from cleanset.statistics.bootstrap import Bootstrap, Resamples
from cleanset.studies.robustness.results import Chosen, MeasureLine, SampledMeasure, StudiedImages
from cleanset.studies.robustness.sampled import constant, sampled_means

ROLES = ["a", "b", "c"]


def lines(*sets: tuple[str, ...]) -> list[MeasureLine]:
    """The only measure, of the images 0, 1, ... their number, of images in these sets."""
    images = StudiedImages(np.zeros(len(sets), np.int64), sets, ROLES, Bootstrap(resamples=20))

    def measured(role: str, chosen: Chosen, resamples: Resamples) -> Iterator[SampledMeasure]:
        found = sampled_means(np.arange(len(sets))[chosen][:, None], ["fog"], resamples, role, len(sets))
        yield SampledMeasure("number", "fog", found["fog"])

    return list(images.lines(measured))


def test_a_selection_with_fewer_than_two_images() -> None:
    found = lines(("a",), ("a", "b"), ("a",), ("b",))
    assert [(each.selection, each.model, each.images) for each in found] == [
        ("union", "a", 4), ("union", "b", 4), ("union", "c", 4),
        ("own", "a", 3), ("own", "b", 2), ("own", "c", 0),
        ("common", "a", 0), ("common", "b", 0), ("common", "c", 0),
    ]  # fmt: skip
    assert {(each.measure, each.change) for each in found} == {("number", "fog")}
    assert [each.value for each in found[:5]] == [1.5, 1.5, 1.5, 1.0, 2.0]
    assert all(each.problem == "" and each.low <= each.value <= each.high for each in found[:5])
    assert np.isnan([[each.value, each.low, each.high] for each in found[5:]]).all()
    assert {each.problem for each in found[5:]} == {"0 images; intervals need 2 or more"}


def test_a_model_without_a_set() -> None:
    images = StudiedImages(np.zeros(2, np.int64), [["a"], ["a"]], ["a", "other"], Bootstrap(resamples=20), owners=["a"])
    found = images.lines(
        lambda _role, _chosen, resamples: iter([SampledMeasure("number", "fog", constant(1.0, resamples))])
    )
    assert [(each.selection, each.model, each.images) for each in found] == [
        ("union", "a", 2), ("union", "other", 2), ("own", "a", 2), ("common", "a", 2), ("common", "other", 2),
    ]  # fmt: skip


def test_one_image() -> None:
    assert {each.problem for each in lines(("a",), ("b",)) if each.selection == "own"} == {
        "1 image; intervals need 2 or more",
        "0 images; intervals need 2 or more",
    }


@pytest.mark.parametrize("sets", [(), (("a", "b", "c"),)])
def test_nothing_to_measure(sets: tuple[tuple[str, ...], ...]) -> None:
    assert lines(*sets) == []
