"""The texts of a set of your own images: they state only what its publishers state in `export.about`."""

from typing import TYPE_CHECKING

from cleanset.sets.texts import (
    CC_BY,
    LICENCE_URL,
    Texts,
    catalogue_fields,
    deposit_fields,
    licences_of,
    set_citation,
)
from cleanset.vocabulary import class_keys

if TYPE_CHECKING:
    from cleanset.edition.about import About

_NOT_STATED = (
    "Whose the images are, and under which licence, is not stated: ask whoever gave you this set before you use or "
    "hand on an image."
)
_PEOPLE_NOT_STATED = "Whether people are in the images, and have consented, is not stated."
_SOFTWARE = """\
@misc{cleanset,
  title  = {cleanset: clean, human-verified sets of images},
  author = {{The cleanset authors}}
}"""
_KEYWORDS = ["image classification", "human-verified"]
_MOTIVATION = """\
## Motivation

Studies of classifiers, and people who judge images, need images to start from that are beyond doubt: of one thing,
classified correctly, and without a watermark, border, filter, collage or second object. This set is the part of the
images that passed a review of just that."""
_WITHOUT_IMAGES = """\
## Loading

The images are not here. With your own copy of them, in folders as in the column `image_id`, and `cleanset` installed,
in this folder:

```sh
cleanset rebuild --manifest manifest.csv --images IMAGES --out ../images
```

makes every image byte for byte. The table alone:

```python
import os, datasets
table = datasets.load_dataset(os.getcwd())["validation"]
```
"""
_USES = """\
## Uses

Made for studies that start from clean images: how people see images, corruptions, adversarial examples, explanations.
Not for:

- **how accurate a model is**, nor for comparing models by accuracy: where a model chose the candidates, the images are
  those that it is surest of;
- conclusions about how often something occurs: the images are chosen, not drawn."""


def own_texts(about: "About | None") -> Texts:
    """The texts of a set of images of the classes in use, which are not ImageNet's."""
    images = about.images if about else None
    source = images.source if images else "not stated"
    url = images.url if images else ""
    people = (images.people if images else _PEOPLE_NOT_STATED,)
    where = f" ({url})" if url else ""
    terms = f"The images: {images.licence}. Their source: {source}{where}." if images else _NOT_STATED
    if images and images.access:
        terms += f" Conditions of access: {images.access}"
    licence = about.licence if about else "not stated"
    cited = "\n".join(
        [
            *([set_citation(about)] if about else []),
            *([images.citation] if images and images.citation else []),
            _SOFTWARE,
        ]
    )
    keywords = [*_KEYWORDS, *(about.keywords if about else [])]
    licence_url = LICENCE_URL if licence == CC_BY else ""
    chosen = ("The images are chosen ones, not a random sample of their source.",)
    return Texts(
        images="images",
        classes="classes",
        terms=terms,
        terms_url="",
        terms_of_card=f"{terms} Whoever hands this set on hands this on with it.",
        licences=licences_of(licence),
        licence_url=licence_url,
        citation=cited,
        motivation=_MOTIVATION,
        without_images=_WITHOUT_IMAGES,
        uses=_USES,
        class_columns="class (key, class index, name)",
        label_columns="`original_class` and `classes` are the class that the image\ncame with (class index)"
        + (f", and `group` is what it must not be split from ({images.group})" if images and images.group else ""),
        precedent="a set of photographs that was made by hand in the same way",
        flaws=(
            "**Labels are as good as their source**: they are those that the images came with, and that no reviewer "
            "has found wrong.",
            f"**People in the images.** {people[0]}",
        ),
        collected="images",
        raw=f"Images ({{archive}}) with a class each; source: {source}.",
        biases=("The labels are those that the images came with.",),
        limitations=chosen,
        people=people,
        title=about.title if about else "{name}: a clean, human-verified set of images",
        originals="the originals",
        access=images.access if images else _NOT_STATED,
        acknowledged=tuple(about.funding) if about else (),
        front_matter={
            **_licence_of_hub(images.licence if images else "not stated", url),
            "source_datasets": ["original"],
            "tags": ["human-verified", *(about.keywords if about else [])],
        },
        croissant={
            "license": images.licence if images else "not stated",
            "sdLicense": licence_url or licence,
            "conditionsOfAccess": f"{terms} {licences_of(licence)}",
            "keywords": keywords,
            "isLiveDataset": False,
            **({"url": url} if url else {}),
            "citeAs": cited,
            **(catalogue_fields(about) if about else {}),
            "prov:wasDerivedFrom": {
                "@type": "prov:Entity", **({"@id": url} if url else {}), "prov:label": source
            },
        },
        includes=[f"{key}/*" for key in class_keys()],
        zenodo={
            **(deposit_fields(about) if about else {"creators": []}),
            "licence": licence,
            "keywords": keywords,
            "related_identifiers": [
                {"identifier": each, "relation": "isDerivedFrom", "resource_type": "dataset"} for each in [url] if each
            ],
        },
    )  # fmt: skip


_HUB_LICENCES = {
    "CC-BY-4.0": "cc-by-4.0", "CC0-1.0": "cc0-1.0", "CC-BY-SA-4.0": "cc-by-sa-4.0", "CC-BY-NC-4.0": "cc-by-nc-4.0",
    "CC-BY-NC-SA-4.0": "cc-by-nc-sa-4.0", "MIT": "mit",
}  # fmt: skip
"""Licences that the hub of `datasets` has names for, by that of SPDX."""


def _licence_of_hub(licence: str, url: str) -> dict[str, str]:
    if licence in _HUB_LICENCES:
        return {"license": _HUB_LICENCES[licence]}
    return {"license": "other", "license_name": licence, **({"license_link": url} if url else {})}
