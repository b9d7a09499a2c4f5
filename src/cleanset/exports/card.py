"""The data card of a finished set: what it holds, how it was made, its terms, how to load it."""

from collections.abc import Iterable, Mapping

import pandas as pd
import yaml

from cleanset.dataset.ilsvrc import wnids
from cleanset.exports.attribution import CITATION, LICENCE_URL, LICENCES, TERMS, TERMS_URL, name_of
from cleanset.exports.manifest import VALIDATION_IMAGES
from cleanset.exports.provenance import Provenance
from cleanset.scoring.record import ScoreRecord
from cleanset.selection.metrics import short_classes, totals
from cleanset.vocabulary import EXCLUSION_REASONS, TIERS


def card(provenance: Provenance, selection: pd.DataFrame, rejected: pd.DataFrame) -> str:
    """The card as Markdown, with the front matter that the library `datasets` and its hub read."""
    classes, per_class = provenance.classes, provenance.images_per_class
    counts = totals(selection, rejected, classes, per_class)
    parts = (
        _front_matter(provenance.model, counts["images"]),
        _summary(provenance, counts),
        _columns(counts),
        _loading(provenance.model),
        "## Rules\n\n" + "\n".join(f"- {sentence}" for sentence in provenance.readings),
        _counts(counts),
        _rejects(counts),
        _short(short_classes(selection, rejected, classes, per_class)),
        _scores(provenance.scored),
        _origin(provenance),
        f"## Licences and terms\n\n{LICENCES} See {LICENCE_URL}\n\n{TERMS} They are at {TERMS_URL}; "
        "whoever hands this set on hands them on with it.",
        f"## Citation\n\n```bibtex\n{CITATION}\n```",
    )
    return "\n\n".join(parts) + "\n"


def _front_matter(model: str, images: int) -> str:
    size = "n<1K" if images < 1_000 else "1K<n<10K" if images < 10_000 else "10K<n<100K"
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


def _summary(provenance: Provenance, counts: Mapping[str, int]) -> str:
    images = provenance.scored.images
    source = "validation images of ImageNet (ILSVRC2012)" if images == VALIDATION_IMAGES else "images"
    one_thing = "show exactly one thing"
    if counts["images_relaxed"]:
        one_thing += " (or, where the tier is `relaxed`, carry several labels, the class among them)"
    text = (
        f"# {name_of(provenance.model)}\n\n"
        f"{counts['images']:,} images of {len(provenance.classes):,} classes, up to {provenance.images_per_class} of "
        f"each, out of {images:,} {source}: those that the model `{provenance.model}` finds easy, that {one_thing}, "
        "and that carry no watermark, filter, border or noise. Whole images are the originals byte for byte; a cropped "
        "one is a PNG of a part."
    )
    if images != VALIDATION_IMAGES:
        text += (
            f"\n\n**Made from {images:,} images, not from the {VALIDATION_IMAGES:,} of ImageNet's validation set: a "
            "sample or a trial, not for a study.**"
        )
    if counts["rejected_box_unknown"]:
        text += (
            f"\n\nImages that are left out because they are to be cropped and nobody has drawn the box yet: "
            f"{counts['rejected_box_unknown']:,}."
        )
    if provenance.unreviewed_clean:
        text += "\n\n**Images that nobody has reviewed were taken for clean: a first look, not for a study.**"
    return text


def _columns(counts: Mapping[str, int]) -> str:
    text = """\
## Files

`manifest.csv` has a line for each image: class, source, tier, crop box, and the SHA-256 of source, file and pixels.
`confidence` is the model's softmax probability of the class on the image as delivered, `source_confidence` that on the
whole image; `ilsvrc_class` and `real_classes` are the original and all reassessed labels (class indices), `reviewers`
is how many people judged the image. `metadata.csv` and `croissant.json` are made from it. `checksums.sha256` has the
SHA-256 of these and of this card: `sha256sum -c checksums.sha256` checks them, `cleanset verify .` the images too."""
    if counts["images_cropped"]:
        text += f"\n\nCropped images, whose two confidences differ: {counts['images_cropped']:,}."
    return text


