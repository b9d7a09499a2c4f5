"""Learn weights.json, a baseline that sees nothing but colors, from the sample's finished sets.

Run in the folder of the contest. It is a logistic regression on a color histogram. Unrestricted Adversarial Examples,
appendix F, wants a task that cannot be solved without learning; where this baseline does well, it can.
"""

import csv
import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
import yaml
from PIL import Image

BINS = 4
"""Levels of each of red, green and blue: 64 colors."""
PENALTY = 1e-3
"""Weight of the squared weights, per image: keeps them finite where colors alone separate the groups."""
FOLDS = 10
MAX_STEPS = 100
TOLERANCE = 1e-10

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def color_histogram(image: npt.NDArray[np.uint8], bins: int = BINS) -> Floats:
    """The share of the pixels in each of `bins`^3 colors, from uint8 of shape (height, width, 3); their sum is 1."""
    levels = image.reshape(-1, 3).astype(np.int64) * bins // 256
    colors = (levels[:, 0] * bins + levels[:, 1]) * bins + levels[:, 2]
    return np.bincount(colors, minlength=bins**3) / len(colors)


def fit(features: Floats, groups: Ints, penalty: float = PENALTY) -> Floats:
    """The weights of the features, then the intercept, of the log-odds of group 1.

    They minimize the mean negative log-likelihood + penalty / 2 * |weights|^2, by Newton's method. `features` has the
    shape (n, d); `groups` is 0 or 1 for each. Raises ValueError unless there are images of both groups.
    """
    if set(groups.tolist()) != {0, 1}:
        raise ValueError("color baseline: images of one group only; expected some of both: name more images")
    columns = np.column_stack([features, np.ones(len(features))])
    ridge = np.full(columns.shape[1], penalty)
    ridge[-1] = 0  # the intercept is free
    found = np.zeros(columns.shape[1])
    value = _loss(columns, groups, ridge, found)
    for _ in range(MAX_STEPS):
        probability = 1 / (1 + np.exp(-(columns @ found).clip(-700, 700)))
        gradient = columns.T @ (probability - groups) / len(columns) + ridge * found
        hessian = (columns.T * (probability * (1 - probability))) @ columns / len(columns) + np.diag(ridge)
        step = np.linalg.lstsq(hessian, gradient, rcond=None)[0]
        # a whole Newton step may overshoot
        while (next_value := _loss(columns, groups, ridge, found - step)) > value and np.abs(step).max() > TOLERANCE:
            step = step / 2
        found, value = found - step, next_value
        if np.abs(step).max() <= TOLERANCE:
            break
    return found


def _loss(columns: Floats, groups: Ints, ridge: Floats, at: Floats) -> float:
    odds = columns @ at
    return float((np.logaddexp(0, odds) - groups * odds).mean() + (ridge * at * at).sum() / 2)


def log_odds(features: Floats, weights: Floats) -> Floats:
    """The log-odds of group 1, from features of shape (n, d) and what `fit` found."""
    found: Floats = features @ weights[:-1] + weights[-1]
    return found


def left_out_log_odds(features: Floats, groups: Ints, folds: int = FOLDS) -> Floats:
    """The log-odds of each image by a regression on the images outside its fold.

    Within each group the first image goes to the first fold, the second to the second, and so on, so that nothing is
    drawn: give the images in an order that does not change. Raises ValueError as `fit` does, and for a group of fewer
    than two images.
    """
    if min(np.bincount(groups, minlength=2)[:2]) < 2:
        raise ValueError("color baseline: a group of fewer than two images; expected two or more: name more images")
    fold = np.empty(len(groups), np.int64)
    for group in (0, 1):
        members = np.flatnonzero(groups == group)
        fold[members] = np.arange(len(members)) % folds
    found = np.empty(len(groups))
    for each in np.unique(fold):
        outside = fold != each
        found[~outside] = log_odds(features[~outside], fit(features[outside], groups[outside]))
    return found


def eligibility_list(contest: Path, sets: Path) -> tuple[Floats, Ints]:
    """The histograms and groups of the images in the finished sets whose class is the contest's, by their SHA-256."""
    classes = yaml.safe_load((contest / "contest.yaml").read_text())["classes"]
    group_of = {wnid: group for group, wnids in enumerate(classes.values()) for wnid in wnids}
    found: dict[str, tuple[Path, int]] = {}
    for manifest in sorted(sets.glob("*/manifest.csv")):
        with manifest.open(newline="") as file:
            for row in csv.DictReader(file):
                if row["wnid"] in group_of:
                    found.setdefault(row["file_sha256"], (manifest.parent / row["file"], group_of[row["wnid"]]))
    images = [found[digest] for digest in sorted(found)]
    features = [color_histogram(np.asarray(Image.open(path).convert("RGB"))) for path, _ in images]
    return np.array(features), np.array([group for _, group in images])


def main() -> None:
    """Write weights.json, and print how well the baseline does."""
    features, groups = eligibility_list(Path(), Path("..", "..", "data", "export"))
    left_out = left_out_log_odds(features, groups)
    print(f"{((left_out > 0) == (groups == 1)).mean():.3f} of {len(groups)} images correct, each left out once")
    *weights, intercept = fit(features, groups)
    content = {"weights": np.round(weights, 6).tolist(), "intercept": round(float(intercept), 6), "threshold": 0.5}
    Path("defences/reef/colors/weights.json").write_text(json.dumps(content) + "\n")


if __name__ == "__main__":
    main()
