"""The data card of a finished set: what fills in its text, templates/card.jinja, and its front matter."""

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd
import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from cleanset.classes import ClassTable
from cleanset.image_ids import VALIDATION_IMAGES
from cleanset.plumbing.files import sha256
from cleanset.plumbing.json_files import JsonObject
from cleanset.plumbing.markup import markdown_fence, markdown_text
from cleanset.review.agreement import overall
from cleanset.review.audit import AuditResult, sentences
from cleanset.review.vote_table import verdicts_by_image, verdicts_by_reviewer
from cleanset.scoring.record import ListRecord
from cleanset.selection.metrics import short_classes, totals
from cleanset.sets.artefact import artefact_of
from cleanset.sets.description import UNPUBLISHED, Provenance, Release, in_random_order, name_of, notices_of
from cleanset.sets.manifest import Entry, ManifestColumn, ManifestForm, column_of, form_of, manifest_csv
from cleanset.sets.texts import TEMPLATES_OF_SETS, Texts, filled, templates
from cleanset.vocabulary import VERDICTS


def card(
    provenance: Provenance,
    selection: pd.DataFrame,
    rejected: pd.DataFrame,
    votes: pd.DataFrame,
    audit: AuditResult | None = None,
) -> str:
    """The card as Markdown, with the front matter that the library `datasets` and its hub read.

    `selection`, `rejected` and `votes` are the tables of these names; `audit` belongs to the set, if any.
    """
    classes = provenance.classes
    per_class = provenance.images_per_class
    scored = provenance.scored
    counts = totals(selection, rejected, classes, per_class)
    params = yaml.safe_dump(dict(provenance.params), default_flow_style=None, width=100).rstrip("\n")
    return _rendered(
        provenance.model,
        provenance.release,
        manifest_sha256=provenance.manifest_sha256,
        is_rebuilt=False,
        is_random=provenance.is_random,
        # of an empty set no order is known, and its manifest has all columns
        form=ManifestForm(
            has_tiers=not (provenance.is_random and counts["images"]),
            has_studies=bool(provenance.studies),
            further=provenance.further,
        ),
        denied=provenance.denied,
        is_list=isinstance(scored, ListRecord),
        reviewed=bool(provenance.release.reviewers),
        notices=provenance.notices,
        images=counts["images"],
        classes_of_set=selection["class_index"].nunique(),
        provenance=provenance,
        scored=scored,
        source_of_images=provenance.release.texts["images"] if provenance.images == VALIDATION_IMAGES else "images",
        counts=counts,
        undecided=int(rejected["open"].sum()),
        kinds=VERDICTS,
        verdicts=verdicts_by_reviewer(votes),
        agreement=overall(verdicts_by_image(votes)),
        unseen=len(set(selection["image_id"]) - set(votes["image_id"])),
        audit=[*sentences(audit)] if audit else [],
        rejects=[
            (name.removeprefix("rejected_"), n) for name, n in counts.items() if n and name.startswith("rejected_")
        ],
        short=short_classes(selection, rejected, classes, per_class).to_dict("records"),
        named=_keys_and_labels(provenance.release.classes),
        params=params,
        params_fence=markdown_fence(params),
    )


def _keys_and_labels(classes: ClassTable) -> list[str]:
    """Each class by its key and, where it has another, its name."""
    both = zip(classes.keys, classes.labels, strict=True)
    return [key if key == label else f"{key} {label}" for key, label in both]


def rebuilt_card(entries: Sequence[Entry], release: Release) -> str:
    """The card as Markdown, from a manifest and perhaps a Croissant description.

    It has the original card's front matter, from which the library `datasets` numbers and names the classes, which it
    would otherwise number by the existing folders. `entries` is not empty.
    """
    by_people = sum(entry.reviewers > 0 for entry in entries)
    return _rendered(
        entries[0].model,
        release,
        manifest_sha256=sha256(manifest_csv(entries, release.classes).encode()),
        is_rebuilt=True,
        is_random=in_random_order(entries),
        form=form_of(entries),
        denied=sum(bool(entry.denied_by) for entry in entries),
        reviewed=by_people > 0,
        notices=notices_of(entries, release),
        images=len(entries),
        classes_of_set=len({entry.wnid for entry in entries}),
        is_published=release.version != UNPUBLISHED,
        by_people=by_people,
    )


