"""The description of a set in MLCommons Croissant 1.1, made from its manifest and what its release says."""

import json
from collections.abc import Sequence
from typing import Any

from cleanset.exports.description import (
    IMAGENET_URL,
    LICENCE_URL,
    TERMS,
    TERMS_URL,
    Release,
    citation,
    licences,
    name_of,
    provenance_of_files,
)
from cleanset.exports.manifest import MANIFEST, Entry

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
    several = ", or several where its tier is relaxed" if any(entry.tier == "relaxed" for entry in entries) else ""
    models = sorted({entry.model for entry in entries})
    classes = len({entry.wnid for entry in entries})
    described = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": VERSION,
        "name": name_of("-".join(models) or "empty"),
        "description": f"{len(entries):,} images of {classes:,} classes of ILSVRC2012 that the model "
        f"finds easy, each with one label{several}, without watermark, filter, border or noise.",
        "version": release.version,
        **({"datePublished": release.date} if release.date else {}),
        "license": TERMS_URL,
        "sdLicense": LICENCE_URL,
        "conditionsOfAccess": f"{TERMS} {licences(release.reviewers)}",
        "usageInfo": _USES,
        "keywords": ["ImageNet", "ILSVRC2012", "image classification", "robustness", "human-verified"],
        "isLiveDataset": False,
        "url": IMAGENET_URL,
        "citeAs": citation(release.reviewers),
        "creator": {"@type": "sc:Organization", "name": "The cleanset authors"},
        "prov:wasDerivedFrom": {"@type": "prov:Entity", "@id": IMAGENET_URL, "prov:label": "ILSVRC2012"},
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