def _loading(model: str) -> str:
    return f"""\
## Loading

In this folder, with `cleanset` installed:

```python
import cleanset
images = cleanset.load("{model}", edition=".")
image, class_index, record = images[0]
```

or with other libraries; `ImageFolder` numbers the folders from 0 in their sorted order, which is the order of the
class indices, and leaves out a class without images:

```python
import datasets, torchvision
folders = torchvision.datasets.ImageFolder(".")
table = datasets.load_dataset("imagefolder", data_dir=".", data_files={{"validation": "**"}})["validation"]
```

`datasets` turns an image that carries an EXIF orientation; the others do not, nor did the models."""


def _counts(counts: Mapping[str, int]) -> str:
    rows = [
        ("images", counts["images"]),
        *((f"tier `{tier}`", counts[f"images_{tier}"]) for tier in TIERS),
        ("cropped", counts["images_cropped"]),
        ("classes that are full", counts["classes_full"]),
        ("classes that are short", counts["classes_short"]),
        ("classes with an image not reviewed yet", counts["classes_unsettled"]),
    ]
    return (
        "## Images\n\n"
        + _table("what", rows)
        + "\n\n`top5`: among the easiest of its class; `reserve`: this model classifies it correctly; `relaxed`: it "
        "has several labels, the class among them, which this model predicts."
    )


def _rejects(counts: Mapping[str, int]) -> str:
    rows = [(reason, counts[f"rejected_{reason}"]) for reason in EXCLUSION_REASONS if counts[f"rejected_{reason}"]]
    return "## Candidates that are not in it, by reason\n\n" + (_table("reason", rows) if rows else "None.")


def _short(short: pd.DataFrame) -> str:
    if short.empty:
        return "## Short classes\n\nNone."
    lines = [
        f"| {wnids()[row['class_index']]} | {row['kept']} | {row['candidates']} | {row['rejected'] or 'none'} |"
        for row in short.to_dict("records")
    ]
    return "\n".join(["## Short classes\n", "| class | images | candidates | not taken |", "|---|--:|--:|---|", *lines])


def _scores(scored: ScoreRecord) -> str:
    preprocessing = scored.preprocessing
    threat_model = f", threat model {scored.threat_model}" if scored.threat_model else ""
    lines = [
        f"- model: {scored.name} of {scored.source}{threat_model}",
        f"- SHA-256 of its weights: {scored.weights_sha256}",
        f"- preprocessing {preprocessing.name}: short side to {preprocessing.resize} pixels "
        f"({preprocessing.interpolation}), central {preprocessing.size} x {preprocessing.size}",
        f"- precision: {scored.precision}",
    ]
    if scored.against_float64:
        lines.append(f"- against float64: {scored.against_float64}")
    versions = ", ".join(f"{name} {number}" for name, number in sorted(scored.versions.items()))
    return "\n".join(["## Scores\n", *lines, f"- computed with {versions}"])


def _origin(provenance: Provenance) -> str:
    rows = [f"| `{each.path}` | {each.sha256} | {each.md5} |" for each in provenance.inputs]
    params = yaml.safe_dump(dict(provenance.params), default_flow_style=None, width=100).rstrip("\n")
    return "\n".join(
        [
            "## Origin\n",
            "Made from these tables and parameters. The MD5 are those of `dvc.lock` in the repository: "
            "`git log -S <MD5> -- dvc.lock` finds the commit. `data/votes` holds the verdicts on these images and "
            "on the candidates that the reviewers rejected.\n",
            "| table | SHA-256 | MD5 |",
            "|---|---|---|",
            *rows,
            f"\nParameters, with SHA-256 {provenance.params_sha256} as JSON with sorted keys and no spaces:\n",
            f"```yaml\n{params}\n```",
        ]
    )


def _table(name: str, rows: Iterable[tuple[str, int]]) -> str:
    return "\n".join([f"| {name} | number |", "|---|--:|", *(f"| {what} | {number:,} |" for what, number in rows)])
