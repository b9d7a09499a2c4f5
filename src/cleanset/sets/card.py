"""The data card of a finished set: what it holds, how it was made, its terms, how to load it, and its front matter."""

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd
import yaml

from cleanset.dataset.ilsvrc import VALIDATION_IMAGES
from cleanset.review.agreement import overall
from cleanset.review.audit import AuditResult, sentences
from cleanset.review.store import verdicts_by_image, verdicts_by_reviewer
from cleanset.scoring.record import ListRecord, ScoreRecord
from cleanset.selection.metrics import short_classes, totals
from cleanset.sets.description import (
    LICENCE_URL,
    SCOOTER,
    TERMS,
    TERMS_URL,
    Provenance,
    Release,
    citation,
    licences,
    name_of,
)
from cleanset.sets.manifest import COLUMNS, MANIFEST
from cleanset.vocabulary import EXCLUSION_REASONS, TIERS, VERDICTS, class_keys, label_names


def card(
    provenance: Provenance,
    selection: pd.DataFrame,
    rejected: pd.DataFrame,
    votes: pd.DataFrame,
    audit: AuditResult | None = None,
) -> str:
    """The card as Markdown, with the front matter that the library `datasets` and its hub read.

    Its sections answer the questions of Datasheets for Datasets (Gebru et al. 2021). `selection`, `rejected` and
    `votes` are the tables of these names; `audit` is that of the set, if there is one.
    """
    classes, per_class = provenance.classes, provenance.images_per_class
    counts = totals(selection, rejected, classes, per_class)
    release = provenance.release
    parts = (
        front_matter(provenance.model, counts["images"], bool(release.reviewers), with_images=True),
        _summary(provenance, counts),
        loading(provenance.model),
        _MOTIVATION,
        _counts(counts),
        _columns(counts),
        "## Rules\n\n" + "\n".join(f"- {sentence}" for sentence in provenance.readings),
        _reviews(release, selection, votes),
        *(["## Audit\n\n" + "\n\n".join(sentences(audit))] if audit else []),
        _rejects(counts),
        _short(short_classes(selection, rejected, classes, per_class)),
        _flaws(provenance.model, counts),
        USES,
        terms(release),
        _maintenance(provenance),
        _scores(provenance.scored),
        _origin(provenance),
        cited(release),
    )
    return "\n\n".join(parts) + "\n"


def card_without_images(text: str, model: str, images: int, release: Release) -> str:
    """A card for a set that is published without its images: the table is loaded, the images are made again."""
    _, _, body = text.split("---\n", 2)
    before, rest = body.split("## Loading\n", 1)
    # only the section on loading is replaced; all numbers stay those of stage export
    after = rest[rest.index(f"\n{_MOTIVATION}") :]
    matter = front_matter(model, images, bool(release.reviewers), with_images=False)
    return f"{matter}\n{before}{_LOADING_WITHOUT_IMAGES}\n{after}"


_MOTIVATION = """\
## Motivation

Attacks on classifiers, and the people who judge whether an attacked image looks modified, need images to start from
that are beyond doubt: of one thing, classified correctly, and without anything that people would take for a
modification. ImageNet's validation images are not: they have watermarks, borders, filters, collages and second objects.
This set is the part of them that a model is sure of and that people have looked through."""

_LOADING_WITHOUT_IMAGES = """\
## Loading

The images are not here: ImageNet's terms leave it to you to get them. With your own copy of the validation images (the
tar, or a folder of any layout) and `cleanset` installed, in this folder:

```sh
cleanset rebuild --manifest manifest.csv --images ILSVRC2012_img_val.tar --out ../images
```

makes every image byte for byte. The table alone:

```python
import os, datasets
table = datasets.load_dataset(os.getcwd())["validation"]
```
"""

USES = """\
## Uses

Made for studies that start from clean images: adversarial examples and how people see them, corruptions, certified
robustness, explanations. Not for:

- **how accurate a model is**: the images are those that one model is surest of, so that its own accuracy on them is
  100 % by construction, or nearly, and that of similar models is too high. For accuracy take all 50,000 images;
- **comparing models** by accuracy on a set that was chosen by one of them;
- **training**, which the set is too small for, and which would spoil ImageNet's validation images for every later test;
- anything commercial, which ImageNet's terms do not allow, or conclusions about the people in the images."""


