"""A set described for catalogues, from its manifest and release: Croissant, Zenodo, CITATION.cff."""

import html
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

import yaml

from cleanset.classes import ClassTable
from cleanset.plumbing.csv_files import csv_rows
from cleanset.plumbing.json_files import JsonObject
from cleanset.sets.artefact import artefact_of
from cleanset.sets.description import Release, in_random_order, limits_of, name_of, summary_of
from cleanset.sets.manifest import COLUMNS, MANIFEST, Entry, column_of, form_of
from cleanset.sets.texts import filled, templates

_NUMBERS = {"whole number": "sc:Integer", "number": "sc:Float"}
"""The types of columns of numbers, by their kind; all others are text."""
_LABELS = ("class_index", "class_name")
_PROPERTIES = {"image_id": "prov:wasDerivedFrom", "file_sha256": "sc:sha256"}
"""The property of another vocabulary that means the same as a column, by the column's name."""


def croissant_json(
    entries: Sequence[Entry], manifest_sha256: str, release: Release, records_sha256: str | None = None
) -> str:
    """The description of the set whose manifest has these entries and this SHA-256.

    `records_sha256`: digest of the file whose lines are the records, each joined with its image by class folder and
    name; without it, as of ImageNet's images, the manifest is joined by the names of the files.
    """
    models = sorted({entry.model for entry in entries})
    cropped = sum(entry.crop is not None for entry in entries)
    by_number = sorted(Counter(entry.reviewers for entry in entries).items())
    values = {
        **release.texts,
        # it describes the images, wherever they are
        **artefact_of(release, with_images=True).values,
        "licence_of_texts": artefact_of(release, with_images=False).licence,
        "name": name_of("-".join(models) or "empty"),
        "summary": summary_of(entries, release.texts),
        "models": ", ".join(models) or "none",
        "is_random": in_random_order(entries),
        "classes_with_images": f"{len({entry.wnid for entry in entries}):,} of {len(release.classes):,}",
        "has_crops": cropped > 0,
        "cropped": f"{cropped:,}",
        "policy": release.review or "How the verdicts became one is not known.",
        "reviewers": ", ".join(release.reviewers),
        "number_of_reviewers": len(release.reviewers),
        "per_item": ", ".join(f"{number:,} with {reviewers}" for reviewers, number in by_number) or "none",
        "manifest_sha256": manifest_sha256,
        "manifest_short": manifest_sha256[:16],
        "records_sha256": records_sha256,
        "review_people": [{"@type": "prov:Person", "prov:label": reviewer} for reviewer in release.reviewers],
        "fields": [
            _field(name, records_sha256 is not None, release.classes)
            for name in form_of(entries).fields(release.classes)
            if name != "file"
        ],
    }
    return json.dumps(filled(templates("catalogues")["croissant"], values), indent=2) + "\n"


def records_of(manifest: str, classes: ClassTable) -> Iterator[JsonObject]:
    """The lines of a manifest by column, with numbers in place of their digits and None for a missing one."""
    numbers = {classes.column(name) for name, column in COLUMNS.items() if column.kind in _NUMBERS}
    rows = csv_rows(manifest, MANIFEST, "export or fetch the set again")
    _, header = next(rows)
    read = [_number if name in numbers else str for name in header]
    for _, row in rows:
        yield {name: read_cell(text) for name, read_cell, text in zip(header, read, row, strict=True)}


@lru_cache(2**12)  # most columns of numbers repeat a few
def _number(text: str) -> object:
    return json.loads(text or "null")


def _field(name: str, has_records: bool, classes: ClassTable) -> JsonObject:
    column = column_of(name)
    kind = _NUMBERS.get(column.kind, "sc:Text")
    values = {
        "name": classes.column(name),
        "has_records": has_records,
        "description": column.described(classes),
        "type": [kind, "cr:Label"] if name in _LABELS else kind,
        "property": _PROPERTIES.get(name),
    }
    field: JsonObject = filled(templates("catalogues")["field"], values)
    return field


def zenodo_json(entries: Sequence[Entry], release: Release, *, with_images: bool) -> str:
    """The text of the file for a set. `entries` is not empty; `with_images`: whether its images are published too."""
    summaries = [summary_of(entries, release.texts)]
    return deposit_json(
        name_of(entries[0].model), summaries, limits_of(entries, release), release, with_images=with_images
    )


def deposit_json(
    name: str, summaries: Sequence[str], limits: Sequence[str], release: Release, *, with_images: bool
) -> str:
    """The text of the file for one set or for several, with a summary of each, and their limits in sentences.

    With images that not everybody may have, such as ImageNet's, it is not open.
    """
    texts = release.texts
    images = (
        "with its images"
        if with_images
        else f"without its images, which <code>cleanset rebuild</code> makes from {texts['originals']}"
    )
    # the field is HTML
    others = (html.escape(text, quote=False) for text in (*limits, release.review))
    paragraphs = [*summaries[:-1], f"{summaries[-1]} Published {images}.", *others]
    notes = " ".join([texts["licences"], texts["terms"], *(f"Funding: {each}." for each in texts["acknowledged"])])
    values = {
        **texts,
        "name": name,
        "description": "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs),
        **artefact_of(release, with_images=with_images).values,
        "access": html.escape(texts["access"], quote=False),
        "notes": html.escape(notes, quote=False),
    }
    return json.dumps(filled(templates("catalogues")["zenodo"], values), indent=2, ensure_ascii=False) + "\n"


def citation_cff(release: Release, *, with_images: bool) -> str:
    """The text of a CITATION.cff of a set that its publishers have described (Citation File Format 1.2)."""
    values = {**release.texts, **artefact_of(release, with_images=with_images).values}
    fields = filled(templates("catalogues")["cff"], values)
    return yaml.safe_dump(fields, sort_keys=False, allow_unicode=True, width=1_000)
