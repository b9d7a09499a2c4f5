"""A set described for catalogues, from its manifest and what its release says: Croissant, and Zenodo's metadata.

Croissant is MLCommons' 1.1 with RAI 1.0: how a set was collected and annotated, by whom, its biases and limits. Names
and meanings: https://docs.mlcommons.org/croissant/docs/croissant-rai-spec.html

`.zenodo.json` has what Zenodo's form and its API ask for: https://developers.zenodo.org/#representation
"""

import html
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from cleanset.dataset.ilsvrc import CLASSES
from cleanset.sets.description import (
    CREATOR,
    IMAGENET_URL,
    KEYWORDS,
    LICENCE_URL,
    SCOOTER,
    TERMS,
    TERMS_URL,
    Release,
    citation,
    licences,
    limits_of,
    name_of,
    provenance_of_files,
    summary_of,
)
from cleanset.sets.manifest import MANIFEST, Entry

RAI_VERSION = "http://mlcommons.org/croissant/RAI/1.0"

_TYPES = ["Secondary Data analysis", "Manual Human Curator"]
"""Values among those that the specification recommends."""

_BIASES = [
    "The labels are reassessed labels (ReaL, Beyer et al. 2020, arXiv:2006.07159), which have errors of their own; "
    "some classes of ImageNet overlap.",
    "ImageNet's images are photographs from the web, from before 2012, mostly from North America and Europe (Shankar "
    "et al. 2017, arXiv:1711.08536).",
    "People disagree on what is clean: of a set that was made by hand in the same way, 20.8 % of 17,300 ratings by "
    "strangers took an image for modified (Fazlija et al. 2025, arXiv:2507.07776).",
]
_LIMITATIONS = [
    "Not for the accuracy of a model, nor for comparing models by accuracy: the images are those that one model "
    "classifies correctly, with high confidence.",
    "Not for training: the set is too small, and it would spoil ImageNet's validation images for later tests.",
]
_CROPPED = "Cropped images differ from whole ones: smaller, often less wide, PNG instead of JPEG."
_USE_CASES = [
    "Testing: studies that start from clean images, such as adversarial examples and how people see them, corruptions, "
    "certified robustness, explanations."
]
_PERSONAL = [
    "People are in some of the photographs, and were not asked. No attribute of anyone was annotated: neither gender, "
    "age, origin nor any other."
]
_MAINTENANCE = (
    "A version is never changed: an image that turns out to be flawed is left out of the next one. Report a flaw to "
    "whoever published the set, by the image id."
)


def rai_properties(entries: Sequence[Entry], release: Release) -> dict[str, Any]:
    """The properties by name, of a set with these entries: what they and its release tell, and nothing guessed."""
    models = ", ".join(sorted({entry.model for entry in entries})) or "none"
    classes, cropped = len({entry.wnid for entry in entries}), sum(entry.crop is not None for entry in entries)
    return {
        "rai:dataCollection": "Nothing new was collected. Of each class those validation images of ILSVRC2012 were "
        f"taken that the model `{models}` is surest of and that people, as far as they have reviewed them, found free "
        "of watermarks, filters, borders, noise and second objects.",
        "rai:dataCollectionType": _TYPES,
        "rai:dataCollectionRawData": f"The validation images of ILSVRC2012 ({release.archive or 'archive not known'}), "
        "with their labels (Russakovsky et al. 2015) and the reassessed ones (Beyer et al. 2020).",
        "rai:dataCollectionMissingData": f"Classes with images: {classes:,} of {CLASSES:,}. A column that is empty "
        "says so in its description.",
        "rai:dataPreprocessingProtocol": [
            f"Images that are cropped, and PNG: {cropped:,}. The others are the original files, byte for byte."
        ],
        "rai:dataAnnotationProtocol": "For each image and class a reviewer gives a verdict: clean; crop, with a box; "
        f"reject, with a reason; or unsure. {release.review or 'How the verdicts became one is not known.'}",
        "rai:dataAnnotationPlatform": _platforms(release),
        "rai:annotationsPerItem": _per_item(entries),
        "rai:annotatorDemographics": _annotators(release),
        "rai:machineAnnotationTools": [
            f"The model `{models}`, which ranks the candidates of a class; see the data card."
        ],
        "rai:dataBiases": [
            f"The images are easy ones, chosen by the confidence of `{models}`: typical views of their class, few of "
            "them small, hidden or unusual.",
            *_BIASES,
        ],
        "rai:dataLimitations": [*_LIMITATIONS, *([_CROPPED] if cropped else [])],
        "rai:dataUseCases": _USE_CASES,
        "rai:personalSensitiveInformation": _PERSONAL,
        "rai:dataReleaseMaintenancePlan": _MAINTENANCE,
    }


