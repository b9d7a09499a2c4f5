"""Blurs are the libraries', but do not depend on the last digits of numpy's exp, which differ between processors."""

from collections.abc import Iterator
from decimal import Decimal, localcontext
from math import inf, nextafter
from typing import Any

import imagecorruptions.corruptions as library
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from skimage import filters

from cleanset.studies.robustness.corruptions.changes import corrupted_images
from cleanset.studies.robustness.kernels import exact_kernels, gaussian, rounded_exp
from cleanset.studies.robustness.perturbations.changes import perturbed_frames
from tests.studies.robustness.digests import SEED, digest, stored
from tests.studies.robustness.drawn import drawn
from tests.studies.robustness.other_exp import other_exp, wrong


@pytest.fixture
def wrong_digits() -> Iterator[None]:
    with other_exp(wrong):
        yield


def of_table(kind: str, name: str) -> list[str]:
    return [row[3] for row in stored() if row[:2] == (kind, name)]


@pytest.mark.slow
@pytest.mark.usefixtures("wrong_digits")
@pytest.mark.parametrize("name", ["gaussian_blur", "glass_blur", "motion_blur", "snow", "spatter", "elastic_transform"])
def test_a_corruption_does_not_depend_on_numpys_exp(name: str) -> None:
    assert [digest(image) for image in corrupted_images(drawn(), name, seed=SEED)] == of_table("corruption", name)


@pytest.mark.slow
@pytest.mark.usefixtures("wrong_digits")
@pytest.mark.parametrize("name", ["gaussian_blur", "motion_blur", "snow", "spatter"])
def test_a_perturbation_does_not_depend_on_numpys_exp(name: str) -> None:
    assert [digest(image) for image in perturbed_frames(drawn(256, 300), name, SEED)] == of_table("perturbation", name)


def test_known_values() -> None:
    found = [rounded_exp(each) for each in (0.0, 1.0, -1.0, -0.125, -800.0)]
    assert found == [1.0, 2.718281828459045, 0.36787944117144233, 0.8824969025845955, 0.0]


@given(st.floats(-700, 700))
def test_the_exponential_is_the_nearest_of_all(value: float) -> None:
    found = rounded_exp(value)
    with localcontext(prec=60):
        exact = Decimal(value).exp()
        distances = [abs(Decimal(each) - exact) for each in (nextafter(found, 0), found, nextafter(found, inf))]
    assert distances[1] == min(distances)


@pytest.mark.parametrize(
    "options",
    [
        {"sigma": 1.1, "channel_axis": -1},
        {"sigma": 0.3, "channel_axis": 0, "truncate": 6.0},
        {"sigma": (0.8, 2.5, 1.3), "mode": "reflect", "truncate": 3},
        {"sigma": 4},
    ],
)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_blur_is_skimages(options: dict[str, Any], kind: type[np.float32] | type[np.float64]) -> None:
    values: NDArray[Any] = np.random.default_rng(0).random((19, 23, 3)).astype(kind)
    before = values.copy()
    expected = filters.gaussian(values, **options)  # type: ignore[no-untyped-call]
    found = gaussian(values, **options)
    assert found.dtype == expected.dtype == kind
    np.testing.assert_allclose(found, expected, rtol=4 * float(np.finfo(kind).eps))
    assert np.array_equal(values, before)


def test_the_librarys_own_functions_are_put_back() -> None:
    own = library.gaussian, library.gauss_function, library.disk
    with pytest.raises(ZeroDivisionError), exact_kernels():
        1 / (library.gaussian is own[0])  # 1 / 0, as it is another
    assert (library.gaussian, library.gauss_function, library.disk) == own
