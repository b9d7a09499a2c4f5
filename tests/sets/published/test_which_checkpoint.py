"""bench/checkpoints.py: the scores of a network compared with a published list of a model's most confident images."""

from math import isnan
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from checkpoints import Agreement, agreement, agreement_order, list_of
from cleanset.errors import CleansetError

INDEX = pd.DataFrame(
    {
        "image_id": ["ILSVRC2012_val_00000001", "ILSVRC2012_val_00000002", "ILSVRC2012_val_00000003"],
        "real_classes": [[3], [3], [4]],
    }
)


def listed(*rows: tuple[int, str, float]) -> pd.DataFrame:
    """A published list: class index, image id, confidence."""
    return pd.DataFrame(rows, columns=["class_index", "image_id", "confidence"]).astype({"confidence": "float32"})


def scores_of(answers: dict[str, tuple[int, float]]) -> pd.DataFrame:
    """By image id: top-1 class and its confidence."""
    return pd.DataFrame(
        {
            "image_id": list(answers),
            "top5_class": [np.arange(top1, top1 + 5, dtype=np.int16) for top1, _ in answers.values()],
            "top5_probability": [np.array([each, 0, 0, 0, 0], np.float32) for _, each in answers.values()],
        }
    )


def test_confidences_of_the_images_that_are_classified_as_listed() -> None:
    scores = scores_of({"a": (3, 0.5), "b": (9, 0.75), "c": (4, 0.75), "d": (5, 0.5)})
    found = agreement(scores, listed((3, "b", 0.875), (3, "a", 0.75), (4, "c", 0.625)))
    assert found == Agreement(as_listed=2, mean=0.1875, largest=0.25)


def test_every_image_misclassified() -> None:
    found = agreement(scores_of({"a": (4, 0.5)}), listed((3, "a", 0.5)))
    assert (found.as_listed, isnan(found.mean), isnan(found.largest)) == (0, True, True)


def test_most_images_come_first_and_then_the_smallest_difference() -> None:
    tried = {
        "none": Agreement(0, float("nan"), float("nan")),
        "far": Agreement(3, 0.5, 0.5),
        "near": Agreement(3, 0.25, 0.5),
        "few": Agreement(2, 0.0, 0.0),
        "also near": Agreement(3, 0.25, 0.25),
    }
    assert [name for name, _ in sorted(tried.items(), key=agreement_order)] == [
        "also near", "near", "far", "few", "none",
    ]  # fmt: skip


def test_the_list_of_a_model(tmp_path: Path) -> None:
    path = tmp_path / "top5.csv"
    path.write_text(
        "model,class_index,rank,image_id,confidence\n"
        "standard,3,1,ILSVRC2012_val_00000002,0.875\n"
        "norm_robust,4,1,ILSVRC2012_val_00000003,0.5\n"
    )
    found = list_of(path, "norm_robust", INDEX)
    assert found[["class_index", "image_id", "confidence"]].values.tolist() == [[4, "ILSVRC2012_val_00000003", 0.5]]
    with pytest.raises(CleansetError, match=r"no list of model 'vit'; expected one of standard, norm_robust$"):
        list_of(path, "vit", INDEX)
