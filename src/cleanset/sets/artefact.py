"""What is published of a set, with its images or without, as every catalogue describes it: one value for all of them.

Texts (manifest, card, reviews) and images have a licence each. Published without images an artefact is under that of
the texts; with them under that of the images, which are what it is downloaded for.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cleanset.plumbing.json_files import JsonObject
from cleanset.sets.texts import HUB_LICENCES

if TYPE_CHECKING:
    from cleanset.sets.description import Release


@dataclass(frozen=True, slots=True, kw_only=True)
class Artefact:
    """The facts of a published artefact that Zenodo, Croissant, CITATION.cff and the hub's front matter share."""

    title: str | None
    """Its publishers' title; None without a description by publishers, where its name stands for it."""

    version: str
    """MAJOR.MINOR.PATCH."""

    date: str
    """ISO 8601, or empty."""

    doi: str | None

    licence: str
    """An identifier of SPDX, an address, or a text; "not stated" of images whose publishers state none."""

    access: str
    """The conditions under which it is given to others; empty where anybody may have it."""

    @property
    def is_restricted(self) -> bool:
        """Whether not everybody may have it."""
        return bool(self.access)

    @property
    def known_licence(self) -> str | None:
        """The licence, if it is one that every catalogue has by its identifier of SPDX."""
        return self.licence if self.licence in HUB_LICENCES else None

    @property
    def licence_address(self) -> str | None:
        """The licence, if it is an address."""
        return self.licence if self.licence.startswith(("https://", "http://")) else None

    @property
    def values(self) -> JsonObject:
        """The values that templates/catalogues.yaml names."""
        return {
            "title": self.title,
            "version": self.version,
            "date": self.date,
            "doi": self.doi,
            "artefact_licence": self.licence,
            "is_restricted": self.is_restricted,
            "known_licence": self.known_licence,
            "licence_address": self.licence_address,
            # by its default an open upload would be under CC BY; this claims least, and the notes have the words
            "zenodo_licence": self.licence if " " not in self.licence else "other-closed",
            "hub_identifier": self.known_licence.lower() if self.known_licence else None,
        }


def artefact_of(release: "Release", *, with_images: bool) -> Artefact:
    """What is published of a set, with or without its images."""
    texts = release.texts
    about = release.about
    return Artefact(
        title=about.title if about else None,
        version=release.version,
        date=release.date,
        doi=(about.doi or None) if about else None,
        licence=str(texts["images_licence" if with_images else "licence"]),
        access=str(texts["access"]) if with_images else "",
    )
