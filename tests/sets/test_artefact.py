"""Licence, access, title, authors, year, version and DOI of a published artefact: the same in each of its files."""

import json
import re
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from cleanset.classes import class_table, imagenet
from cleanset.edition.about import About
from cleanset.sets.card import front_matter
from cleanset.sets.catalogues import citation_cff, croissant_json, deposit_json
from cleanset.sets.description import Release, licence_text
from cleanset.sets.manifest import ManifestForm

OWN = class_table([("a", "a"), ("b", "b")], "here")
IMAGES = {"source": "Our clinic", "licence": "CC-BY-NC-4.0", "people": "None."}
ABOUT: dict[str, Any] = {
    "title": "Easy lesions",
    "authors": [{"name": "Curie, Marie"}, {"name": "Radium Institute"}],
    "doi": "10.5281/zenodo.1",
}
IMAGENET = "https://www.image-net.org/download.php"
BY_LICENCE = "https://creativecommons.org/licenses/by/4.0/"


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of release, and what is expected in its files."""

    images: dict[str, str] | None = None
    """Classes of your own images; None for ImageNet's."""
    licence: str | None = None
    """The licence of the texts if it is not CC-BY-4.0."""
    with_images: bool
    zenodo: tuple[str, str | None]
    """access_right and license."""
    hub: dict[str, str]
    """The front matter's keys that begin with license."""
    cff: dict[str, str]
    """The same of CITATION.cff."""
    croissant: tuple[str, str]
    """license, of the images, and sdLicense, of the texts."""


NC = {"license": "cc-by-nc-4.0"}
BY = {"license": "cc-by-4.0"}
KINDS = {
    "own with images": Kind(
        images=IMAGES, with_images=True, zenodo=("open", "CC-BY-NC-4.0"), hub=NC,
        cff={"license": "CC-BY-NC-4.0"}, croissant=("CC-BY-NC-4.0", BY_LICENCE),
    ),
    "own without images": Kind(
        images=IMAGES, with_images=False, zenodo=("open", "CC-BY-4.0"), hub=BY,
        cff={"license": "CC-BY-4.0"}, croissant=("CC-BY-NC-4.0", BY_LICENCE),
    ),
    "imagenet with images": Kind(
        with_images=True, zenodo=("restricted", None),
        hub={"license": "other", "license_name": "imagenet", "license_link": IMAGENET},
        cff={"license-url": IMAGENET}, croissant=(IMAGENET, BY_LICENCE),
    ),
    "imagenet without images, relicensed": Kind(
        licence="CC0-1.0", with_images=False, zenodo=("open", "CC0-1.0"), hub={"license": "cc0-1.0"},
        cff={"license": "CC0-1.0"}, croissant=(IMAGENET, "CC0-1.0"),
    ),
    "own, restricted": Kind(
        images=IMAGES | {"access": "Ask the clinic."}, with_images=True, zenodo=("restricted", None), hub=NC,
        cff={"license": "CC-BY-NC-4.0"}, croissant=("CC-BY-NC-4.0", BY_LICENCE),
    ),
    "own, in words": Kind(
        images=IMAGES | {"licence": "For teaching only", "url": "https://example.org"}, licence="MIT", with_images=True,
        zenodo=("open", "other-closed"),
        hub={"license": "other", "license_name": "For teaching only", "license_link": "https://example.org"},
        cff={}, croissant=("For teaching only", "MIT"),
    ),
}  # fmt: skip


def beginning(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields on the licence."""
    return {name: value for name, value in fields.items() if name.startswith("license")}


@pytest.mark.parametrize("name", KINDS)
def test_every_file_says_the_same(name: str) -> None:
    kind = KINDS[name]
    said = (
        ABOUT | ({"images": kind.images} if kind.images else {}) | ({"licence": kind.licence} if kind.licence else {})
    )
    release = Release(
        version="1.2.3",
        date="2026-11-25",
        archive="photos",
        review="One.",
        about=About.model_validate(said),
        classes=OWN if kind.images else imagenet(),
    )
    with_images = kind.with_images
    zenodo = json.loads(deposit_json("a", ["One."], [], release, with_images=with_images))
    croissant = json.loads(croissant_json([], "0" * 64, release))
    cff = yaml.safe_load(citation_cff(release, with_images=with_images))
    form = ManifestForm()
    text = front_matter("a", 2, release, manifest_sha256="0" * 64, reviewed=True, with_images=with_images, form=form)
    hub = yaml.safe_load(text.strip("-"))
    bibtex = dict(re.findall(r"^  (\w+) *= \{(.*)\},?$", str(release.texts["citation"]).partition("\n}")[0], re.M))

    assert (zenodo["access_right"], zenodo.get("license")) == kind.zenodo
    assert beginning(hub) == kind.hub
    assert beginning(cff) == kind.cff
    assert (croissant["license"], croissant["sdLicense"]) == kind.croissant
    assert {zenodo["title"], cff["title"], croissant["alternateName"], hub["pretty_name"], bibtex["title"]} == {
        "Easy lesions"
    }
    assert [each["name"] for each in zenodo["creators"]] == ["Curie, Marie", "Radium Institute"]
    assert [each["name"] for each in croissant["creator"]] == ["Marie Curie", "Radium Institute"]
    assert bibtex["author"] == "Curie, Marie and {Radium Institute}"
    assert [each.get("family-names") for each in cff["authors"]] == ["Curie", None]
    assert {zenodo["version"], cff["version"], croissant["version"].partition("+")[0]} == {"1.2.3"}
    assert bibtex["note"] == "Version 1.2.3"
    assert {zenodo["publication_date"], str(cff["date-released"]), croissant["datePublished"]} == {"2026-11-25"}
    assert bibtex["year"] == "2026"
    assert {zenodo["doi"], cff["doi"], bibtex["doi"]} == {"10.5281/zenodo.1"}
    assert croissant["identifier"] == "https://doi.org/10.5281/zenodo.1"
    licence = licence_text(release.texts)
    assert (kind.licence or "CC BY 4.0" if kind.images is None else kind.licence or "CC-BY-4.0") in licence
    for condition in filter(None, [(kind.images or {}).get("licence"), (kind.images or {}).get("access")]):
        assert condition in licence
        assert condition in croissant["conditionsOfAccess"]
