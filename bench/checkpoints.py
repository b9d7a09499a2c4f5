"""The ResNet-50 of timm behind a published list: those at hand, ranked by their agreement with the list.

python bench/checkpoints.py [ROLE] [--edition FOLDER] [--weights FOLDER] [--download]
"""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import timm

from cleanset.edition.params import Model, Params, read_params
from cleanset.edition.paths import Edition, verified_images
from cleanset.errors import CleansetError
from cleanset.plumbing.progress import rate_bar
from cleanset.plumbing.validation import shown
from cleanset.scoring.engine import score_few, settings_for
from cleanset.scoring.ensemble import with_local_weights
from cleanset.scoring.models import load_model, weights_path
from cleanset.selection.candidates import top5_predictions
from cleanset.sets.published.lists import read_top5
from cleanset.tables import INDEX, read_table
from measuring import print_table

ARCHITECTURE = "resnet50"
"""Architecture of the models in the published lists."""
SUFFIX = ".safetensors"


def main() -> None:
    """Score the images of a published list with each network, and print which agrees best."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("role", nargs="?", help="model of the list in published/top5.csv; default: the first from timm")
    parser.add_argument("--edition", type=Path, default=Path())
    parser.add_argument("--weights", type=Path, help="a folder of files such as resnet50.tv_in1k.safetensors")
    parser.add_argument("--download", action="store_true", help="download missing weights, too")
    arguments = parser.parse_args()
    edition = Edition(arguments.edition)
    params = read_params(arguments.edition)
    classes = edition.read_classes()
    role = arguments.role or next(role for role, model in params.models.items() if model.source == "timm")
    models = at_hand(edition, params, arguments.weights, arguments.download)
    index = read_table(edition.index, INDEX, classes)
    listed = list_of(edition.published_lists, role, index)
    read = verified_images(edition, params.dataset.images, index, classes).read
    image_ids = sorted(listed["image_id"])
    settings = settings_for(params.score)
    tried: dict[str, Agreement] = {}
    for name, model in models.items():
        loaded = load_model(model, edition.folder)
        with rate_bar(len(image_ids), f"score {name}") as done:
            scores = score_few(loaded, read, settings, image_ids, done)
        tried[name] = agreement(scores, listed)
    rows = [
        (name, f"{found.as_listed:,}", f"{found.mean:.3g}", f"{found.largest:.3g}")
        for name, found in sorted(tried.items(), key=agreement_order)
    ]
    print_table(
        f"the published list of {role}: {len(image_ids):,} images",
        ("model", "classified as listed", "mean difference of confidence", "largest"),
        rows,
    )
    print(f"not at hand: {len(names()) - len(models)} others; see --weights and --download")


class Agreement(NamedTuple):
    """The images classified as listed, and the differences of their confidences, in probability; NaN without any."""

    as_listed: int
    mean: float
    largest: float


def agreement(scores: pd.DataFrame, listed: pd.DataFrame) -> Agreement:
    """Compare a published list of one model with scores that have a row for each of its images."""
    classes, probabilities = top5_predictions(scores)
    first = pd.DataFrame({"image_id": scores["image_id"], "top1": classes[:, 0], "found": probabilities[:, 0]})
    joined = listed.merge(first, on="image_id", validate="one_to_one")
    as_listed = joined[joined["top1"] == joined["class_index"]]
    # otherwise the differences would be rounded to float32
    differences = (as_listed["confidence"].astype("float64") - as_listed["found"]).abs()
    return Agreement(len(as_listed), float(differences.mean()), float(differences.max()))


def agreement_order(tried: tuple[str, Agreement]) -> tuple[int, float, str]:
    """The sort key: most images classified as listed, then the smallest mean difference, then the name."""
    name, found = tried
    return -found.as_listed, found.mean if found.as_listed else 0.0, name


def list_of(path: Path, role: str, index: pd.DataFrame) -> pd.DataFrame:
    """The published list of one model, of images of an index; columns as of `read_top5`.

    Raises CleansetError as `read_top5` does, and for a model without a list.
    """
    lists = read_top5(path, dict(zip(index["image_id"], index["real_classes"], strict=True)))
    if role not in set(lists["model"]):
        expected = ", ".join(lists["model"].unique()) or "none"
        raise CleansetError(f"{path}: no list of model {shown(role)}; expected one of {expected}")
    return lists[lists["model"] == role].reset_index(drop=True)


def names() -> list[str]:
    """The names of timm's pretrained ResNet-50s, with their tags, sorted."""
    return sorted(timm.list_models(f"{ARCHITECTURE}.*", pretrained=True))


def at_hand(edition: Edition, params: Params, weights: Path | None, download: bool) -> Mapping[str, Model]:
    """The ResNet-50s of timm that can be loaded, by name: first choice a file in `weights`, then the edition's own."""
    own = {model.name: model for model in params.models.values() if model.source == "timm"}
    found = {}
    for name in names():
        model = own.get(name, Model(source="timm", name=name))
        local = weights and weights / f"{name}{SUFFIX}"
        if local and local.is_file():
            found[name] = with_local_weights(Model(source="timm", name=name), local, edition)
        elif download or weights_path(model, edition.folder).is_file():
            found[name] = model
    return found


if __name__ == "__main__":
    try:
        main()
    except CleansetError as error:
        sys.exit(f"error: {error}")
