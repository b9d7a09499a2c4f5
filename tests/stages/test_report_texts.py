"""Texts of the report that follow from params.yaml alone."""

from typing import Any

import pytest

from cleanset.edition.params import Model
from cleanset.stages.report import network


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"source": "timm", "name": "resnet50.a1_in1k"}, "timm resnet50.a1_in1k"),
        ({"source": "timm", "name": "resnet50", "weights": "mine.safetensors"}, "timm resnet50 (own weights)"),
        (
            {"source": "robustbench", "name": "Salman2020Do_R50", "threat_model": "Linf"},
            "RobustBench Linf/Salman2020Do_R50",
        ),
        ({"source": "lists", "name": "standard", "file": "top5.csv"}, "published list of standard"),
        ({"source": "scores", "name": "standard", "file": "scores.csv"}, "table of scores of standard"),
        ({"source": "random", "name": "7"}, "none: a random order"),
    ],
)
def test_network(entry: dict[str, Any], expected: str) -> None:
    assert network(Model.model_validate(entry)) == expected
