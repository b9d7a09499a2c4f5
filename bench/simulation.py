"""Simulated editions of any size: index, scores and reviews as the stages expect them.

The labels may be the real reassessed ones; everything else is drawn with a fixed seed.
"""

import hashlib
import io
import tarfile
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path

import numpy as np
import pandas as pd
import yaml
from numpy.typing import NDArray

from cleanset.dataset.archives import locate, to_table
from cleanset.dataset.ilsvrc import CLASSES, image_id
from cleanset.edition.paths import Edition
from cleanset.files import sha256
from cleanset.images.boxes import Crop
from cleanset.images.codec import inspect
from cleanset.scoring.logits import log_odds_of
from cleanset.selection.crop_check import Prediction, after_crop
from cleanset.selection.fill import UNREVIEWED, Decision, fill, with_decisions
from cleanset.tables import CANDIDATES, CROP_SCORES, INDEX, LOCATIONS, SCORES, read_table, write_table
from cleanset.vocabulary import class_keys

TAR = "images.tar"
ROLES = ("standard", "norm_robust", "corruption_robust")
RIGHT = {"standard": 0.80, "norm_robust": 0.70, "corruption_robust": 0.75}
"""Accuracy of each model on the images with a label."""

FLAWED = 0.15
CROPPABLE = 0.5
"""Share of the images with a flaw, and share of those that a crop can save."""

WRONG_AFTER_CROP = 0.1
"""Share of the crops that a model misclassifies."""

WIDTH, HEIGHT = 500, 375
BOX = (0, 0, WIDTH, HEIGHT - 40)
_SEED = 20_12
_SHARED_DIFFICULTY = 0.7
"""Correlation of an image's difficulty for one model with that for another."""

SCORED: dict[str, object] = {
    "role": "made up",
    "source": "timm",
    "name": "made up",
    "preprocessing": {"name": "made up", "resize": 256, "size": 224, "interpolation": "bicubic"},
    "weights_sha256": "0" * 64,
    "precision": "float64",
    "images": 50_000,
    "against_float64": None,
    "versions": {},
    "code": "0" * 64,
}
"""Contents of the data card of an export."""


def fewest_first(labels: Sequence[Sequence[int]]) -> list[list[int]]:
    """The labels of each image, the class with the fewest one-label images first."""
    images = Counter(each[0] for each in labels if len(each) == 1)
    return [sorted(each, key=lambda label: (images[label], label)) for each in labels]


def write_params(folder: Path, **changes: Mapping[str, object]) -> None:
    """Write the params.yaml of the ImageNet edition, with some keys of some sections changed."""
    source = Path(__file__).parents[1] / "imagenet" / "params.yaml"
    params = yaml.safe_load(source.read_text(encoding="utf-8"))
    for section, keys in changes.items():
        params[section] |= keys
    (folder / "params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")


def index_of(labels: Sequence[Sequence[int]]) -> pd.DataFrame:
    """An index with an image for each of `labels`; sizes and digests are invented."""
    rng = np.random.default_rng(_SEED)
    ids = [image_id(number) for number in range(1, len(labels) + 1)]
    return pd.DataFrame(
        {
            "image_id": ids,
            "size": rng.integers(20_000, 250_000, len(ids)),
            "sha256": [hashlib.sha256(name.encode()).hexdigest() for name in ids],
            "width": WIDTH,
            "height": HEIGHT,
            "mode": "RGB",
            "pixels_sha256": [hashlib.sha256(name.encode()[::-1]).hexdigest() for name in ids],
            "ilsvrc_class": [each[0] if each else number % CLASSES for number, each in enumerate(labels)],
            "real_classes": pd.Series([list(each) for each in labels], dtype=object),
            "single": [len(each) == 1 for each in labels],
        }
    )


