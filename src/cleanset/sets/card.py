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
    Provenance,
    Release,
    name_of,
)
from cleanset.sets.manifest import MANIFEST, columns
from cleanset.sets.texts import SCOOTER, Texts
from cleanset.vocabulary import EXCLUSION_REASONS, TIERS, VERDICTS, class_keys, classes_in_use, label_names


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
    release, texts = provenance.release, provenance.release.texts
    parts = (
        front_matter(provenance.model, counts["images"], release, reviewed=bool(release.reviewers), with_images=True),
        _summary(provenance, counts),
        loading(provenance.model),
        texts.motivation,
        _counts(counts, provenance.is_random),
        _columns(counts, texts),
        "## Rules\n\n" + "\n".join(f"- {sentence}" for sentence in provenance.readings),
        _reviews(release, selection, votes),
        *(["## Audit\n\n" + "\n\n".join(sentences(audit))] if audit else []),
        _rejects(counts),
        _short(short_classes(selection, rejected, classes, per_class)),
        _flaws(provenance.model, counts, texts, provenance.is_random),
        texts.uses,
        terms(texts),
        _maintenance(provenance),
        _scores(provenance.scored),
        _origin(provenance),
        cited(texts),
    )
    return "\n\n".join(parts) + "\n"


def card_without_images(text: str, model: str, images: int, release: Release) -> str:
    """A card for a set that is published without its images: the table is loaded, the images are made again."""
    _, _, body = text.split("---\n", 2)
    before, rest = body.split("## Loading\n", 1)
    # only the section on loading is replaced; all numbers stay those of stage export
    after = rest[rest.index(f"\n{release.texts.motivation}") :]
    matter = front_matter(model, images, release, reviewed=bool(release.reviewers), with_images=False)
    return f"{matter}\n{before}{release.texts.without_images}\n{after}"


def _summary(provenance: Provenance, counts: Mapping[str, int]) -> str:
    images = provenance.images
    source = provenance.release.texts.images if images == VALIDATION_IMAGES else "images"
    chosen = "" if provenance.is_random else f"that the model `{provenance.model}` finds easy, "
    one_thing = "show exactly one thing"
    if counts["images_relaxed"]:
        one_thing += " (or, where the tier is `relaxed`, carry several labels, the class among them)"
    notices = "".join(f"**{notice}**\n\n" for notice in provenance.notices)
    text = (
        f"# {name_of(provenance.model)}\n\n{notices}"
        f"{counts['images']:,} images of {len(provenance.classes):,} classes, up to {provenance.images_per_class} of "
        f"each, out of {images:,} {source}: those {chosen}that {one_thing}, "
        "and that carry no watermark, filter, border or noise. Whole images are the originals byte for byte; a cropped "
        "one is a PNG of a part."
    )
    if counts["rejected_box_unknown"]:
        text += (
            f"\n\nImages that are left out because they are to be cropped and nobody has drawn the box yet: "
            f"{counts['rejected_box_unknown']:,}."
        )
    return text


_FILES = """\
## Files

`manifest.csv` has a line for each image: {class_columns}, source, tier, crop box, and the SHA-256 of
source, file and pixels. `confidence` is the model's softmax probability of the class on the image as delivered,
`source_confidence` that on the whole image, both empty where they are not known; `source_check` is how the bytes of the
whole image were checked; {label_columns}, \
`reviewers` is how many people judged the image. `metadata.csv` is the same for the library
`datasets`, where the class index is the `label`; `croissant.json` describes the set to programs (Croissant 1.1);
`rejected.csv` lists the candidates that are not in it. `checksums.sha256` has the SHA-256 of these and of this card:
`sha256sum -c checksums.sha256` checks them, `cleanset verify .` the images too."""


def _columns(counts: Mapping[str, int], texts: Texts) -> str:
    text = _FILES.replace("{class_columns}", texts.class_columns).replace("{label_columns}", texts.label_columns)
    if counts["images_cropped"]:
        text += f"\n\nCropped images, whose two confidences differ: {counts['images_cropped']:,}."
    return text


