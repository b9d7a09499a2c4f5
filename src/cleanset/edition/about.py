"""The facts that only publishers know: title, authors, licence, funding, and the source of non-ImageNet images.

In params.yaml it is `export.about`. Card, Croissant, CITATION.cff and the metadata for Zenodo say the same.
"""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from cleanset.errors import CleansetError
from cleanset.plumbing.validation import Section, normal_text, shown, validate
from cleanset.plumbing.yaml_files import read_yaml

MAX_ABOUT_CHARACTERS = 2_000
SEE = "cleanset docs own_images shows a whole one"


def _printable(text: str) -> str:
    if not text.isprintable() or text != text.strip():
        raise ValueError(f"{shown(text)}; expected one line without blanks around it")
    return text


def _address(text: str) -> str:
    if text and not text.startswith(("https://", "http://")):
        raise ValueError(f"{shown(text)}; expected an address, https://…, or nothing")
    return text


AboutLine = Annotated[str, Field(max_length=MAX_ABOUT_CHARACTERS), AfterValidator(_printable)]
Needed = Annotated[AboutLine, Field(min_length=1)]
Address = Annotated[AboutLine, AfterValidator(_address)]


class Author(Section):
    """A person, as "Curie, Marie", or an institution, without a comma."""

    name: Annotated[Needed, AfterValidator(normal_text)]
    affiliation: AboutLine = ""
    orcid: Annotated[str, Field(pattern=r"^([0-9]{4}-[0-9]{4}-[0-9]{4}-[0-9]{3}[0-9X])?$")] = ""

    @property
    def in_reading_order(self) -> str:
        """The name as "Marie Curie"."""
        last, _, first = self.name.partition(", ")
        return f"{first} {last}" if first else last


class ImageSource(Section):
    """The source of non-ImageNet images."""

    source: Needed
    """Who took the images, and where."""

    licence: Needed
    """A name of SPDX, such as CC0-1.0, or a text."""

    url: Address = ""
    """The address that the images are available from."""

    people: Needed
    """Whether people are in the images, and have consented."""

    group: AboutLine = ""
    """What a group of images is, such as the patient."""

    access: AboutLine = ""
    """The conditions under which the images are given to others; empty where anybody may have them."""

    citation: Annotated[str, Field(max_length=MAX_ABOUT_CHARACTERS)] = ""
    """Their citation, as BibTeX or text."""


class About(Section):
    """The facts about a set and its publishers."""

    title: Needed
    authors: Annotated[list[Author], Field(min_length=1)]
    licence: Needed = "CC-BY-4.0"
    """The licence of the manifest, the files made from it, and the reviews."""

    doi: Annotated[str, Field(pattern=r"^(10\.[0-9]{4,9}/[!-~]+)?$")] = ""
    """The DOI of the release, such as 10.5281/zenodo.1; empty without one."""

    funding: list[Needed] = Field(default_factory=list)
    """The funders, or grants, each in a line."""

    keywords: list[Needed] = Field(default_factory=list)
    images: ImageSource | None = None
    """The source of the images; null for ImageNet's, whose terms are known."""


def read_about(path: Path) -> About:
    """The facts in a card.yaml. Raises CleansetError for missing or invalid keys."""
    found = validate(About, read_yaml(path, SEE), path, f": {SEE}")
    if found.images is None:
        raise CleansetError(f"{path}: images: missing; expected source, licence and people of your images: {SEE}")
    return found
