"""The edition of the replay: imagenet-published/ on an index without images, run by DVC like any other."""

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
from cleanset.exports.description import SCOOTER
from cleanset.files import write_text
from cleanset.tables import INDEX, LOCATIONS, write_table
from cleanset.yaml_files import read_yaml

PUBLISHED_EDITION = Edition(CHECKOUT / "imagenet-published")
"""The edition that is replayed."""
LAST_STAGE = "count"
"""The replay ends with this stage; export and report need the images."""
_EXPECTED = "expected the published edition of this checkout: git checkout it"


def real_labels() -> dict[str, list[int]]:
    """The reassessed labels inside timm, by image id."""
    return {image_id(number): labels for number, labels in enumerate(timm_reassessed(), start=1)}


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


def write_edition(folder: Path, labels: Mapping[str, Sequence[int]]) -> Edition:
    """Write the published edition in `folder`, a new one, with an index of these labels and the published reviews.

    In place of stage preprocess, whose outputs are written and committed here. Crops without a box are kept, for
    counting.
    """
    edition = Edition(folder)
    folder.mkdir(parents=True)
    for path in (PUBLISHED_EDITION.dvc_yaml, PUBLISHED_EDITION.raw_md5):
        shutil.copy(path, folder)
    _write_params(edition)
    shutil.copytree(PUBLISHED_EDITION.reviews / SCOOTER, edition.reviews / SCOOTER)
    write_table(edition.index, index_of(labels), INDEX)
    write_table(edition.locations, pd.DataFrame(columns=LOCATIONS.names), LOCATIONS)
    _dvc(edition, "init", "--no-scm", "--quiet")
    _dvc(edition, "commit", "--force", "--quiet", "preprocess")
    return edition


def _write_params(edition: Edition) -> None:
    params: Any = read_yaml(PUBLISHED_EDITION.params_yaml, _EXPECTED)
    params["root"] = _relative(edition, CHECKOUT)
    for model in params["models"].values():
        for key in ("file", "beyond"):
            if key in model:
                model[key] = _relative(edition, PUBLISHED_EDITION.path(model[key]))
    params["review"]["unknown_boxes"] = "count"
    write_text(edition.params_yaml, yaml.safe_dump(params, sort_keys=False))


def _relative(edition: Edition, path: Path) -> str:
    return Path(os.path.relpath(path.resolve(), edition.folder.resolve())).as_posix()


def copy_edition(edition: Edition, folder: Path, **review: str) -> Edition:
    """Copy an edition that has run to a new folder, with other values in section `review` of its params."""
    copied = Edition(Path(shutil.copytree(edition.folder, folder)))
    params: Any = read_yaml(copied.params_yaml, _EXPECTED)
    params["review"] |= review
    params["root"] = _relative(copied, CHECKOUT)
    write_text(copied.params_yaml, yaml.safe_dump(params, sort_keys=False))
    return copied


def reproduce(edition: Edition) -> None:
    """Run the stages up to LAST_STAGE by `dvc repro`. Raises CleansetError, with DVC's message, if one fails."""
    _dvc(edition, "repro", "--quiet", LAST_STAGE)


def _dvc(edition: Edition, *command: str) -> None:
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
