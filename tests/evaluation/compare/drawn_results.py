"""Results of evaluations as their commands write them, of cards and numbers that a test chooses."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cleanset.evaluation.comparability import (
    CardClasses,
    CardImages,
    CardInterval,
    CardModel,
    CardReference,
    ComparabilityCard,
    images_digest,
)
from cleanset.evaluation.notes import MeasuredSet
from cleanset.plumbing.json_files import with_digest

A, B, C, D = (letter * 64 for letter in "abcd")
MODEL = CardModel(
    weights_sha256=A,
    preprocessing="timm-bicubic-235-224",
    preprocessing_sha256=B,
    precision="float64",
    versions={"torch": "2.11.0"},
)
CLEAN = ComparabilityCard(
    measured="accuracy",
    images=CardImages(count=3, sha256=images_digest([(0, A), (0, B), (1, C)])),
    classes=CardClasses(of_images=2, of_predictions=1000),
    pixels_sha256=D,
    interval=CardInterval(kind="Wilson", level=0.95),
    models={},
)
"""The card of accuracies."""
CORRUPTIONS = ComparabilityCard(
    measured="corruptions",
    images=CardImages(count=3, sha256=A),
    classes=CardClasses(of_images=2, of_predictions=1000),
    changes={"fog": "1 2 3 4 5", "snow": "1 2 3 4 5"},
    settings={"jpeg": 85, "seed": 0},
    pixels_sha256=C,
    reference=CardReference(name="alexnet, published", sha256=D),
    interval=CardInterval(kind="bootstrap within classes, one_fewer", level=0.95, draws=1000, seed="corruptions 0"),
    models={"mine": MODEL},
)
"""The card of errors on corrupted images."""
SET = MeasuredSet(name="standard", version="1.2.0", selection="chosen by hand", limits=("A trial.",)).as_json()
"""The facts about the set in a result file."""
NUMBERS = (0.75, 0.5, 0.875)
"""An accuracy and the ends of its interval."""


def accuracies(
    models: Mapping[str, tuple[float, float, float]], parts: Mapping[str, CardModel] | None = None, **card: Any
) -> dict[str, Any]:
    """The content of a result file of `evaluate`: by model the accuracy and the ends of its interval."""
    found = CLEAN.model_copy(update={"models": dict.fromkeys(models, MODEL) | dict(parts or {}), **card})
    return {
        "format": 2,
        "set": SET | {"kind": "export", "images": 3},
        "interval": "Wilson, 95 %",
        "comparability": found.as_json(),
        "models": [
            {
                "model": name,
                "images": 10**6,
                "correct": round(10**6 * value),
                "accuracy": value,
                "interval": [low, high],
            }
            for name, (value, low, high) in models.items()
        ],
    }


def corrupted(models: Mapping[str, float], measured: str = "corruptions", **card: Any) -> dict[str, Any]:
    """The part of a result file of `robustness evaluate` for a family: by model its first headline measure."""
    found = CORRUPTIONS.model_copy(update={"measured": measured, "models": dict.fromkeys(models, MODEL), **card})
    if measured == "perturbations":
        interval = CORRUPTIONS.interval.model_copy(update={"seed": "perturbations 0"})
        found = found.model_copy(update={"reference": None, "interval": interval})
    measure = {"corruptions": "mean_error", "perturbations": "mean_fp"}[measured]
    return {
        "comparability": found.as_json(),
        "models": [
            {"model": name, "measures": {measure: {"value": value, "interval": [value / 2, value]}}}
            for name, value in models.items()
        ],
    }


def robustness(*families: dict[str, Any]) -> dict[str, Any]:
    """The content of a result file of `robustness evaluate`."""
    named = {family["comparability"]["measured"]: family for family in families}
    return {"format": 2, "set": SET | {"images": 3}, "families": named}


def put_results(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(with_digest(content) if isinstance(content, dict) else content))
    return path
