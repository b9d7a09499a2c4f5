"""numpy's exp replaced while a library runs: by the correct one, or one that is wrong in its last digit."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numba.np.npyimpl  # registers numpy's own exp, which it would look for at its first use  # noqa: F401
import numpy as np
import pytest
from numpy.typing import NDArray

from cleanset.studies.robustness.exact import rounded_exp

Exp = Callable[[NDArray[np.float64]], NDArray[np.float64]]
NUMPYS = np.exp

CORRECT: Exp = np.vectorize(rounded_exp, otypes=[np.float64])


def wrong(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """What AVX-512 gives for some values, for each."""
    return np.nextafter(NUMPYS(values), 0)


@contextmanager
def other_exp(exp: Exp) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np, "exp", exp)
        yield
