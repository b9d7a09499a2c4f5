"""Making an edition of one's own images: its params, and the pipeline of all editions with another first stage."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from textwrap import indent
from typing import Any

import yaml
from PIL import Image

from cleanset.dataset.folder import LabelledImages
from cleanset.edition.about import About
from cleanset.edition.create import (
    IGNORED,
    TEMPLATE,
    TRAINING,
    dvc_config,
    link_code,
    project_config,
    read,
    relative,
    root_of,
)
from cleanset.edition.models import Models, with_files_of
from cleanset.edition.params import checked_params
from cleanset.errors import CleansetError
from cleanset.files import new_folder, write_text
from cleanset.parsing import parse_yaml

MIN_CROP_PIXELS = 32
"""The shortest edge of a crop, where the images are large enough."""

_PARAMS = """\
# See docs/own_images.md for what to put where.
root: {root}
protocol: as_written
dataset:
  reader: folder
  images: {images}  # a folder for each class, or any where there are labels
  labels: {labels}  # a CSV of file, class and perhaps group
  names: {names}  # a CSV of class and name
  label: real
  classes: all  # or a list of some
models: # role: where it comes from; the ensemble is exactly these
{models}
score: {{device: auto, precision: float64, batch_size: 256}}
# order of the tiers in which a class is filled: those that all models classify correctly, then those that this one does
select: {{candidates: 5, tiers: [top5, reserve]}}
review:
  policy: single
  min_reviewers: 1
  box_tolerance: 0.02
  min_crop_pixels: {min_crop_pixels}
  unreviewed: pending
  wrong_after_crop: {wrong_after_crop}
  unknown_boxes: open
  accept: [explicit, implied, default]
export:
  images_per_class: 3
  strict: false
  version: 1.0.0
  date: ""  # a day such as 2026-01-31, once it is published
  # who publishes the set, and whose images and whose licence they are
{about}
count: {{accuracy: {accuracy}, published_top1: {{}}}}
"""
_PREPROCESS = """\
  preprocess:
    desc: Measure every image, join the labels (needs the images)
    cmd: cleanset preprocess
    deps:
{deps}
      - ${{root}}/src/cleanset/dataset/VERSION
    params: [dataset]
    outs:
      - data/classes.tsv
      - data/index.parquet
      - data/locations.parquet

"""
_TRAINING_PARAMS = """\
# Training on your own images, those that no finished set has; see docs/training.md.
data:
  images: {images}  # a folder for each class, or any where there are labels
  labels: {labels}  # a CSV of file, class and perhaps group, which no part of the division splits
  held_out: sets  # images in the finished sets, and their groups, are not trained on
seed: 0
folds: 2  # parts of the images, for runs with several folds
device: auto
threads: 1
workers: 0
measures: {{}}
matrix: {{settings: {{}}, networks: {{}}, scenarios: {{}}}}
runs:
  plain: {{network: "timm:resnet18", size: 64, epochs: 5, batch: 16}}  # a first look, in minutes without a GPU
