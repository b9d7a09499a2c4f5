import json
import math

import numpy as np

from cleanset.studies.robustness.measures.json_ready import json_ready


def test_what_json_lacks_is_null() -> None:
    value = {"a": math.nan, 3: [math.inf, -math.inf, 0.5], "b": np.array([[1.0, np.nan]]), "c": np.float64("nan")}
    assert json_ready(value) == {"a": None, "3": [None, None, 0.5], "b": [[1.0, None]], "c": None}


def test_numbers_are_pythons_own_and_the_rest_stays() -> None:
    ready = json_ready({"n": np.int64(3), "f": np.float32(0.5), "t": ("x", None, True, np.bool_(False))})
    assert json.dumps(ready) == '{"n": 3, "f": 0.5, "t": ["x", null, true, false]}'
