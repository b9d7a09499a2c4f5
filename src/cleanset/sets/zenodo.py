"""The metadata of a published set for Zenodo, as `.zenodo.json`: what its form and its API ask for.

Fields: https://developers.zenodo.org/#representation
"""

import html
import json
from collections.abc import Sequence

from cleanset.sets.description import (
    CREATOR,
    IMAGENET_URL,
    KEYWORDS,
    SCOOTER,
    TERMS,
    TERMS_URL,
    Release,
    licences,
    name_of,
    summary_of,
)
from cleanset.sets.manifest import Entry

_RELATED = (
    (IMAGENET_URL, "isDerivedFrom", "dataset"),
    ("10.1007/s11263-015-0816-y", "references", "publication-article"),
    ("arXiv:2006.07159", "references", "publication-preprint"),
)
"""Images, their paper, and the reassessed labels."""
_RELATED_REVIEWS = ("arXiv:2507.07776", "references", "publication-preprint")


def zenodo_json(entries: Sequence[Entry], release: Release, with_images: bool) -> str:
    """The text of the file. `entries` is not empty; `with_images`: whether the images are published with the set.

    A set with ImageNet's images is for those who have accepted its terms, and so not open.
    """
    related = (*_RELATED, _RELATED_REVIEWS) if SCOOTER in release.reviewers else _RELATED
    images = (
        "with its images"
        if with_images
        else "without its images, which <code>cleanset rebuild</code> makes from ImageNet's"
    )
    review = html.escape(release.review, quote=False)  # the field is HTML
    access = (
        {"access_right": "restricted", "access_conditions": f"<p>{TERMS} They are at {TERMS_URL}.</p>"}
        if with_images
        else {"access_right": "open", "license": "CC-BY-4.0"}
    )
    fields = {
        "title": f"{name_of(entries[0].model)}: a clean, human-verified subset of ImageNet's validation images",
        "upload_type": "dataset",
        "description": f"<p>{summary_of(entries)} Published {images}.</p><p>{review}</p>",
        "creators": [{"name": CREATOR}],
        "version": release.version,
        "publication_date": release.date,
        **access,
        "language": "eng",
        "keywords": KEYWORDS,
        "notes": f"{licences(release.reviewers)} {TERMS}",
        "related_identifiers": [
            {"identifier": identifier, "relation": relation, "resource_type": kind}
            for identifier, relation, kind in related
        ],
    }
    return json.dumps(fields, indent=2, ensure_ascii=False) + "\n"
