"""Fills in the texts of card, licence and catalogues, from templates/imagenet.yaml or own.yaml; BibTeX entries."""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from string import Template
from typing import Any

from cleanset.classes import ClassTable
from cleanset.edition.about import About, ImageSource
from cleanset.plumbing.json_files import JsonMapping, JsonObject
from cleanset.plumbing.yaml_files import read_yaml
from cleanset.vocabulary import SCOOTER

_CC_BY = "CC-BY-4.0"
_CC_BY_URL = "https://creativecommons.org/licenses/by/4.0/"
HUB_LICENCES = ("CC-BY-4.0", "CC0-1.0", "CC-BY-SA-4.0", "CC-BY-NC-4.0", "CC-BY-NC-SA-4.0", "MIT")
"""Licences by their names of SPDX that the hub of `datasets` has, too, in small letters."""

_NOT_STATED = ImageSource(source="not stated", licence="not stated", people="not stated")

TEMPLATES_OF_SETS = Path(__file__).parent / "templates"
_CHOICE = {"if", "then", "else"}
_NAME = re.compile(r"\$(\w+)")

Texts = JsonMapping
"""Texts by name: the entries of templates/imagenet.yaml or own.yaml, and the values that `texts_of` adds."""


@cache
def templates(name: str) -> JsonObject:
    """The templates in a file of the folder `templates`, by name."""
    found = read_yaml(TEMPLATES_OF_SETS / f"{name}.yaml", "install cleanset again")
    assert isinstance(found, dict)
    return found


def filled(template: object, values: JsonMapping) -> Any:
    """A template with the values of its `$names`.

    A table with the keys if, then and else is one of two; None is left out of tables and lists; a
    list within a list becomes a part of it.
    """
    if isinstance(template, str):
        whole = _NAME.fullmatch(template)
        return values[whole[1]] if whole else Template(template).substitute(values)
    if isinstance(template, list):
        found = [filled(each, values) for each in template]
        parts = (each if isinstance(each, list) else [each] for each in found if each is not None)
        return [each for part in parts for each in part]
    if not isinstance(template, dict):
        return template
    if "if" in template and template.keys() <= _CHOICE:
        return filled(template.get("then" if values[template["if"]] else "else"), values)
    pairs = ((name, filled(each, values)) for name, each in template.items())
    return {name: each for name, each in pairs if each is not None}


def texts_of(
    classes: ClassTable,
    about: About | None,
    reviewers: Iterable[str],
    archive: str = "",
    *,
    version: str = "",
    date: str = "",
) -> Texts:
    """The texts of a set of images of these classes, with `about` from its publishers.

    `version` and `date` of the release are in its citation; empty: not known.
    """
    is_imagenet = classes.is_imagenet
    licence = about.licence if about else _CC_BY if is_imagenet else "not stated"
    licence_url = _CC_BY_URL if licence == _CC_BY else ""
    citations = templates("citations")
    values: JsonObject = {
        **{f"citation_of_{name}": text for name, text in citations.items()},
        **_publisher_fields(about, version, date),
        **_image_fields(about),
        "is_imagenet": is_imagenet,
        "scooter": SCOOTER in reviewers,
        "known_archive": archive or "archive not known",
        "licence": licence,
        "licence_url": licence_url,
        "plain_licences": "The manifest, what is made from it, and the human reviews behind it: "
        f"{'CC BY 4.0' if is_imagenet and licence == _CC_BY else licence}. The code that made the set: MIT.",
        "includes": [f"{key}/*" for key in classes.keys],
        "usage": None,
    }
    # one after the other, because an entry may name an earlier one
    for name, template in templates("imagenet" if is_imagenet else "own").items():
        values[name] = filled(template, values)
    return values


def _publisher_fields(about: About | None, version: str, date: str) -> JsonObject:
    """The values that say who publishes a set, and how it is found."""
    authors = [
        {
            **{name: text or None for name, text in each.model_dump().items()},
            "in_reading_order": each.in_reading_order,
            "family": each.name.partition(", ")[0],
            "given": each.name.partition(", ")[2] or None,
        }
        for each in (about.authors if about else ())
    ]
    kinds = ("croissant_creators", "zenodo_creators", "cff_authors")
    fields = {kind: [filled(templates("catalogues")[kind], each) for each in authors] for kind in kinds}
    funding = about.funding if about else []
    return {
        **fields,
        "title": about.title if about else None,
        "doi": (about.doi or None) if about else None,
        "about": about.model_dump_json() if about else None,
        "set_citation": f"{set_citation(about, version, date)}\n" if about else "",
        "own_keywords": about.keywords if about else [],
        "acknowledged": funding,
        "grants": [{"@type": "sc:Grant", "name": each} for each in funding] or None,
    }


def _image_fields(about: About | None) -> JsonObject:
    """The values that say whose the images are that are not ImageNet's."""
    stated = about.images if about else None
    images = stated or _NOT_STATED
    return {
        **{f"images_{name}": text for name, text in images.model_dump().items()},
        "is_stated": stated is not None,
        "images_url": images.url or None,
        "at_url": f" ({images.url})" if images.url else "",
        "citation_of_images": f"{images.citation}\n" if images.citation else "",
    }


def citation(reviewers: Iterable[str]) -> str:
    """BibTeX of the sources of a set of ImageNet's images with these reviewers: this project, images, labels."""
    found = templates("citations")
    return f"{found['imagenet']}\n{found['scooter']}" if SCOOTER in reviewers else str(found["imagenet"])


def set_citation(about: About, version: str, date: str) -> str:
    """BibTeX of a set from its publishers' description; `version` and `date` of the release may be empty."""
    authors = " and ".join(each.name if ", " in each.name else f"{{{each.name}}}" for each in about.authors)
    known = {"year  ": date[:4], "note  ": version and f"Version {version}", "doi   ": about.doi}
    rest = [f"{name} = {{{value}}}" for name, value in known.items() if value]
    fields = ",\n  ".join([f"title  = {{{about.title}}}", f"author = {{{authors}}}", *rest])
    return f"@misc{{set,\n  {fields}\n}}"