def _summary(provenance: Provenance, counts: Mapping[str, int]) -> str:
    images = provenance.images
    source = "validation images of ImageNet (ILSVRC2012)" if images == VALIDATION_IMAGES else "images"
    one_thing = "show exactly one thing"
    if counts["images_relaxed"]:
        one_thing += " (or, where the tier is `relaxed`, carry several labels, the class among them)"
    notices = "".join(f"**{notice}**\n\n" for notice in provenance.notices)
    text = (
        f"# {name_of(provenance.model)}\n\n{notices}"
        f"{counts['images']:,} images of {len(provenance.classes):,} classes, up to {provenance.images_per_class} of "
        f"each, out of {images:,} {source}: those that the model `{provenance.model}` finds easy, that {one_thing}, "
        "and that carry no watermark, filter, border or noise. Whole images are the originals byte for byte; a cropped "
        "one is a PNG of a part."
    )
    if counts["rejected_box_unknown"]:
        text += (
            f"\n\nImages that are left out because they are to be cropped and nobody has drawn the box yet: "
            f"{counts['rejected_box_unknown']:,}."
        )
    return text


def _columns(counts: Mapping[str, int]) -> str:
    text = """\
## Files

`manifest.csv` has a line for each image: class (wnid, class index, name), source, tier, crop box, and the SHA-256 of
source, file and pixels. `confidence` is the model's softmax probability of the class on the image as delivered,
`source_confidence` that on the whole image, both empty where they are not known; `source_check` is how the bytes of the
whole image were checked; `ilsvrc_class` and `real_classes` are the original and all reassessed
labels (class indices), `reviewers` is how many people judged the image. `metadata.csv` is the same for the library
`datasets`, where the class index is the `label`; `croissant.json` describes the set to programs (Croissant 1.1);
`rejected.csv` lists the candidates that are not in it. `checksums.sha256` has the SHA-256 of these and of this card:
`sha256sum -c checksums.sha256` checks them, `cleanset verify .` the images too."""
    if counts["images_cropped"]:
        text += f"\n\nCropped images, whose two confidences differ: {counts['images_cropped']:,}."
    return text


