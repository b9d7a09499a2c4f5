import math

import pandas as pd

from cleanset.evaluation.predictions import Accuracy, Measures, measures


def test_the_measures_of_five_predictions() -> None:
    rows = [
        (7, "relaxed", True, 0.5),
        (7, "top5", True, 0.75),
        (999, "top5", False, 1.0),
        (7, "top5", False, 0.25),
        (0, "relaxed", True, 0.5),
    ]
    found = measures(pd.DataFrame(rows, columns=["class_index", "tier", "correct", "confidence"]))
    assert found == Measures(
        Accuracy(5, 3),
        0.6,
        {"top5": Accuracy(3, 1), "relaxed": Accuracy(2, 2)},
        {0: Accuracy(1, 1), 7: Accuracy(3, 2), 999: Accuracy(1, 0)},
    )
    assert list(found.tiers) == ["top5", "relaxed"]
    assert list(found.classes) == [0, 7, 999]
    assert found.overall.share == 0.6
    assert math.isclose(found.overall.interval[0], 0.2307, abs_tol=5e-5)


def test_a_set_without_tiers_has_none() -> None:
    found = measures(pd.DataFrame({"class_index": [3], "tier": [None], "correct": [True], "confidence": [0.125]}))
    assert found == Measures(Accuracy(1, 1), 0.125, {}, {3: Accuracy(1, 1)})