def _platforms(release: Release) -> list[str]:
    if not release.reviewers:
        return ["None: nobody has reviewed these images."]
    found = ["The review page of cleanset, Label Studio, or review files; which of them was used is not recorded."]
    return [*found, "Notes that the authors of SCOOTER published."] if SCOOTER in release.reviewers else found


def _per_item(entries: Sequence[Entry]) -> str:
    images = sorted(Counter(entry.reviewers for entry in entries).items())
    counts = ", ".join(f"{number:,} with {reviewers}" for reviewers, number in images)
    return f"Images by their number of reviewers, the board not counted: {counts or 'none'}."


def _annotators(release: Release) -> list[str]:
    if not release.reviewers:
        return ["None."]
    names = ", ".join(release.reviewers)
    return [f"Reviewers: {len(release.reviewers)} ({names}). Nothing else is recorded about them."]


VERSION = "http://mlcommons.org/croissant/1.1"

_CR = (
    "annotation", "arrayShape", "citeAs", "column", "containedIn", "equivalentProperty", "excludes", "extract",
    "field", "fileProperty", "fileObject", "fileSet", "format", "includes", "isArray", "isLiveDataset", "jsonPath",
    "key", "md5", "parentField", "path", "readLines", "recordSet", "references", "regex", "repeated", "replace",
    "samplingRate", "sdVersion", "separator", "source", "subField", "transform", "unArchive", "value",
)  # fmt: skip
_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "prov": "http://www.w3.org/ns/prov#",
    "duo": "http://purl.obolibrary.org/obo/DUO_",
    "name": {"@container": "@language"},
    "description": {"@container": "@language"},
    "conformsTo": "dct:conformsTo",
    **{name: f"cr:{name}" for name in _CR},
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
}
"""The context that the specification prescribes, with the vocabularies of provenance and of terms of use."""

_FILES = "files"
_COLUMNS = {
    "model": ("sc:Text", "The model whose set this is, by its role."),
    "wnid": ("sc:Text", "The class, by its WordNet id."),
    "class_index": ("sc:Integer", "The class, by the position of its wnid among ILSVRC2012's sorted 1,000, from 0."),
    "class_name": ("sc:Text", "The usual English name of the class; with its wnid where two classes share it."),
    "rank": ("sc:Integer", "The image's rank in its class, from 1."),
    "image_id": ("sc:Text", "The validation image that the file is, or is cropped from: a member of the archive."),
    "tier": ("sc:Text", "top5: among the easiest that all models classify correctly; reserve: this model classifies it "
             "correctly; relaxed: it has several labels, the class among them."),
    "confidence": ("sc:Float", "The model's softmax probability of the class on the file's pixels; empty where it is "
                   "not known, or a crop's five most probable classes lack it."),
    "source_confidence": ("sc:Float", "The same on the whole validation image; differs where it was cropped; empty "
                          "where it is not known."),
    "ilsvrc_class": ("sc:Integer", "The original label, as a class index."),
    "real_classes": ("sc:Text", "All reassessed (ReaL) labels, as class indices with spaces between them."),
    "reviewers": ("sc:Integer", "How many reviewers judged the image in its class; the policy is with the files."),
    "left": ("sc:Integer", "Left edge of the crop box in pixels of the source; empty for a whole image."),
    "top": ("sc:Integer", "Top edge of the crop box."),
    "right": ("sc:Integer", "Right edge of the crop box, excluded."),
    "bottom": ("sc:Integer", "Bottom edge of the crop box, excluded."),
    "source_sha256": ("sc:Text", "SHA-256 of the validation image's bytes."),
    "source_check": ("sc:Text", "How these bytes were checked: archive_md5, by the MD5 of their archive; image_sha256, "
                     "by a published table of digests; none, by nothing from outside."),
    "file_sha256": ("sc:Text", "SHA-256 of the file's bytes."),
    "pixels_sha256": ("sc:Text", "SHA-256 of the file's decoded RGB bytes, row by row."),
    "encoder": ("sc:Text", "What encoded a cropped image; empty for a whole one."),
}  # fmt: skip


