"""The edition of the replay: written from the published lists without any image, run by DVC like any other."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from cleanset.dataset.ilsvrc import CLASSES, image_id
from cleanset.dataset.labels import timm_reassessed
from cleanset.edition.create import CHECKOUT
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.files import write_text
from cleanset.scoring.logits import TOP, log_odds_of
from cleanset.tables import CROP_SCORES, INDEX, SCORES, write_table
from cleanset.yaml_files import read_yaml

WITHOUT_A_LIST = np.float32(0.5)
"""The confidence below which the images of a class without a list begin."""


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


def extras_of(listed: pd.DataFrame, reviewed: Mapping[int, Sequence[str]]) -> dict[int, list[str]]:
    """By class, the reviewed images that are not in a model's list: they were taken from beyond it.

    `listed`: class_index and image_id of one model's lists.
    """
    in_list = listed.groupby("class_index")["image_id"].agg(set).to_dict()
    extras = {
        index: [name for name in names if name not in in_list.get(index, ())] for index, names in reviewed.items()
    }
    return {index: names for index, names in sorted(extras.items()) if names}


def with_extras(listed: pd.DataFrame, extras: Mapping[int, Sequence[str]]) -> pd.DataFrame:
    """The rows of one model's lists and, each next in float32 below the one before, the extras of each class.

    Columns class_index, image_id, confidence. In a class without a list they begin next below one half.
    """
    last = listed.groupby("class_index")["confidence"].min()
    rows = []
    for class_index, names in extras.items():
        confidence = np.float32(last.get(class_index, WITHOUT_A_LIST))
        for name in names:
            # the next float32 below: behind every listed image, and above every image that is not listed
            confidence = np.nextafter(confidence, np.float32(0))
            rows.append((class_index, name, confidence))
    columns = ["class_index", "image_id", "confidence"]
    return pd.concat([listed[columns], pd.DataFrame(rows, columns=columns)], ignore_index=True).astype(
        {"class_index": "int16", "confidence": "float32"}
    )


def scores_of(correct: pd.DataFrame, labels: Mapping[str, Sequence[int]]) -> pd.DataFrame:
    """A score table in which a model gets right the images of `correct`, with their confidence, and no other.

    `correct` has columns class_index, image_id, confidence. Every other image has probability 0 for a class
    other than its labels: the lists say nothing else about it.
    """
    rows = zip(correct["image_id"], correct["class_index"], correct["confidence"], strict=True)
    known = {name: (top1, confidence) for name, top1, confidence in rows}
    top1 = [known[name][0] if name in known else _no_label(each) for name, each in labels.items()]
    confidences = np.array([known[name][1] if name in known else 0 for name in labels], dtype=np.float32)
    probabilities = np.zeros((len(labels), TOP), dtype=np.float32)
    probabilities[:, 0] = confidences
    classes = (np.array(top1)[:, None] + np.arange(TOP)) % CLASSES
    return pd.DataFrame(
        {
            "image_id": list(labels),
            "top5_class": list(classes.astype(np.int16)),
            "top5_probability": list(probabilities),
            "log_odds": log_odds_of(confidences),
        }
    )


def _no_label(labels: Sequence[int]) -> int:
    """The lowest class that is not among the labels."""
    return next(index for index in range(CLASSES) if index not in labels)


STAGES = ("intersect", "select", "review_apply", "count")
"""The stages that need no image and run no model."""
PUBLISHED_REVIEWER = "scooter"
"""The reviewer whose folder in imagenet/reviews has the published verdicts."""
PUBLISHED_ROLE = "norm_robust"
"""The model that the published set was made for."""
_EXPECTED = "expected the ImageNet edition of this checkout: git checkout it"


def real_labels() -> dict[str, list[int]]:
    """The reassessed labels inside timm, by image id."""
    return {image_id(number): labels for number, labels in enumerate(timm_reassessed(), start=1)}


def write_edition(
    folder: Path, top5: pd.DataFrame, extras: Mapping[int, Sequence[str]], labels: dict[str, list[int]], **review: str
) -> Edition:
    """Write the edition in `folder`, a new one, with the published reviews of the ImageNet edition.

    `top5`: the published lists; `extras`: the images from beyond the list of PUBLISHED_ROLE, by class. `review`:
    other values in that section of params.yaml than `protocol: as_published` gives.
    """
    edition, source = Edition(folder), Edition(CHECKOUT / "imagenet")
    folder.mkdir(parents=True)
    roles = _write_files(edition, source, review)
    shutil.copytree(source.reviews / PUBLISHED_REVIEWER, edition.reviews / PUBLISHED_REVIEWER)
    write_table(edition.index, index_of(labels), INDEX)
    for role in roles:
        listed = top5.loc[top5["model"] == role, ["class_index", "image_id", "confidence"]]
        if role == PUBLISHED_ROLE:
            listed = with_extras(listed, extras)
        write_table(edition.scores(role), scores_of(listed, labels), SCORES)
        write_table(edition.crop_scores(role), pd.DataFrame(columns=CROP_SCORES.names), CROP_SCORES)
    return edition


def _write_files(edition: Edition, source: Edition, review: Mapping[str, str]) -> list[str]:
    """Write params.yaml, dvc.yaml and raw.md5; the roles of the models."""
    params: Any = read_yaml(source.params_yaml, _EXPECTED)
    pipeline: Any = read_yaml(source.dvc_yaml, _EXPECTED)
    params["root"] = Path(os.path.relpath(CHECKOUT, edition.folder.resolve())).as_posix()
    params["protocol"] = "as_published"
    params["select"] = {"candidates": 5}
    params["review"] = params["review"] | {"unknown_boxes": "count"} | review
    # the lists leave out what a model misclassifies: there is no accuracy to compute
    params["count"] = {"accuracy": False, "published_top1": {}}
    stages = {name: stage for name, stage in pipeline["stages"].items() if name in STAGES}
    write_text(edition.params_yaml, yaml.safe_dump(params, sort_keys=False))
    write_text(edition.dvc_yaml, yaml.safe_dump({"stages": stages}, sort_keys=False))
    shutil.copyfile(source.raw_md5, edition.raw_md5)
    return list(params["models"])


def reproduce(edition: Edition) -> None:
    """Run the stages by `dvc repro`. Raises CleansetError, with what DVC printed, if one fails."""
    for command in (["init", "--no-scm", "--quiet"], ["repro", "--quiet"]):
        done = subprocess.run(
            [sys.executable, "-m", "dvc", *command],
            cwd=edition.folder,
            # so that the commands of the stages find the programs of this environment
            env=os.environ | {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")] or [done.stderr.strip()]
            raise CleansetError(f"{edition.folder}: dvc {command[0]} failed: {lines[0].removeprefix('error: ')}")