def loading(model: str) -> str:
    """The section on loading a set that has its images."""
    classes = f"{len(class_keys()):,}"
    by_key = "" if classes_in_use().is_imagenet else _BY_KEY
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

The `label` of `datasets` has the names of all {classes} classes, in the order of the class indices. `datasets` turns an
image that carries an EXIF orientation; the others do not, nor did the models.{by_key}"""


_BY_KEY = """ `ImageFolder` counts as `classes.tsv` does
with

```python
keys = [line.split("\\t")[0] for line in open("classes.tsv", encoding="utf-8")][1:]
folders.target_transform = lambda label: keys.index(folders.classes[label])
```"""


def terms(texts: Texts) -> str:
    """The section on licences and the terms of the images."""
    see = f" See {texts.licence_url}" if texts.licence_url else ""
    return f"## Licences and terms\n\n{texts.licences}{see}\n\n{texts.terms_of_card}"


def cited(texts: Texts) -> str:
    """The section on what to cite, and on the funding of the set."""
    funding = "".join(f"\n- {each}" for each in texts.acknowledged)
    return f"## Citation\n\n```bibtex\n{texts.citation}\n```" + (f"\n\nFunding:\n{funding}" if funding else "")


def _counts(counts: Mapping[str, int], is_random: bool) -> str:
    top5 = "first" if is_random else "easiest"
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
        + f"\n\n`top5`: among the {top5} of its class; `reserve`: this model classifies it correctly; `relaxed`: it "
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


_EASY = (
    "**The images are easy ones.** They were chosen by the confidence of `{model}`: typical views of their class, few "
    "of them small, hidden or unusual."
)


def _flaws(model: str, counts: Mapping[str, int], texts: Texts, is_random: bool) -> str:
    flaws = [
        f"**People disagree on what is clean.** Of {texts.precedent}, 20.8 % of 17,300 ratings by "
        "strangers were negative: they took an image for modified "
        "([Fazlija et al. 2025](https://arxiv.org/abs/2507.07776), [data](https://doi.org/10.5281/zenodo.15771501)). "
        "Expect no less here: measure how people rate these images before you modify them, and compare with that.",
        *([] if is_random else [_EASY.format(model=model)]),
        *texts.flaws,
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
    what = {"lists": f"published list of {scored.name}", "scores": f"table of scores of {scored.name}"}
    if scored.source == "random":
        return (
            f"## Scores\n\nNo model was used: the images of a class are in a random order, with the seed {scored.name}."
        )
    noun = "list" if scored.source == "lists" else "table"
    lines = [
        f"- {what[scored.source]}: {scored.listed:,} images; no network was run",
        f"- SHA-256 of the {noun}: {scored.list_sha256}",
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
    "original_class": "int64", "reviewers": "int64",
    # a whole image has no box, and pandas, by which `datasets` reads CSV, has no whole numbers beside gaps
    "left": "float64", "top": "float64", "right": "float64", "bottom": "float64",
}  # fmt: skip
_WIDTH = 116


def front_matter(model: str, images: int, release: Release, *, reviewed: bool, with_images: bool) -> str:
    """The front matter of a set of `images` images. `reviewed`: by people. `with_images`: whether they lie beside it.

    Without its images, a set is read from its manifest, where the class is in the column class_index.
    """
    features = _features(with_images)
    of_source = dict(release.texts.front_matter)
    sources, tags = of_source.pop("source_datasets"), of_source.pop("tags")
    fields = {
        "pretty_name": release.about.title if release.about else name_of(model),
        **of_source,
        "annotations_creators": ["expert-generated" if reviewed else "machine-generated"],
        "language_creators": ["found"],
        "language": ["en"],
        "source_datasets": sources,
        "task_categories": ["image-classification"],
        "task_ids": ["multi-class-image-classification"],
        "size_categories": [_size(images)],
        "tags": tags,
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
    for column in columns():
        if column == "class_index":
            names = {str(index): name for index, name in enumerate(label_names())}
            name = "label" if with_images else column
            features.append({"name": name, "dtype": {"class_label": {"names": names}}})
        elif column != "file" or not with_images:
            features.append({"name": column, "dtype": _NUMBERS.get(column, "string")})
    return features
