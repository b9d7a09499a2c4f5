"""Defences that are models of the edition: a model that abstains below a threshold of its confidence.

torch is imported when a model is loaded.
"""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image

from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.images.codec import decode
from cleanset.plumbing.files import sha256
from cleanset.plumbing.validation import check_known
from cleanset.scoring.logits import Groups, ScoreColumns, predicted_groups, stored_columns
from cleanset.statistics.basics import Flags, Floats
from cleanset.statistics.coverage import CONFIDENCES, Confidence, check_coverage, confidences, threshold
from cleanset.studies.contest.entries import ModelOfEdition
from cleanset.studies.contest.lists import edition_of, eligibility_list
from cleanset.studies.contest.log import read
from cleanset.studies.contest.rules import ABSTAIN, ContestLimits


class ModelDefence:
    """A model of the edition that abstains below its threshold; the model is loaded on construction."""

    def __init__(self, edition: Edition, wanted: ModelOfEdition, groups: Groups) -> None:
        from cleanset.evaluation.user_model import load_member
        from cleanset.scoring.engine import settings_for

        params = read_params(edition.folder)
        entry = params.network(wanted.role)
        # left out where there is no module, so that runs of other models are of the same model as before
        unused = set() if entry.module_sha256 else {"module_sha256"}
        self.digest = sha256(json.dumps(entry.model_dump(mode="json", exclude=unused), sort_keys=True).encode())
        """The SHA-256 of the model's entry in params.yaml, which names its weights by their own."""
        self._model = load_member(entry, edition.folder, edition.read_classes())
        self._settings = settings_for(params.score)
        self._groups = groups
        self._wanted = wanted

    def __call__(self, paths: Mapping[str, Path]) -> tuple[dict[str, str], float]:
        """By the name of each image, a group or `abstain`; and the seconds that it took."""
        begun = perf_counter()
        found = self.predictions(paths)
        rows = zip(found["image_id"], found["group"], found["confidence"], strict=True)
        least = self._wanted.threshold
        answers = {name: self._groups.names[group] if sure >= least else ABSTAIN for name, group, sure in rows}
        return answers, perf_counter() - begun

    def predictions(self, paths: Mapping[str, Path]) -> pd.DataFrame:
        """The columns `image_id`, `group` (0 or 1) and `confidence`, a row for each image, without abstaining."""
        from cleanset.scoring.engine import score_few

        read = partial(read_image, paths)
        read_off = partial(group_columns, self._groups)
        found = score_few(self._model, read, self._settings, list(paths), read_off=read_off)
        return found.assign(confidence=confidences(found, self._wanted.confidence))


def read_image(paths: Mapping[str, Path], name: str) -> Image.Image:
    """An image by its name, in RGB. Raises ValueError if it cannot be read."""
    return decode(paths[name].read_bytes()).convert("RGB")


def group_columns(groups: Groups, logits: NDArray[np.float64], _ids: Sequence[str] = ()) -> ScoreColumns:
    """The columns that confidences need, and the predicted group, from logits of shape (n, 1000).

    Raises ValueError if a logit is not finite.
    """
    found = groups.logits(logits)
    return {**stored_columns(found), "group": predicted_groups(found)}


def check_sees(edition: Edition, role: str, limits: ContestLimits) -> None:
    """Raise CleansetError for a model of the edition that sees fewer pixels of a submission than people do."""
    # timm is imported here, because most entries need none
    from cleanset.evaluation.user_model import load_member
    from cleanset.scoring.models import preprocessing_of

    model = read_params(edition.folder).network(role)
    is_module = model.source == "module"
    preprocessing = (
        load_member(model, edition.folder, edition.read_classes()).preprocessing
        if is_module
        else preprocessing_of(model)
    )
    pixels, share = pixels_seen(preprocessing)
    if pixels < limits.max_side or share < limits.seen_share:
        raise CleansetError(
            f"model {role}: scales a square image to {pixels} pixels a side, and looks at {share:.3f} of them; "
            f"expected at least {limits.max_side} and {limits.seen_share:g}, limits.max_side and limits.seen_share"
        )


def pixels_seen(preprocessing: object) -> tuple[int, float]:
    """The side in pixels to which a square image is scaled, and the share of it that is looked at, in the middle.

    Of a callable nothing is known but the pixels that it returns, as of a crop alone.
    """
    size = getattr(preprocessing, "size", ContestLimits().max_side)
    resize = getattr(preprocessing, "resize", None)
    scaled = min(resize) if isinstance(resize, tuple) else resize
    pixels = scaled if isinstance(scaled, int) else size
    return pixels, min(size, pixels) / pixels


def find_threshold(folder: Path, role: str, *, kind: Confidence, coverage: float) -> str:
    """The threshold at which a model answers a share of the eligibility list, and the accuracy there."""
    check_known("confidence", kind, CONFIDENCES)
    check_coverage(coverage)
    edition = edition_of(folder)
    groups = read(folder).rules.groups()
    known = eligibility_list(edition, groups)
    # any threshold will do: predictions() does not abstain
    model = ModelDefence(edition, ModelOfEdition(role=role, confidence=kind, threshold=0.0), groups)
    found = model.predictions({sha: each.path for sha, each in known.items()})
    correct = [
        groups.names[group] == known[sha].group for sha, group in zip(found["image_id"], found["group"], strict=True)
    ]
    return threshold_text(f"{role}: {kind}", found["confidence"].to_numpy(), np.array(correct), coverage)


def threshold_text(model: str, confidence: Floats, correct: Flags, coverage: float) -> str:
    """The threshold for a coverage of 0 to 1, and the accuracy there. Raises CleansetError as `threshold` does."""
    least = threshold(confidence, coverage, "plain")
    answers = confidence >= least
    return (
        f"{model} of at least {least!r} answers {answers.sum()} of {len(answers)} images of the eligibility list: "
        f"accuracy {correct[answers].mean():.4f}"
    )