def write_images(folder: Path, index: pd.DataFrame, images: Sequence[bytes]) -> None:
    """Write a tar with an image for each row of the index, the images again and again, the index with their facts."""
    archive, edition = folder / TAR, Edition(folder)
    with tarfile.open(archive, "w") as tar:
        for name, data in zip(index["image_id"], cycle(images), strict=False):
            member = tarfile.TarInfo(f"{name}.JPEG")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    write_table(edition.index, with_facts(index, images), INDEX)
    write_table(edition.locations, to_table(locate(archive), archive), LOCATIONS)


def with_facts(index: pd.DataFrame, images: Sequence[bytes]) -> pd.DataFrame:
    """The index with size, digests, width, height and mode of the images, which are repeated in it."""
    facts = pd.DataFrame([inspect(data) for data in images])
    facts = facts.assign(size=list(map(len, images)), sha256=list(map(sha256, images)))
    repeated = facts.iloc[np.arange(len(index)) % len(images)].reset_index(drop=True)
    return index.assign(**{str(name): repeated[name] for name in repeated})


def scores_of(labels: Sequence[Sequence[int]], right: Mapping[str, float]) -> dict[str, pd.DataFrame]:
    """Predictions of each model: correct on the given share of the images, more confident on easier ones.

    A correct prediction is the first label. A perfect model is correct on every image.
    """
    rng = np.random.default_rng(_SEED)
    shared = rng.standard_normal(len(labels))
    truth = np.array([each[0] if each else number % CLASSES for number, each in enumerate(labels)])
    return {role: _one_model(rng, shared, truth, share) for role, share in right.items()}


