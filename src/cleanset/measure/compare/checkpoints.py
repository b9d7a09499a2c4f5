"""The ResNet-50 of timm behind a published list: those at hand, ranked by their agreement with the list."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import timm

from cleanset.edition.params import Model, Params, read_params
from cleanset.edition.paths import Edition, verified_images
from cleanset.errors import CleansetError
from cleanset.measure.compare.lists import ConfidenceComparison, compare_confidences, labels_of, list_of
from cleanset.measure.compare.report import confidences_as_json
from cleanset.progress import rate_bar
from cleanset.scoring.engine import score_few, settings_for
from cleanset.scoring.ensemble import with_local_weights
from cleanset.scoring.models import load_model, weights_path
from cleanset.tables import INDEX, read_table
from cleanset.validation import shown

ARCHITECTURE = "resnet50"
"""Architecture of the models in the published lists."""
SOURCES = ("timm",)
_SUFFIX = ".safetensors"


@dataclass(frozen=True, slots=True)
class TriedCheckpoint:
    """A checkpoint whose scores were compared with a published list; `preprocessing`: by name."""

    name: str
    preprocessing: str
    weights_sha256: str
    confidences: ConfidenceComparison


@dataclass(frozen=True, slots=True)
class Ranking:
    """The checkpoints that were tried, the one that agrees best first, and the names of those not at hand."""

    role: str
    images: int
    tried: list[TriedCheckpoint]
    not_at_hand: list[str]


def run(edition: Edition, source: str, role: str | None, weights: Path | None, download: bool) -> Ranking:
    """Score the images of a published list with timm's ResNet-50s, and rank these by agreement with it.

    The list is that of `role` in published/top5.csv of the edition, by default of the first model from timm. Those
    tried are the ones whose weights the edition has, those in the folder `weights` as <name>.safetensors, and with
    `download` all. Only the listed images are scored, with `score` of the params; nothing is written but downloads.
    """
    if source not in SOURCES:
        raise CleansetError(f"--which {shown(source)}: expected {' or '.join(SOURCES)}")
    params = read_params(edition.folder)
    role = role or _default_role(params)
    models = checkpoints_at_hand(edition, params, weights, download)
    index = read_table(edition.index, INDEX)
    listed = list_of(edition.published_lists, role, labels_of(index))
    read = verified_images(edition, params.dataset.images, index).read
    image_ids, settings = sorted(listed["image_id"]), settings_for(params.score)
    tried = []
    for name, model in models.items():
        loaded = load_model(model, edition.folder)
        with rate_bar(len(image_ids), f"score {name}") as done:
            scores = score_few(loaded, read, settings, image_ids, done)
        compared = compare_confidences(scores, listed)
        tried.append(TriedCheckpoint(name, loaded.preprocessing.name, loaded.weights_sha256, compared))
    missing = [name for name in checkpoint_names() if name not in models]
    return Ranking(role, len(image_ids), sorted(tried, key=agreement_order), missing)


def agreement_order(tried: TriedCheckpoint) -> tuple[int, float, str]:
    """The sort key: most images classified as listed, then the smallest mean difference of confidence, then the name.

    The number of classes with the same images is left out, because it needs scores of all images.
    """
    found = tried.confidences
    return -found.classified, math.inf if found.mean is None else found.mean, tried.name


def checkpoint_names() -> list[str]:
    """The names of timm's pretrained ResNet-50s, with their tags, sorted."""
    return sorted(timm.list_models(f"{ARCHITECTURE}.*", pretrained=True))


def checkpoints_at_hand(edition: Edition, params: Params, weights: Path | None, download: bool) -> Mapping[str, Model]:
    """The ResNet-50s of timm that can be loaded, by name: first choice a file in `weights`, then the edition's own.

    Raises CleansetError if there are none, or for a file in `weights` that is named otherwise.
    """
    local = _in_folder(weights) if weights is not None else {}
    own = {model.name: model for model in params.models.values() if model.source == "timm"}
    found = {}
    for name in checkpoint_names():
        model = own.get(name, Model(source="timm", name=name))
        if name in local:
            found[name] = with_local_weights(Model(source="timm", name=name), local[name], edition)
        elif download or weights_path(model, edition.folder).is_file():
            found[name] = model
    if not found:
        expected = weights_path(Model(source="timm", name=f"{ARCHITECTURE}.TAG"), edition.folder)
        raise CleansetError(
            f"{expected}: missing for every tag of timm {timm.__version__}; expected weights to try: name their folder "
            "with --weights, or add --download"
        )
    return found


def _in_folder(folder: Path) -> dict[str, Path]:
    """The weight files of a folder by name."""
    if not folder.is_dir():
        raise CleansetError(f"--weights {folder}: no folder; expected one of files such as {_example()}")
    found = {path.name.removesuffix(_SUFFIX): path for path in sorted(folder.glob(f"*{_SUFFIX}"))}
    unknown = [found[name] for name in found if name not in checkpoint_names()]
    if unknown:
        raise CleansetError(
            f"{unknown[0]}: unknown ResNet-50 of timm {timm.__version__}; expected names such as {_example()}"
        )
    return found


def _example() -> str:
    return f"{ARCHITECTURE}.tv_in1k{_SUFFIX}"


def _default_role(params: Params) -> str:
    for role, model in params.models.items():
        if model.source == "timm":
            return role
    raise CleansetError("models --which: params.yaml has no model from timm; expected a ROLE of the published lists")


def as_json(ranking: Ranking) -> str:
    """The ranking for programs."""
    content: dict[str, Any] = {
        "model": ranking.role,
        "tried": [
            {
                "name": tried.name,
                "preprocessing": tried.preprocessing,
                "weights_sha256": tried.weights_sha256,
                **confidences_as_json(tried.confidences),
            }
            for tried in ranking.tried
        ],
        "not_at_hand": ranking.not_at_hand,
    }
    return json.dumps(content, indent=2)


def as_text(ranking: Ranking) -> str:
    """The ranking for people, at most 80 columns wide."""
    return "\n".join(_lines(ranking))


def _lines(ranking: Ranking) -> Iterator[str]:
    yield f"the published list of {ranking.role}: {ranking.images:,} images"
    yield ""
    yield f"{'':<34}{'classified':>10}  {'difference of confidence':>24}"
    yield f"{'model':<34}{'as listed':>10}  {'mean':>12}{'largest':>12}  SHA-256"
    for tried in ranking.tried:
        found = tried.confidences
        apart = "".join(f"{'' if value is None else f'{value:.3g}':>12}" for value in (found.mean, found.largest))
        yield f"{tried.name:<34}{found.classified:>10,}  {apart}  {tried.weights_sha256[:8]}"
    if ranking.not_at_hand:
        count = len(ranking.not_at_hand)
        yield ""
        yield f"not at hand: {count} other{'s' if count > 1 else ''}; see --weights and --download"
