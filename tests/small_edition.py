"""The ten images as a project in which DVC runs every stage, with one model: the sample in a third of its time."""

import gzip
import re
import shutil
from pathlib import Path

import yaml

from cleanset.plumbing.files import sha256
from tests.checkouts import Checkout
from tests.ten_images import Made, devkit_files, id_of, tar, ten_images

ROLE = "standard"
STAGES = (
    "preprocess", "score@standard", "intersect", "select@standard", "crops", "score_crops@standard",
    "review_apply@standard", "export@standard", "count", "report",
)  # fmt: skip
REASSESSED = "[[954], [954], [879], [954], [417], [417], [954], [954], [417, 879], []]"
"""The classes that the sample's model predicts for the ten images, so that there is something to select."""
VERDICTS: dict[str, dict[int, dict[str, object]]] = {
    "n07753592": {
        1: {"verdict": "crop", "reason": "border", "crop": [0, 0, 42, 31], "object_fully_visible": True},
        2: {"verdict": "clean"},
        4: {"verdict": "clean"},
        7: {"verdict": "reject", "reason": "noise"},
    },
    "n04507155": {3: {"verdict": "clean"}},
    "n02782093": {5: {"verdict": "unsure"}, 6: {"verdict": "clean"}},
}
CLASSES = sorted(VERDICTS)


def of_one_model(pipeline: str) -> str:
    """The text of dvc.yaml without the files of the other two models."""
    return re.sub(r"(?m)^ *- data/\w+/(norm|corruption)_robust\.\w+\n", "", pipeline)


def write_small_edition(checkout: Checkout, edition: str = ".") -> None:
    """Make the edition in this folder of a checkout one of the ten images: archives, params, pipeline, reviews.

    The archives are in `raw/`, which git does not ignore.
    """
    folder = checkout.folder / edition
    params = yaml.safe_load((checkout.folder / "params.yaml").read_text())
    weights = checkout.folder / "sample" / "weights" / f"{ROLE}.safetensors"
    devkit = gzip.compress(tar(devkit_files()), mtime=0)
    made = Made(folder, raw="raw").archives(devkit=devkit, reassessed=REASSESSED)
    root = "." if edition == "." else ".."
    model = {
        "source": "timm", "name": "test_efficientnet",
        "weights": f"{root}/sample/weights/{ROLE}.safetensors", "sha256": sha256(weights.read_bytes()),
    }  # fmt: skip
    made.others = params | {
        "root": root, "models": {ROLE: model}, "review": params["review"] | {"min_crop_pixels": 16},
    }  # fmt: skip
    del made.others["dataset"]
    made.params(classes=CLASSES, label="real")
    pipeline = (folder / "dvc.yaml").read_text()
    (folder / "dvc.yaml").write_text(of_one_model(pipeline))
    shutil.rmtree(folder / "reviews")
    (folder / "reviews" / "ada").mkdir(parents=True)
    images = ten_images()
    for wnid, verdicts in VERDICTS.items():
        entries = {
            id_of(number): verdict | {"sha256": sha256(images[id_of(number)])} for number, verdict in verdicts.items()
        }
        (folder / "reviews" / "ada" / f"{wnid}.yaml").write_text(yaml.safe_dump({wnid: entries}, sort_keys=False))


def small_checkout(pristine: Checkout, folder: Path, **variables: str) -> Checkout:
    """A copy of the project whose sample edition is that of the ten images; nothing has run in it."""
    checkout = pristine.clone(folder, **variables)
    for name in ("metrics", "dvc.lock", "sample/dvc.yaml", "sample/dvc.lock"):
        path = checkout.folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    write_small_edition(checkout)
    checkout.commit("Take the ten images")
    return checkout