def _one_model(
    rng: np.random.Generator, shared: NDArray[np.float64], truth: NDArray[np.int64], right: float
) -> pd.DataFrame:
    count = len(truth)
    own = rng.standard_normal(count)
    difficulty = _SHARED_DIFFICULTY**0.5 * shared + (1 - _SHARED_DIFFICULTY) ** 0.5 * own
    is_right = difficulty <= np.quantile(difficulty, right)
    # steps that are distinct and shorter than CLASSES in all: five different classes, the first one free
    steps = np.cumsum(rng.integers(1, CLASSES // 5, (count, 4)), axis=1)
    first = np.where(is_right, truth, (truth + rng.integers(1, CLASSES, count)) % CLASSES)
    classes = np.concatenate([first[:, None], (first[:, None] + steps) % CLASSES], axis=1)
    confidence = 0.2 + 0.8 / (1 + np.exp(1.5 * difficulty - 1.5 + 0.5 * rng.standard_normal(count)))
    rest = (1 - confidence)[:, None] * np.array([0.5, 0.2, 0.1, 0.05])
    rest = np.minimum(rest, confidence[:, None])
    probabilities = np.concatenate([confidence[:, None], rest], axis=1).astype(np.float32)
    return pd.DataFrame(
        {
            "image_id": [image_id(number) for number in range(1, count + 1)],
            "top5_class": pd.Series(classes.tolist(), dtype=object),
            "top5_probability": pd.Series(probabilities.tolist(), dtype=object),
            "log_odds": log_odds_of(probabilities[:, 0]),
        }
    )


def write_edition(folder: Path, labels: Sequence[Sequence[int]], right: Mapping[str, float] = RIGHT) -> None:
    """Write index and scores, as preprocess and score would have; no crop is drawn yet."""
    edition = Edition(folder)
    edition.reviews.mkdir(parents=True)
    write_table(edition.index, index_of(labels), INDEX)
    for role, scores in scores_of(labels, right).items():
        write_table(edition.scores(role), scores, SCORES)
        write_crop_scores(edition, role, {})


def write_reviews(folder: Path, images_per_class: int = 3) -> int:
    """Review every image that the queue asks for until all classes are settled; return the number of verdicts.

    Each round looks at the first open image of every class and model, as the review queue does. The predictions
    for the crops are written too, as by score_crops.
    """
    edition = Edition(folder)
    candidates = [read_table(edition.candidates(role), CANDIDATES) for role in ROLES]
    sha256_of = read_table(edition.index, INDEX).set_index("image_id")["sha256"]
    rng = np.random.default_rng(_SEED)
    said = [_said(table, rng) for table in candidates]
    decided: dict[tuple[int, str], Decision] = {}
    while asked := {
        key
        for table, of_model in zip(candidates, said, strict=True)
        for key in _next_asked(table, decided, of_model, images_per_class)
    }:
        decided |= {key: verdict(rng) for key in sorted(asked)}
    drawn = {Crop(name, decision.crop) for (_, name), decision in decided.items() if decision.crop}
    for role, of_model in zip(ROLES, said, strict=True):
        write_crop_scores(edition, role, {crop: of_model[crop] for crop in sorted(drawn & of_model.keys())})
    by_class: dict[int, list[str]] = {}
    for (class_index, name), decision in sorted(decided.items()):
        by_class.setdefault(class_index, []).append(_entry(name, decision, sha256_of[name]))
    reviewer = edition.reviews / "simulated"
    reviewer.mkdir()
    for class_index, entries in by_class.items():
        wnid = class_keys()[class_index]
        (reviewer / f"{wnid}.yaml").write_text(f"{wnid}:\n{''.join(entries)}", encoding="utf-8")
    return len(decided)


def write_crop_scores(edition: Edition, role: str, said: Mapping[Crop, Prediction]) -> None:
    """Write a model's predictions for crops; the four lower classes are the next ones by number."""
    confidences = [prediction.confidence for prediction in said.values()]
    rows = {
        "image_id": [crop.image_id for crop in said],
        "crop": [crop.box for crop in said],
        "top5_class": [[(top1 + place) % CLASSES for place in range(5)] for top1, _ in said.values()],
        "top5_probability": [[confidence, *[0.01] * 4] for confidence in confidences],
        "log_odds": log_odds_of(np.array(confidences, dtype=np.float32)),
    }
    write_table(edition.crop_scores(role), pd.DataFrame(rows), CROP_SCORES)


def _said(candidates: pd.DataFrame, rng: np.random.Generator) -> dict[Crop, Prediction]:
    """A model's prediction for each of its candidates if it were cropped."""
    is_wrong = rng.random(len(candidates)) < WRONG_AFTER_CROP
    highest = (candidates["class_index"].to_numpy() + is_wrong) % CLASSES
    return {
        Crop(name, BOX): Prediction(class_index, confidence)
        for name, class_index, confidence in zip(
            candidates["image_id"], highest.tolist(), candidates["confidence"].tolist(), strict=True
        )
    }


def _next_asked(
    candidates: pd.DataFrame,
    decided: Mapping[tuple[int, str], Decision],
    said: Mapping[Crop, Prediction],
    images_per_class: int,
) -> list[tuple[int, str]]:
    def decide(class_index: int, name: str) -> Decision:
        return after_crop(decided.get((class_index, name), UNREVIEWED), name, class_index, said)

    reviewed = with_decisions(candidates, decide)
    rejected = fill(reviewed, images_per_class).rejected
    first = rejected[rejected["open"]].sort_values("rank").groupby("class_index").first()
    return list(zip(first.index, first["image_id"], strict=True))


def verdict(rng: np.random.Generator) -> Decision:
    """A reviewer's verdict on one image."""
    if rng.random() >= FLAWED:
        return Decision("clean")
    if rng.random() >= CROPPABLE:
        return Decision("reject", "filter")
    return Decision("crop", "watermark", BOX)


def _entry(name: str, decision: Decision, sha256: str) -> str:
    lines = [f"  {name}:", f"    verdict: {decision.verdict}"]
    if decision.reason:
        lines.append(f"    reason: {decision.reason}")
    if decision.crop:
        lines += [f"    crop: {list(decision.crop)}", "    object_fully_visible: true"]
    return "\n".join([*lines, f"    sha256: {sha256}", ""])
