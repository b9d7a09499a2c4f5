"""Confidences of what a set delivers."""

import pandas as pd

from cleanset.sets.delivered import with_known_confidences


def test_images_from_beyond_a_published_list_have_no_confidence() -> None:
    images = pd.DataFrame({"image_id": ["a", "b", "c"], "confidence": [0.5, 0.25, 1.0]})
    found = with_known_confidences(images, {"b"})["confidence"].tolist()
    assert found == [0.5, None, 1.0]
    assert with_known_confidences(images, set())["confidence"].tolist() == [0.5, 0.25, 1.0]
