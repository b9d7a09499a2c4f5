"""The stages that DVC runs when a review changes: a model, images and weights are needed only for a new box."""

import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from cleanset.classes import imagenet
from cleanset.edition.paths import Edition
from cleanset.tables import CROP_SCORES, INDEX, SELECTION, read_table
from tests.checkouts import Checkout

pytestmark = pytest.mark.exhaustive

ROLES = ("standard", "norm_robust", "corruption_robust")
WNID = "n04254680"
CLASS_INDEX = 805


@pytest.fixture(scope="module")
def pulled(published: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A clone that pulled everything, without the images' archive and without weights."""
    checkout = published.clone(tmp_path_factory.mktemp("pulled") / "cleanset")
    checkout.run("dvc", "pull", "--quiet")
    (checkout.folder / "data" / "raw").rename(checkout.folder.parent / "raw")
    shutil.rmtree(checkout.folder / "sample" / "weights")
    return checkout


def kept_whole(checkout: Checkout) -> list[str]:
    """The whole images of the class that model standard keeps, the most confident first."""
    kept = read_table(Edition(checkout.folder).selection("standard"), SELECTION, imagenet())
    of_class = kept[(kept["class_index"] == CLASS_INDEX) & kept["crop"].isna()].sort_values("place")
    return list(of_class["image_id"])


def change(checkout: Checkout, image_id: str, **fields: Any) -> None:
    """Change ada's verdict on an image."""
    path = checkout.folder / "reviews" / "ada" / f"{WNID}.yaml"
    reviews = yaml.safe_load(path.read_text())
    reviews[WNID][image_id] |= fields
    path.write_text(yaml.safe_dump(reviews, sort_keys=False))


def error_of(checkout: Checkout, *command: str) -> str:
    done = checkout.run(*command, check=False)
    assert done.returncode != 0
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    return line


def test_a_new_box_runs_every_model(pulled: Checkout) -> None:
    edition = Edition(pulled.folder)
    image_id = kept_whole(pulled)[0]
    index = read_table(edition.index, INDEX, imagenet()).set_index("image_id")
    box = (0, 0, int(index.loc[image_id, "width"]) - 8, int(index.loc[image_id, "height"]))  # type: ignore[arg-type]
    crop = {"verdict": "crop", "reason": "border", "crop": list(box), "object_fully_visible": True}
    change(pulled, image_id, **crop)

    message = error_of(pulled, "cleanset", "review_apply", "--model", "standard")
    assert message.startswith(
        f"error: data/crop_scores/standard.parquet: no scores of {image_id} cropped to {list(box)}, which "
    )
    message = error_of(pulled, "dvc", "repro", "--single-item", "crops", "score_crops@standard")
    assert "sample/weights/standard.safetensors: missing; expected the weights of test_efficientnet" in message
    pulled.run("git", "checkout", "--quiet", "--", "sample/weights")
    message = error_of(pulled, "dvc", "repro", "--single-item", "score_crops@standard")
    assert "data/raw/ILSVRC2012_img_val.tar: missing; expected the validation images" in message

    (pulled.folder.parent / "raw").rename(pulled.folder / "data" / "raw")
    ran = pulled.stages_run()
    assert [stage for stage in ran if stage.startswith("score")] == [f"score_crops@{role}" for role in ROLES]
    assert {stage.split("@")[0] for stage in ran} == {"score_crops", "review_apply", "export", "count", "report"}
    scored = read_table(edition.crop_scores("standard"), CROP_SCORES, imagenet())
    row = scored[(scored["image_id"] == image_id) & (scored["crop"].str[2] == box[2])]
    assert len(row) == 1
    manifest = pd.read_csv(edition.export("standard") / "manifest.csv")
    kept = manifest.loc[manifest["image_id"] == image_id, ["left", "top", "right", "bottom"]]
    expected = [list(box)] if row["top5_class"].iloc[0][0] == CLASS_INDEX else []
    assert kept.to_numpy().tolist() == expected


def test_what_was_published_is_what_a_box_gives(pulled: Checkout, built: Checkout) -> None:
    """With the former reviews every output has its former bytes: nothing of a crop is left over."""
    pulled.run("git", "checkout", "--quiet", "--", "reviews")
    pulled.run("dvc", "repro", "--quiet")
    assert pulled.run("git", "status", "--porcelain").stdout == ""
    for role in ROLES:
        tables = (Path("data") / "crop_scores" / f"{role}.parquet", Path("data") / "export" / role / "manifest.csv")
        for path in tables:
            assert (pulled.folder / path).read_bytes() == (built.folder / path).read_bytes()