"""
_TRAINING_HEAD = """\
# Training, a DVC project of its own, which reads index and finished sets of the edition two folders up. Runs on
# scenarios need further deps, data.masks of stage data, data.generated and ../robustness/backgrounds of stage train; a
# custom network needs its module there. See docs/training.md.
"""
_OF_SCENARIOS = re.compile(r"      - (?:\$\{data\.(?:masks|generated)\}|\.\./robustness/backgrounds)\n")
_HEAD = """\
# From your images to a finished set per model: read it from top to bottom.
#
# The models are the keys of `models`. DVC knows no list inside `deps`, so intersect, count and report name a file of
# each: `cleanset models --add` and `--remove` write both, and no stage runs while the two disagree.
stages:
"""


def make_own_edition(
    folder: Path,
    images: Path,
    found: LabelledImages,
    models: Models,
    tables: Mapping[str, Path | None],
    about: About | None = None,
) -> None:
    """Make `folder` an edition of the images that were `found` in the folder `images`; it is outside of both.

    `tables`: the files labels, names and scores as given, which are copied; `about` goes into the params. Everything
    is made, or nothing. Raises CleansetError if the folder is not empty, or lies among the images.
    """
    if folder.resolve().is_relative_to(images.resolve()):
        raise CleansetError(f"{folder}: among the images in {images}; expected a new folder outside of it")
    names = {key: f"{key}{path.suffix}" for key, path in tables.items() if path is not None}
    values = {
        "root": root_of(folder),
        "images": relative(images, folder),
        "labels": names.get("labels"),
        "names": names.get("names"),
        "models": {role: model.model_dump(exclude_none=True) for role, model in models.items()},
        "min_crop_pixels": min_crop_pixels(images, found),
        "wrong_after_crop": "accept" if any(model.is_list for model in models.values()) else "reject",
        "accuracy": all(model.source != "random" for model in models.values()),
    }
    said = {"about": about.model_dump(exclude_unset=True) if about else None}
    block = yaml.safe_dump(said, sort_keys=False, allow_unicode=True, width=10_000).rstrip("\n")
    params = _PARAMS.format(**{key: _flow(value) for key, value in values.items()}, about=indent(block, "  "))
    checked_params(parse_yaml(params, "params.yaml"), "params.yaml")
    training = _TRAINING_PARAMS.format(
        images=_flow(relative(images, folder / TRAINING)),
        labels=_flow(f"../../{names['labels']}" if "labels" in names else None),
    )
    inputs = [values["images"], *(names[key] for key in ("labels", "names") if key in names)]
    config = re.sub(r"    remote = .*\n|\['remote(?s:.*)\Z", "", dvc_config(folder.resolve()))
    with new_folder(folder) as partial:
        for name in ("reviews", "data", ".dvc"):
            (partial / name).mkdir(parents=True)
        for name in (".dvcignore", ".dvc/.gitignore"):
            shutil.copyfile(TEMPLATE / name, partial / name)
        for key, name in names.items():
            shutil.copyfile(Path(str(tables[key])), partial / name)
        write_text(partial / "params.yaml", params)
        write_text(partial / "dvc.yaml", with_files_of(pipeline(read(TEMPLATE / "dvc.yaml"), inputs), models))
        write_text(partial / ".dvc" / "config", config)
        write_text(partial / "reviews" / ".gitkeep", "")
        write_text(partial / ".gitignore", IGNORED)
        for name in (".dvcignore", ".gitignore", ".dvc/.gitignore", ".dvc/plots/line_per_part.json"):
            (partial / TRAINING / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(TEMPLATE / TRAINING / name, partial / TRAINING / name)
        write_text(partial / TRAINING / ".dvc" / "config", project_config(config, folder.resolve(), TRAINING))
        write_text(partial / TRAINING / "params.yaml", training)
        write_text(partial / TRAINING / "dvc.yaml", training_pipeline(has_labels="labels" in names))
        link_code(partial)


def pipeline(text: str, inputs: list[Any]) -> str:
    """The dvc.yaml of all editions with a stage preprocess that reads these paths."""
    deps = "\n".join(f"      - {_flow(each)}" for each in inputs)
    text = re.sub(r"(?s)\A.*?^stages:\n  preprocess:.*?\n\n", _HEAD + _PREPROCESS.format(deps=deps), text, flags=re.M)
    # raw.md5 has the checksums of archives, which there are none of
    return text.replace("needs the archives", "needs the images").replace("      - raw.md5\n", "")


def training_pipeline(*, has_labels: bool) -> str:
    """The dvc.yaml of training studies without what scenarios need, and with the table of labels if there is any."""
    text = _OF_SCENARIOS.sub("", read(TEMPLATE / TRAINING / "dvc.yaml"))
    text = re.sub(r"(?s)\A.*?^vars:", f"{_TRAINING_HEAD}vars:", text, flags=re.M)
    return text.replace("${data.images}\n", "${data.images}\n      - ${data.labels}\n") if has_labels else text


def min_crop_pixels(images: Path, found: LabelledImages) -> int:
    """The shortest edge that a crop may have: 32 pixels, or half the shortest edge of any image if that is less."""
    shortest = 2 * MIN_CROP_PIXELS
    for location in found.locations.values():
        try:
            with Image.open(location.path) as image:  # the header alone
                shortest = min(shortest, *image.size)
        except Exception:  # stage preprocess names what cannot be read
            continue
    return max(1, shortest // 2)


def _flow(value: object) -> str:
    """A value as YAML in one line; of a table, a line for each key."""
    if isinstance(value, dict):
        return "\n".join(f"  {_flow(key)}: {_flow_table(each)}" for key, each in value.items())
    return (
        yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10_000).removesuffix("...\n").strip()
    )


def _flow_table(table: object) -> str:
    return yaml.safe_dump(table, default_flow_style=True, allow_unicode=True, sort_keys=False, width=10_000).strip()
