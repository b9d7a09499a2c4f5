"""The edition of the replay: written without any image, run by DVC as any other."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from cleanset.dataset.ilsvrc import image_id
from cleanset.dataset.labels import timm_reassessed
from cleanset.edition.create import CHECKOUT
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.files import write_text
from cleanset.published.replay import index_of, scores_of, with_extras
from cleanset.tables import CROP_SCORES, INDEX, SCORES, write_table
from cleanset.yaml_files import read_yaml

STAGES = ("intersect", "select", "review_apply", "count")
"""The stages that need no image and run no model."""
PUBLISHED_REVIEWER = "scooter"
"""Whose folder in imagenet/reviews has the published verdicts."""
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
            env=os.environ | {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")] or [done.stderr.strip()]
            raise CleansetError(f"{edition.folder}: dvc {command[0]} failed: {lines[0].removeprefix('error: ')}")