_USES = [
    {"@type": "sc:DefinedTerm", "name": name, "termCode": f"DUO_{code}", "url": f"duo:{code}"}
    for name, code in (("general research use", "0000042"), ("non-commercial use only", "0000046"))
]
"""The uses that ImageNet's terms allow, in the terms of the Data Use Ontology."""


_LABELS = ("class_index", "class_name")
_PROPERTIES = {"image_id": "prov:wasDerivedFrom", "file_sha256": "sc:sha256"}
"""Descriptions of the columns of a record, by the name of the property."""


def croissant_json(entries: Sequence[Entry], manifest_sha256: str, release: Release) -> str:
    """The description of the set whose manifest has these entries and this SHA-256."""
    models = sorted({entry.model for entry in entries})
    described = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": [VERSION, RAI_VERSION],
        "name": name_of("-".join(models) or "empty"),
        "description": summary_of(entries),
        "version": release.version,
        **({"datePublished": release.date} if release.date else {}),
        "license": TERMS_URL,
        "sdLicense": LICENCE_URL,
        "conditionsOfAccess": f"{TERMS} {licences(release.reviewers)}",
        "usageInfo": _USES,
        "keywords": KEYWORDS,
        "isLiveDataset": False,
        "url": IMAGENET_URL,
        "citeAs": citation(release.reviewers),
        "creator": {"@type": "sc:Organization", "name": CREATOR},
        "prov:wasDerivedFrom": {"@type": "prov:Entity", "@id": IMAGENET_URL, "prov:label": "ILSVRC2012"},
        **rai_properties(entries, release),
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": MANIFEST,
                "name": MANIFEST,
                "contentUrl": MANIFEST,
                "encodingFormat": "text/csv",
                "sha256": manifest_sha256,
            },
            {
                "@type": "cr:FileSet",
                "@id": _FILES,
                "name": _FILES,
                "encodingFormat": ["image/jpeg", "image/png"],
                "includes": ["n*/*.JPEG", "n*/*.png"],
                **provenance_of_files(release),
            },
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": "images",
                "name": "images",
                "key": {"@id": "images/file_name"},
                "field": [_image(), _file_name(), *(_column(*each) for each in _COLUMNS.items())],
            }
        ],
    }
    return json.dumps(described, indent=2) + "\n"


def _field(name: str, kind: str, description: str, source: dict[str, Any]) -> dict[str, Any]:
    property_of_record = {"equivalentProperty": _PROPERTIES[name]} if name in _PROPERTIES else {}
    return {
        "@type": "cr:Field",
        "@id": f"images/{name}",
        "name": name,
        "description": description,
        "dataType": [kind, "cr:Label"] if name in _LABELS else kind,
        **property_of_record,
        "source": source,
    }


def _column(name: str, kind_and_description: tuple[str, str]) -> dict[str, Any]:
    source = {"fileObject": {"@id": MANIFEST}, "extract": {"column": name}}
    return _field(name, *kind_and_description, source)


def _image() -> dict[str, Any]:
    source = {"fileSet": {"@id": _FILES}, "extract": {"fileProperty": "content"}}
    return _field("image", "sc:ImageObject", "The image.", source)


def _file_name() -> dict[str, Any]:
    """The key by which a line of the manifest finds its image: the file's name without its folder."""
    source = {
        "fileObject": {"@id": MANIFEST},
        "extract": {"column": "file"},
        "transform": {"regex": "(?:.*/)?([^/]+)$"},  # mlcroissant applies it twice, to no harm
    }
    references = {"fileSet": {"@id": _FILES}, "extract": {"fileProperty": "filename"}}
    return {**_field("file_name", "sc:Text", "The name of the file.", source), "references": references}


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
    # the field is HTML
    others = (html.escape(text, quote=False) for text in (*limits_of(entries, release), release.review))
    paragraphs = [f"{summary_of(entries)} Published {images}.", *others]
    access = (
        {"access_right": "restricted", "access_conditions": f"<p>{TERMS} They are at {TERMS_URL}.</p>"}
        if with_images
        else {"access_right": "open", "license": "CC-BY-4.0"}
    )
    fields = {
        "title": f"{name_of(entries[0].model)}: a clean, human-verified subset of ImageNet's validation images",
        "upload_type": "dataset",
        "description": "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs),
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
