"""What is asked of a finished set in a folder, and of a clone."""

import csv
import hashlib
import shutil
from pathlib import Path

import yaml

from tests.checkouts import Checkout, files

ROLES = ("standard", "norm_robust", "corruption_robust")


def manifest_holds(folder: Path) -> bool:
    """Whether the images in a set's folder are just those of its manifest, with the SHA-256 there."""
    with (folder / "manifest.csv").open(newline="") as file:
        expected = {row["file"]: row["file_sha256"] for row in csv.DictReader(file)}
    return {name: digest for name, digest in files(folder).items() if "/" in name} == expected


def give_archives(built: Checkout, checkout: Checkout) -> None:
    """Put own archives into a clone; and into its cache, for a stage made those of the sample."""
    shutil.copytree(built.folder / "data" / "raw", checkout.folder / "data" / "raw")
    for path in (checkout.folder / "data" / "raw").iterdir():
        md5 = hashlib.md5(path.read_bytes()).hexdigest()
        cached = checkout.folder / ".dvc" / "cache" / "files" / "md5" / md5[:2] / md5[2:]
        cached.parent.mkdir(parents=True)
        shutil.copyfile(path, cached)


def reject(checkout: Checkout, wnid: str, image_id: str) -> None:
    """Change one verdict from clean to reject."""
    path = checkout.folder / "reviews" / "ada" / f"{wnid}.yaml"
    reviews = yaml.safe_load(path.read_text())
    assert reviews[wnid][image_id]["verdict"] == "clean"
    reviews[wnid][image_id] |= {"verdict": "reject", "reason": "drawing"}
    path.write_text(yaml.safe_dump(reviews, sort_keys=False))
