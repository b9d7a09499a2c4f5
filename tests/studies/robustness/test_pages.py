"""Parts of the pages: the table of differences, with and without an interval, and the markers of models."""

import math
import re

import pytest

from cleanset.classes import imagenet
from cleanset.report.pages import page_environment
from cleanset.studies.robustness.pages import TEMPLATES

ROW: dict[str, object] = {
    "selection": "union", "measure": "mce", "model": "a", "other": "b", "factor": 100,
    "value": 0.25, "low": -0.125, "high": 0.5, "p": 0.01, "p_holm": 0.03,
}  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "cells"),
    [
        ({}, ["+25.0", "-12.5 to +50.0 contains 0", "0.0300"]),
        ({"low": 0.125}, ["+25.0", "+12.5 to +50.0", "0.0300"]),
        ({"low": math.nan, "high": math.nan}, ["+25.0", "–", "0.0300"]),
        ({"p": math.nan, "p_holm": math.nan}, ["+25.0", "-12.5 to +50.0 contains 0", "–"]),
        ({"p_holm": 0.00001}, ["+25.0", "-12.5 to +50.0 contains 0", "< 0.0001"]),
    ],
)
def test_a_difference(changed: dict[str, object], cells: list[str]) -> None:
    parts = page_environment(imagenet(), TEMPLATES).get_template("study_parts.html").module
    table = str(parts.difference_table([ROW | changed], {"mce": "mCE"}))  # type: ignore[attr-defined]
    found = [re.sub("<[^>]*>", "", each).replace("&lt;", "<") for each in re.findall("<td.*?</td>", table)]
    assert found[3:] == cells


def test_no_two_of_eleven_models_have_one_marker() -> None:
    parts = page_environment(imagenet(), TEMPLATES).get_template("study_parts.html").module
    markers = [parts.marker(place) for place in range(12)]  # type: ignore[attr-defined]
    assert len(set(markers[:11])) == 11
    assert markers[11] == markers[0]
