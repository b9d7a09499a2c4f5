"""imagenet-published/ as DVC runs it, on an index of all image ids without any image, up to stage count."""

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import pytest
import yaml

from cleanset.classes import imagenet
from cleanset.edition.paths import Edition
from cleanset.sets.published.image_set import select_images
from cleanset.sets.published.lists import PUBLISHED_ROLES, PublishedChoice
from cleanset.tables import INDEX, LOCATIONS, SELECTION, read_table, write_table
from replay import real_labels
from tests.checkouts import Checkout

BUILT = "build/as_published"


def index_of(labels: Mapping[str, Sequence[int]]) -> pd.DataFrame:
    """An index of image ids with their reassessed labels.

    What would need the images or the original labels is filled in and must not be used: one pixel, no bytes, digests
    of zeros, and the first reassessed label as the original one.
    """
    return pd.DataFrame(
        {
            "image_id": list(labels),
            "size": 0,
            "sha256": "0" * 64,
            "width": 1,
            "height": 1,
            "mode": "RGB",
            "pixels_sha256": "0" * 64,
            "ilsvrc_class": [each[0] if each else 0 for each in labels.values()],
            "real_classes": pd.Series([list(each) for each in labels.values()], dtype=object),
            "single": [len(each) == 1 for each in labels.values()],
        }
    )


@pytest.fixture(scope="module")
def published_edition(pristine: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A clone in which the edition has run in BUILT; in place of preprocess, its outputs are written and committed."""
    clone = pristine.clone(tmp_path_factory.mktemp("published") / "cleanset")
    published, edition = clone.folder / "imagenet-published", Edition(clone.folder / BUILT)
    edition.folder.mkdir(parents=True)
    for name in ("dvc.yaml", "raw.md5"):
        (edition.folder / name).write_bytes((published / name).read_bytes())
    params: Any = yaml.safe_load((published / "params.yaml").read_text())
    params["root"] = "../.."
    for model in params["models"].values():
        for key in {"file", "beyond"} & set(model):
            model[key] = os.path.relpath(published / model[key], edition.folder)
    params["review"]["unknown_boxes"] = "count"  # crops without a box are kept, for counting
    edition.params_yaml.write_text(yaml.safe_dump(params, sort_keys=False))
    shutil.copytree(clone.folder / "imagenet" / "reviews" / "scooter", edition.reviews / "scooter")
    write_table(edition.index, index_of(real_labels()), INDEX, imagenet())
    write_table(edition.locations, pd.DataFrame(columns=LOCATIONS.names), LOCATIONS, imagenet())
    clone.run("dvc", "init", "--no-scm", "--quiet", cwd=BUILT)
    clone.run("dvc", "commit", "--force", "--quiet", "preprocess", cwd=BUILT)
    clone.run("dvc", "repro", "--quiet", "count", cwd=BUILT)
    return clone


def test_the_set_as_files_has_the_same_images(published_edition: Checkout) -> None:
    """In the same places, for every model: what the package computes in memory, and the stages from tables."""
    for model in PUBLISHED_ROLES:
        in_memory = select_images(PublishedChoice(model)).filled.selection
        by_stages = read_table(Edition(published_edition.folder / BUILT).selection(model), SELECTION, imagenet())
        columns = ["class_index", "place", "image_id", "box_unknown"]
        found, expected = (set(table[columns].itertuples(index=False, name=None)) for table in (in_memory, by_stages))
        assert found == expected


def test_its_metrics_are_readable(published_edition: Checkout) -> None:
    folder = published_edition.folder / BUILT
    totals = {path.stem: json.loads(path.read_text()) for path in (folder / "metrics" / "totals").glob("*.json")}
    assert totals["images"]["norm_robust"] == 2966
    assert totals["images_box_unknown"]["norm_robust"] == 109
    assert not any(name.startswith(("accuracy", "correct")) for name in totals)
    shown = published_edition.run("dvc", "metrics", "show", cwd=BUILT).stdout
    assert max(map(len, shown.splitlines())) <= 120
    status = ["dvc", "status", "--quiet", "preprocess", "score", "score_crops", "count"]
    assert published_edition.run(*status, cwd=BUILT).returncode == 0


def test_its_scores_are_those_of_the_lists(published_edition: Checkout) -> None:
    record = json.loads((published_edition.folder / BUILT / "data" / "scores" / "norm_robust.json").read_text())
    assert (record["source"], record["listed"], len(record["beyond"])) == ("lists", 4951, 109)
    assert not {"versions", "code", "weights_sha256"} & set(record)
