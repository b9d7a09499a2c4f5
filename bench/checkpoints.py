"""The ResNet-50 of timm behind a published list: those at hand, ranked by their agreement with the list.

python bench/checkpoints.py [ROLE] [--edition FOLDER] [--weights FOLDER] [--download]
"""

import argparse
import math
import sys
from collections.abc import Mapping
from pathlib import Path

import timm

from cleanset.edition.params import Model, Params, read_params
from cleanset.edition.paths import Edition, verified_images
from cleanset.errors import CleansetError
from cleanset.plumbing.progress import rate_bar
from cleanset.scoring.engine import score_few, settings_for
from cleanset.scoring.ensemble import with_local_weights
from cleanset.scoring.models import load_model, weights_path
from cleanset.tables import INDEX, read_table
from measuring import print_table
from published_lists import ConfidenceComparison, compare_confidences, list_of

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
    tried: dict[str, ConfidenceComparison] = {}
    for name, model in models.items():
        loaded = load_model(model, edition.folder)
        with rate_bar(len(image_ids), f"score {name}") as done:
            scores = score_few(loaded, read, settings, image_ids, done)
        tried[name] = compare_confidences(scores, listed)
    rows = [
        (
            name,
            f"{len(found.differences):,}",
            *("" if each is None else f"{each:.3g}" for each in (found.mean, found.largest)),
        )
        for name, found in sorted(tried.items(), key=agreement_order)
    ]
    print_table(
        f"the published list of {role}: {len(image_ids):,} images",
        ("model", "classified as listed", "mean difference of confidence", "largest"),
        rows,
    )
    print(f"not at hand: {len(names()) - len(models)} others; see --weights and --download")


def agreement_order(tried: tuple[str, ConfidenceComparison]) -> tuple[int, float, str]:
    """The sort key: most images classified as listed, then the smallest mean difference of confidence, then the name.

    The number of classes with the same images is left out, because it needs scores of all images.
    """
    name, found = tried
    return -len(found.differences), math.inf if found.mean is None else found.mean, name


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
