"""Measures as values that JSON has."""

import math
from collections.abc import Mapping

import numpy as np


def json_ready(value: object) -> object:
    """The value with Python's own numbers, lists and dicts; NaN and the infinities, which JSON lacks, are None.

    For dicts (keys become text), lists, tuples, numpy arrays and scalars; other values are returned as they are.
    """
    if isinstance(value, np.ndarray | np.generic):
        return json_ready(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): json_ready(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [json_ready(each) for each in value]
    return value