def loading(model: str) -> str:
    """The section on loading a set that has its images."""
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
import os, datasets, torchvision
folders = torchvision.datasets.ImageFolder(".")
table = datasets.load_dataset(os.getcwd())["validation"]
```

The `label` of `datasets` has the names of all 1,000 classes, in the order of the class indices. `datasets` turns an
image that carries an EXIF orientation; the others do not, nor did the models."""


def terms(release: Release) -> str:
    """The section on licences and ImageNet's terms."""
    return (
        f"## Licences and terms\n\n{licences(release.reviewers)} See {LICENCE_URL}\n\n{TERMS} They are at {TERMS_URL}; "
        "whoever hands this set on hands them on with it."
    )


def cited(release: Release) -> str:
    """The section on what to cite."""
    return f"## Citation\n\n```bibtex\n{citation(release.reviewers)}\n```"


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


def _reviews(release: Release, selection: pd.DataFrame, votes: pd.DataFrame) -> str:
    parts = ["## Reviews", release.review]
    by_reviewer = verdicts_by_reviewer(votes)
    if not by_reviewer:
        return "\n\n".join([*parts, "Nobody has reviewed these images."])
    head = ["| reviewer | " + " | ".join(VERDICTS) + " |", "|---" + "|--:" * len(VERDICTS) + "|"]
    lines = [f"| `{name}` | {' | '.join(f'{n:,}' for n in given.values())} |" for name, given in by_reviewer.items()]
    parts += ["Verdicts on these images and on the candidates that were rejected:", "\n".join([*head, *lines])]
    agreement = overall(verdicts_by_image(votes))
    if agreement.agreement is None:
        found = "No image was judged by more than one reviewer, so that their agreement is not known."
    else:
        kappa = "" if agreement.kappa is None else f", Fleiss' kappa is {agreement.kappa:.2f}"
        found = (
            f"Images judged by two or more: {agreement.images:,}. Of two verdicts on one of them "
            f"{100 * agreement.agreement:.1f} % are the same{kappa}."
        )
    unseen = len(set(selection["image_id"]) - set(votes["image_id"]))
    parts.append(f"{found} Images of this set that nobody has judged: {f'{unseen:,}' if unseen else 'none'}.")
    if SCOOTER in by_reviewer:
        parts.append(
            "The verdicts of `scooter` are those of the authors of SCOOTER, read from the notes that they published."
        )
    return "\n\n".join(parts)


def _flaws(model: str, counts: Mapping[str, int]) -> str:
    flaws = [
        "**People disagree on what is clean.** Of the set that the authors of this procedure made by hand (ImageNet "
        "S-R50-N), 20.8 % of 17,300 ratings by strangers were negative: they took an image for modified "
        "([Fazlija et al. 2025](https://arxiv.org/abs/2507.07776), [data](https://doi.org/10.5281/zenodo.15771501)). "
        "Expect no less here: measure how people rate these images before you modify them, and compare with that.",
        f"**The images are easy ones.** They were chosen by the confidence of `{model}`: typical views of their class, "
        "few of them small, hidden or unusual.",
        "**Labels are as good as their source.** A label is one of the reassessed labels (Beyer et al. 2020), which "
        "have errors of their own, and some classes of ImageNet overlap.",
        "**ImageNet's images are photographs from the web, from before 2012**, mostly from North America and Europe "
        "(Shankar et al. 2017, arXiv:1711.08536); people are in some of them, and were not asked. Nothing was added "
        "about anyone.",
    ]
    if counts["images_cropped"]:
        flaws.append(
            "**Cropped images differ from whole ones**: they are smaller, often less wide, and PNG instead of JPEG. "
            "The columns `left` to `bottom` tell them apart."
        )
    return "## Known flaws\n\n" + "\n".join(f"- {flaw}" for flaw in flaws)


def _maintenance(provenance: Provenance) -> str:
    release = provenance.release
    date = f" of {release.date}" if release.date else ", not published yet"
    if provenance.scored is None:
        date = ", made from published lists"
    return (
        f"## Maintenance\n\nVersion {release.version}{date}. A version is never changed: an image that turns out to be "
        "flawed is left out of the next one, and `cleanset diff OLD NEW` lists what has changed, by class and reason. "
        "Report a flaw to whoever published the set, by the image id."
    )


def _short(short: pd.DataFrame) -> str:
    if short.empty:
        return "## Short classes\n\nNone."
    lines = [
        f"| {_name(row['class_index'])} | {row['kept']} | {row['candidates']} | {row['rejected'] or 'none'} |"
        for row in short.to_dict("records")
    ]
    return "\n".join(["## Short classes\n", "| class | images | candidates | not taken |", "|---|--:|--:|---|", *lines])


def _name(class_index: int) -> str:
    return f"{class_keys()[class_index]} {label_names()[class_index]}"


def _scores(scored: ScoreRecord | ListRecord | None) -> str:
    if scored is None:
        return _SCORES_OF_LISTS
    if isinstance(scored, ListRecord):
        return _scores_of_list(scored)
    preprocessing = scored.preprocessing
    threat_model = f", threat model {scored.threat_model}" if scored.threat_model else ""
    lines = [
        f"- model: {scored.name} of {scored.source}{threat_model}",
        f"- SHA-256 of its weights: {scored.weights_sha256}",
        f"- preprocessing {preprocessing.name}: {preprocessing.description}",
        f"- precision: {scored.precision}",
    ]
    if scored.against_float64:
        lines.append(f"- against float64: {scored.against_float64}")
    versions = ", ".join(f"{name} {number}" for name, number in sorted(scored.versions.items()))
    return "\n".join(["## Scores\n", *lines, f"- computed with {versions}"])


def _scores_of_list(scored: ListRecord) -> str:
    lines = [
        f"- published list of {scored.name}: {scored.listed:,} images; no network was run",
        f"- SHA-256 of the list: {scored.list_sha256}",
    ]
    if scored.beyond:
        lines.append(
            f"- images from beyond the list, whose confidence is not known and left empty: {len(scored.beyond):,}"
        )
    if scored.beyond_sha256:
        lines.append(f"- SHA-256 of the list of these: {scored.beyond_sha256}")
    lines.append("- the confidence of a crop is not known and left empty")
    return "\n".join(["## Scores\n", *lines])


_SCORES_OF_LISTS = """\
## Scores

No network was run. The confidences are those of the published lists, rounded to float32; an image that was taken from
beyond a list has none, nor has a crop."""

_ORIGIN_OF_STAGES = """\
Made from these tables and parameters. The MD5 are those of `dvc.lock` in the repository: `git log -S <MD5> -- \
dvc.lock` finds the commit. `data/votes` holds the verdicts on these images and on the candidates that the reviewers \
rejected.
"""

_ORIGIN_OF_LISTS = """\
Made from these published files and parameters, without the stages of `dvc.yaml`. The digests of a folder are those of \
its files one after the other, in the order of their names.
"""


def _origin(provenance: Provenance) -> str:
    rows = [f"| `{each.path}` | {each.sha256} | {each.md5} |" for each in provenance.inputs]
    params = yaml.safe_dump(dict(provenance.params), default_flow_style=None, width=100).rstrip("\n")
    return "\n".join(
        [
            "## Origin\n",
            _ORIGIN_OF_LISTS if provenance.scored is None else _ORIGIN_OF_STAGES,
            "| table | SHA-256 | MD5 |",
            "|---|---|---|",
            *rows,
            f"\nParameters, with SHA-256 {provenance.params_sha256} as JSON with sorted keys and no spaces:\n",
            f"```yaml\n{params}\n```",
        ]
    )


def _table(name: str, rows: Iterable[tuple[str, int]]) -> str:
    return "\n".join([f"| {name} | number |", "|---|--:|", *(f"| {what} | {number:,} |" for what, number in rows)])


_NUMBERS = {
    "rank": "int64", "confidence": "float64", "source_confidence": "float64", "ilsvrc_class": "int64",
    "reviewers": "int64",
    # a whole image has no box, and pandas, by which `datasets` reads CSV, has no whole numbers beside gaps
    "left": "float64", "top": "float64", "right": "float64", "bottom": "float64",
}  # fmt: skip
_WIDTH = 116


def front_matter(model: str, images: int, reviewed: bool, *, with_images: bool) -> str:
    """The front matter of a set of `images` images. `reviewed`: by people. `with_images`: whether they lie beside it.

    Without its images, a set is read from its manifest, where the class is in the column class_index.
    """
    features = _features(with_images)
    fields = {
        "pretty_name": name_of(model),
        "license": "other",
        "license_name": "imagenet",
        "license_link": TERMS_URL,
        "annotations_creators": ["expert-generated" if reviewed else "machine-generated"],
        "language_creators": ["found"],
        "language": ["en"],
        "source_datasets": ["extended|imagenet-1k"],
        "task_categories": ["image-classification"],
        "task_ids": ["multi-class-image-classification"],
        "size_categories": [_size(images)],
        "tags": ["imagenet", "ilsvrc2012", "robustness", "adversarial-examples", "human-verified"],
        "configs": [
            {
                "config_name": "default",
                "data_files": [{"split": "validation", "path": "**" if with_images else MANIFEST}],
                # here they are read by; in dataset_info they are shown by
                "features": features,
            }
        ],
        "dataset_info": {"config_name": "default", "features": features},
    }
    text = yaml.safe_dump(fields, sort_keys=False, default_flow_style=None, width=_WIDTH, allow_unicode=True)
    return f"---\n{text}---"


def _size(images: int) -> str:
    limits = {1_000: "n<1K", 10_000: "1K<n<10K", 100_000: "10K<n<100K"}
    return next(name for limit, name in limits.items() if images < limit)


def _features(with_images: bool) -> list[dict[str, Any]]:
    features: list[dict[str, Any]] = [{"name": "image", "dtype": "image"}] if with_images else []
    for column in COLUMNS:
        if column == "class_index":
            names = {str(index): name for index, name in enumerate(label_names())}
            name = "label" if with_images else column
            features.append({"name": name, "dtype": {"class_label": {"names": names}}})
        elif column != "file" or not with_images:
            features.append({"name": column, "dtype": _NUMBERS.get(column, "string")})
    return features
