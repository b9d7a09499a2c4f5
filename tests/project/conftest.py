"""The sample before and after a review, for all tests of what a changed review changes."""

import csv
import json
from pathlib import Path

import pytest
import yaml

from tests.checkouts import Checkout
from tests.once import once

WNID = "n07734744"


@pytest.fixture(scope="session")
def reviewed(published: Checkout, tmp_path_factory: pytest.TempPathFactory) -> tuple[Checkout, str, list[str]]:
    """A clone that pulls, rejects an image of a class that has no other, reproduces and commits; not to be changed.

    With it, the class of the image and the stages that ran. The tags v1 and v2 are the states before and after.
    """

    def make(folder: Path) -> None:
        checkout = published.clone(folder / "cleanset")
        checkout.run("dvc", "pull", "--quiet")
        checkout.run("git", "tag", "v1")
        reject_image(checkout)
        (folder / "ran.json").write_text(json.dumps(checkout.stages_run()))
        checkout.commit("Reject an image")
        checkout.run("git", "tag", "v2")

    folder = once(tmp_path_factory, "reviewed", make)
    return Checkout(folder / "cleanset"), WNID, json.loads((folder / "ran.json").read_text())


def reject_image(checkout: Checkout) -> None:
    """Change the review of the first image of the class from clean to rejected."""
    with (checkout.folder / "data" / "export" / "standard" / "manifest.csv").open(newline="") as file:
        image_id = next(row["image_id"] for row in csv.DictReader(file) if row["wnid"] == WNID)
    path = next((checkout.folder / "reviews").glob(f"*/{WNID}.yaml"))
    reviews = yaml.safe_load(path.read_text())
    assert reviews[WNID][image_id]["verdict"] == "clean"
    reviews[WNID][image_id] |= {"verdict": "reject", "reason": "drawing"}
    path.write_text(yaml.safe_dump(reviews, sort_keys=False))
