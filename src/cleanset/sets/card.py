"""The data card of a finished set: what it is, how it was made, its terms, how to load it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from cleanset.counting import REASONS, short_classes, totals
from cleanset.ilsvrc import wnids
from cleanset.scoring.exactness import Distance
from cleanset.sets.terms import CITATION, TERMS, TERMS_URL, name_of
from cleanset.tiers import TIERS

PICTURES = 50_000
"""In ILSVRC2012's validation set."""


@dataclass(frozen=True, slots=True)
class Made:
    """How a set was made: for which model and classes, from how much, and with what the scores were computed.

    `unreviewed_clean`: pictures that nobody had looked at were taken for clean. `scored` is the content
    of data/scores/<model>.json.
    """

    model: str
    classes: Sequence[int]
    images_per_class: int
    unreviewed_clean: bool
    scored: Mapping[str, Any]


def card(made: Made, selection: pd.DataFrame, rejected: pd.DataFrame) -> str:
    """The card as Markdown, with the front matter that the library `datasets` and its hub read."""
    counts = totals(selection, rejected, made.classes, made.images_per_class)
    short = short_classes(selection, rejected, made.classes, made.images_per_class)
    parts = (
        _front_matter(made.model, counts["pictures"]),
        _what(made, counts),
        _loading(made.model),
        _counts(counts),
        _rejects(counts),
        _short(short),
        _scores(made.scored),
        f"## Terms\n\n{TERMS} They stand at {TERMS_URL}; who hands this set on hands them on with it.",
        f"## Citation\n\n```bibtex\n{CITATION}\n```",
    )
    return "\n\n".join(parts) + "\n"


def _front_matter(model: str, pictures: int) -> str:
    size = "n<1K" if pictures < 1_000 else "1K<n<10K" if pictures < 10_000 else "10K<n<100K"
    return f"""\
---
pretty_name: {name_of(model)}
license: other
license_name: imagenet
license_link: {TERMS_URL}
task_categories: [image-classification]
size_categories: ["{size}"]
configs:
- config_name: default
  data_files:
  - split: validation
    path: "**"
---"""


def _what(made: Made, counts: Mapping[str, int]) -> str:
    pictures = made.scored["pictures"]
    source = "validation pictures of ImageNet (ILSVRC2012)" if pictures == PICTURES else "pictures"
    text = (
        f"# {name_of(made.model)}\n\n"
        f"{counts['pictures']:,} pictures of {len(made.classes):,} classes, up to {made.images_per_class} of each, "
        f"out of {pictures:,} {source}: "
        f"those that the model `{made.model}` finds easy, that show exactly one thing, and that carry no watermark, "
        "filter, border or noise. Whole pictures are the originals byte for byte; a cropped one is a PNG of a part. "
        "`manifest.csv` has a line for each: class, source, crop box, and the SHA-256 of source, file and pixels. "
        "`cleanset verify` holds the folder against it."
    )
    if pictures != PICTURES:
        text += (
            f"\n\n**Made from {pictures:,} pictures, not from the {PICTURES:,} of ImageNet's validation set: a sample "
            "or a trial, not for a study.**"
        )
    if made.unreviewed_clean:
        text += "\n\n**Pictures that nobody had looked at were taken for clean: a first look, not for a study.**"
    return text


def _loading(model: str) -> str:
    return f"""\
## Loading

In this folder, with `cleanset` installed:

```python
import cleanset
pictures = cleanset.load("{model}", edition=".")
image, class_index, record = pictures[0]
```

or with what is at hand; `ImageFolder` numbers the folders from 0 in their sorted order, which is the order of the
class indices, and leaves out a class without pictures:

```python
import datasets, torchvision
folders = torchvision.datasets.ImageFolder(".")
table = datasets.load_dataset("imagefolder", data_dir=".", data_files={{"validation": "**"}})["validation"]
```

`datasets` turns a picture that carries an EXIF orientation; the others do not, nor did the models."""


def _counts(counts: Mapping[str, int]) -> str:
    rows = [
        ("pictures", counts["pictures"]),
        *((f"tier `{tier}`", counts[f"pictures_{tier}"]) for tier in TIERS),
        ("cropped", counts["pictures_cropped"]),
        ("classes that are full", counts["classes_full"]),
        ("classes that are short", counts["classes_short"]),
        ("classes with a picture still to be reviewed", counts["classes_unsettled"]),
    ]
    return (
        "## Pictures\n\n"
        + _table("what", rows)
        + "\n\n`top5`: among the easiest that all models get right; `reserve`: this model gets it right; `relaxed`: it "
        "has several labels, one of them the class."
    )


def _rejects(counts: Mapping[str, int]) -> str:
    rows = [(reason, counts[f"rejected_{reason}"]) for reason in REASONS if counts[f"rejected_{reason}"]]
    return "## Candidates that are not in it, by reason\n\n" + (_table("reason", rows) if rows else "None.")


def _short(short: pd.DataFrame) -> str:
    if short.empty:
        return "## Short classes\n\nNone."
    lines = [
        f"| {wnids()[row['class_index']]} | {row['kept']} | {row['candidates']} | {row['rejected'] or 'none'} |"
        for row in short.to_dict("records")
    ]
    return "\n".join(
        ["## Short classes\n", "| class | pictures | candidates | not taken |", "|---|--:|--:|---|", *lines]
    )


def _scores(scored: Mapping[str, Any]) -> str:
    preprocessing = scored["preprocessing"]
    threat_model = f", threat model {scored['threat_model']}" if "threat_model" in scored else ""
    lines = [
        f"- model: {scored['name']} of {scored['source']}{threat_model}",
        f"- SHA-256 of its weights: {scored['weights_sha256']}",
        f"- preprocessing {preprocessing['name']}: short side to {preprocessing['resize']} pixels "
        f"({preprocessing['interpolation']}), central {preprocessing['size']} x {preprocessing['size']}",
        f"- precision: {scored['precision']}",
    ]
    if scored["against_float64"]:
        lines.append(f"- against float64: {Distance(**scored['against_float64'])}")
    versions = ", ".join(f"{name} {number}" for name, number in sorted(scored["versions"].items()))
    return "\n".join(["## Scores\n", *lines, f"- computed with {versions}"])


def _table(name: str, rows: Iterable[tuple[str, int]]) -> str:
    return "\n".join([f"| {name} | number |", "|---|--:|", *(f"| {what} | {number:,} |" for what, number in rows)])
