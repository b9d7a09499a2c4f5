"""What describes a set beyond its manifest: version, date, where the images come from, who reviewed them and how."""

import json
import re
from dataclasses import dataclass
from typing import Any

UNPUBLISHED = "0.0.0"
"""The version of a set that has none, such as one that was rebuilt from a manifest alone."""

_MD5 = re.compile(r"urn:md5:([0-9a-f]{32})")


@dataclass(frozen=True, slots=True)
class Release:
    """`version` is MAJOR.MINOR.PATCH, `date` ISO 8601 or empty, `archive` the name of the tar or folder of the images.

    `archive_md5` is empty for a folder. `review` says in a sentence how the reviewers' verdicts became one;
    `reviewers` are the names of their folders, sorted.
    """

    version: str = UNPUBLISHED
    date: str = ""
    archive: str = ""
    archive_md5: str = ""
    review: str = ""
    reviewers: tuple[str, ...] = ()


def provenance_of_files(release: Release) -> dict[str, Any]:
    """How the files came about, in the terms of PROV-O, as Croissant 1.1 recommends."""
    archive = {"@type": "prov:Entity", "prov:label": release.archive}
    if release.archive_md5:
        archive["@id"] = f"urn:md5:{release.archive_md5}"
    return {
        "prov:wasDerivedFrom": archive,
        "prov:wasGeneratedBy": [
            {
                "@type": "prov:Activity",
                "prov:label": "Review by people",
                "description": release.review,
                "prov:wasAssociatedWith": [
                    {"@type": "prov:Person", "prov:label": reviewer} for reviewer in release.reviewers
                ],
            },
            {
                "@type": "prov:Activity",
                "prov:label": "Crop",
                "description": "Where a line of the manifest has a box (left, top, right, bottom), the file is that "
                "part of the image as PNG; every other file is the member of the archive, byte for byte.",
            },
        ],
    }


def release_of(croissant: bytes) -> Release:
    """The release that a Croissant description of this project tells of; of any other, Release()."""
    try:
        described = json.loads(croissant)
        files = next(each for each in described["distribution"] if each["@type"] == "cr:FileSet")
        archive, (review, _) = files["prov:wasDerivedFrom"], files["prov:wasGeneratedBy"]
        md5 = _MD5.fullmatch(archive.get("@id", ""))
        return Release(
            version=str(described["version"]),
            date=str(described.get("datePublished", "")),
            archive=str(archive["prov:label"]),
            archive_md5=md5[1] if md5 else "",
            review=str(review["description"]),
            reviewers=tuple(str(each["prov:label"]) for each in review["prov:wasAssociatedWith"]),
        )
    except (ValueError, LookupError, TypeError, AttributeError, StopIteration, RecursionError):
        return Release()
