"""The order in which the report shows candidates and classes, from literal sets."""

import pandas as pd

from cleanset.report.fates import HardClass, candidates_by_class, hardest_classes, images_rejected_by_all
from cleanset.report.figures import ClassState
from cleanset.selection.fill import Filled

KEPT = ["image_id", "class_index", "place", "tier", "rank", "confidence", "crop", "box_unknown"]
REJECTED = ["image_id", "class_index", "tier", "rank", "confidence", "reason", "open"]


def filled(kept: dict[str, tuple[int, int]], rejected: dict[str, tuple[int, str]]) -> Filled:
    """A model's class 5: the place and rank of each image, or its rank and the reason for its rejection."""
    chosen = [(name, 5, place, "top5", rank, 0.5, None, False) for name, (place, rank) in kept.items()]
    others = [(name, 5, "top5", rank, 0.5, reason, False) for name, (rank, reason) in rejected.items()]
    return Filled(pd.DataFrame(chosen, columns=KEPT), pd.DataFrame(others, columns=REJECTED))


SETS = {
    "b": filled(
        {"y1": (1, 4), "z2": (2, 1)}, {"dark": (9, "blur"), "over": (8, "not_needed"), "far": (3, "not_needed")}
    ),
    "a": filled({"b1": (1, 1), "z2": (3, 2)}, {"dark": (3, "blur"), "over": (2, "not_needed"), "word": (5, "text")}),
}


def test_kept_images_come_by_their_best_place_and_others_by_their_best_rank() -> None:
    """In one place, the image of the model that the params name first; images with a flaw before those not needed."""
    found = candidates_by_class(SETS, {"b": [0.5, 0.5], "a": [0.5, 0.5]}, {})
    assert {index: [each.image_id for each in candidates] for index, candidates in found.items()} == {
        5: ["y1", "b1", "z2", "dark", "word", "over", "far"]
    }
    assert [fate.place for fate in found[5][2].uses] == [2, 3]
    assert images_rejected_by_all(found) == {"dark", "word"}


def state(index: int, **kept: int) -> ClassState:
    return ClassState(index, kept, {}, {"a": "short"} if kept["a"] < 3 else {}, kept["a"] == 3)


def test_the_hardest_classes_have_the_fewest_images_then_the_most_rejected() -> None:
    candidates = candidates_by_class(SETS, {"b": [0.5, 0.5], "a": [0.5, 0.5]}, {})
    states = [state(7, a=2, b=3), state(5, a=2, b=3), state(4, a=2, b=3), state(3, a=0, b=3), state(2, a=3, b=3)]
    expected = [
        HardClass(states[3], 0, {}),
        HardClass(states[1], 2, {"blur": 1, "text": 1}),
        HardClass(states[2], 0, {}),
        HardClass(states[0], 0, {}),
    ]
    assert hardest_classes(states, candidates, 9) == expected
    assert hardest_classes(states, candidates, 2) == expected[:2]