def _rendered(
    model: str,
    release: Release,
    *,
    manifest_sha256: str,
    images: int,
    reviewed: bool,
    is_random: bool,
    form: ManifestForm,
    **values: object,
) -> str:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES_OF_SETS),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"number": "{:,}".format, "plain": markdown_text}
    texts = _markdown_texts(release)
    return environment.get_template("card.jinja").render(
        values,
        model=model,
        name=name_of(model),
        release=release,
        images=images,
        texts=texts,
        citation_fence=markdown_fence(texts["citation"]),
        front_matter=front_matter(
            model,
            images,
            release,
            manifest_sha256=manifest_sha256,
            reviewed=reviewed,
            with_images=True,
            form=form,
        ),
        is_random=is_random,
        has_studies=form.has_studies,
        keys=release.classes.keys,
    )


def _markdown_texts(release: Release) -> Texts:
    """The texts of the card, in which what the publishers have written is shown unchanged; but the citation is code."""
    if release.about is None:
        return release.texts
    about = release.about
    images = about.images and about.images.model_copy(
        update={name: markdown_text(text) for name, text in about.images.model_dump().items()}
    )
    shown = about.model_copy(
        update={
            "title": markdown_text(about.title),
            "licence": markdown_text(about.licence),
            "funding": list(map(markdown_text, about.funding)),
            "images": images,
        }
    )
    return {**replace(release, about=shown).texts, "citation": release.texts["citation"]}


def card_without_images(
    text: str,
    model: str,
    images: int,
    release: Release,
    *,
    manifest_sha256: str,
    form: ManifestForm,
) -> str:
    """A card for a set that is published without its images: the table is loaded, the images are made again."""
    # a title may end with the dashes, and may be the heading
    _, body = text.split("\n---\n", 1)
    before, rest = body.split("\n## Loading\n", 1)
    # only the section on loading is replaced; all numbers stay those of stage export
    after = rest[rest.index(f"\n{release.texts['motivation']}") :]
    matter = front_matter(
        model,
        images,
        release,
        manifest_sha256=manifest_sha256,
        reviewed=bool(release.reviewers),
        with_images=False,
        form=form,
    )
    return f"{matter}\n{before}\n{release.texts['without_images']}\n{after}"


_WIDTH = 116
_SIZES = {
    10**3: "n<1K", 10**4: "1K<n<10K", 10**5: "10K<n<100K", 10**6: "100K<n<1M", 10**7: "1M<n<10M", 10**8: "10M<n<100M",
    10**9: "100M<n<1B", 10**10: "1B<n<10B", 10**11: "10B<n<100B", 10**12: "100B<n<1T",
}  # fmt: skip


def front_matter(
    model: str,
    images: int,
    release: Release,
    *,
    manifest_sha256: str,
    reviewed: bool,
    with_images: bool,
    form: ManifestForm,
) -> str:
    """The front matter of a set of `images` images. `reviewed`: by people. `with_images`: whether they are next to it.

    Without its images, a set is read as a table, where the class is in the column class_index.
    """
    values = {
        **release.texts,
        **artefact_of(release, with_images=with_images).values,
        "name": name_of(model),
        "manifest_sha256": manifest_sha256,
        "reviewed": reviewed,
        "with_images": with_images,
        "size": _size(images),
        "features": _features(form, with_images, release.classes),
    }
    fields = filled(templates("catalogues")["front_matter"], values)
    text = yaml.safe_dump(fields, sort_keys=False, default_flow_style=None, width=_WIDTH, allow_unicode=True)
    return f"---\n{text}---"


def _size(images: int) -> str:
    """The category of this number of images that the hub of `datasets` has."""
    return next((name for limit, name in _SIZES.items() if images < limit), "n>1T")


def _features(form: ManifestForm, with_images: bool, classes: ClassTable) -> list[JsonObject]:
    """The features of the columns of a manifest."""
    features: list[JsonObject] = [{"name": "image", "dtype": "image"}] if with_images else []
    for field in form.fields(classes):
        name = classes.column(field)
        if field == "class_index":
            labels = {str(index): label for index, label in enumerate(classes.labels)}
            features.append({"name": "label" if with_images else name, "dtype": {"class_label": {"names": labels}}})
        elif field != "file" or not with_images:
            features.append({"name": name, "dtype": _dtype(column_of(field))})
    return features


def _dtype(column: ManifestColumn) -> str:
    """The type of a feature: pandas, by which `datasets` reads CSV, has no integers with gaps."""
    if column.kind == "whole number":
        return "float64" if column.is_optional else "int64"
    return "float64" if column.kind == "number" else "string"
