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

from cleanset.sets.description import Release, in_random_order, limits_of, name_of, provenance_of_files, summary_of
from cleanset.sets.manifest import MANIFEST, Entry, columns
from cleanset.sets.texts import SCOOTER
from cleanset.vocabulary import class_keys, classes_in_use

RAI_VERSION = "http://mlcommons.org/croissant/RAI/1.0"

_TYPES = ["Secondary Data analysis", "Manual Human Curator"]
"""Values among those that the specification recommends."""

_DISAGREEMENT = (
    "People disagree on what is clean: of a set that was made by hand in the same way, 20.8 % of 17,300 ratings by "
    "strangers took an image for modified (Fazlija et al. 2025, arXiv:2507.07776)."
)
_EASY = (
    "The images are easy ones, chosen by the confidence of `{models}`: typical views of their class, few of them "
    "small, hidden or unusual."
)
_NOT_FOR_ACCURACY = (
    "Not for the accuracy of a model, nor for comparing models by accuracy: the images are those that one model "
    "classifies correctly, with high confidence."
)
_CROPPED = "Cropped images differ from whole ones: smaller, often less wide, PNG instead of JPEG."
_USE_CASES = [
    "Testing: studies that start from clean images, such as adversarial examples and how people see them, corruptions, "
    "certified robustness, explanations."
]
_MAINTENANCE = (
    "A version is never changed: an image that turns out to be flawed is left out of the next one. Report a flaw to "
    "whoever published the set, by the image id."
)


def rai_properties(entries: Sequence[Entry], release: Release) -> dict[str, Any]:
    """The properties by name, of a set with these entries: what they and its release tell, and nothing guessed."""
    models = ", ".join(sorted({entry.model for entry in entries})) or "none"
    texts, is_random = release.texts, in_random_order(entries)
    surest = "" if is_random else f"that the model `{models}` is surest of and "
    classes, cropped = len({entry.wnid for entry in entries}), sum(entry.crop is not None for entry in entries)
    return {
        "rai:dataCollection": f"Nothing new was collected. Of each class those {texts.collected} were "
        f"taken {surest}that people, as far as they have reviewed them, found free "
        "of watermarks, filters, borders, noise and second objects.",
        "rai:dataCollectionType": _TYPES,
        "rai:dataCollectionRawData": texts.raw.format(archive=release.archive or "archive not known"),
        "rai:dataCollectionMissingData": f"Classes with images: {classes:,} of {len(class_keys()):,}. A column that is "
        "empty says so in its description.",
        "rai:dataPreprocessingProtocol": [
            f"Images that are cropped, and PNG: {cropped:,}. The others are the original files, byte for byte."
        ],
        "rai:dataAnnotationProtocol": "For each image and class a reviewer gives a verdict: clean; crop, with a box; "
        f"reject, with a reason; or unsure. {release.review or 'How the verdicts became one is not known.'}",
        "rai:dataAnnotationPlatform": _platforms(release),
        "rai:annotationsPerItem": _per_item(entries),
        "rai:annotatorDemographics": _annotators(release),
        "rai:machineAnnotationTools": [
            "None: the candidates of a class are in a random order."
            if is_random
            else f"The model `{models}`, which ranks the candidates of a class; see the data card."
        ],
        "rai:dataBiases": [
            *([] if is_random else [_EASY.format(models=models)]),
            *texts.biases,
            _DISAGREEMENT,
        ],
        "rai:dataLimitations": [
            *([] if is_random else [_NOT_FOR_ACCURACY]),
            *texts.limitations,
            *([_CROPPED] if cropped else []),
        ],
        "rai:dataUseCases": _USE_CASES,
        "rai:personalSensitiveInformation": list(texts.people),
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


_OWN_COLUMNS = {
    "class": ("sc:Text", "The key of the class, as in classes.tsv."),
    "class_index": ("sc:Integer", "The class, by the position of its key among the sorted keys, from 0."),
    "class_name": ("sc:Text", "The name of the class."),
    "tier": ("sc:Text", "top5: among the first candidates of its class; reserve: one after them."),
    "image_id": ("sc:Text", "The image that the file is, or is cropped from: its path in the folder of all images."),
    "source_confidence": ("sc:Float", "The same on the whole image; differs where it was cropped; empty where it is "
                          "not known."),
    "original_class": ("sc:Integer", "The class that the image came with, as a class index."),
    "classes": ("sc:Text", "All classes that the image came with, as class indices with spaces between them."),
    "source_sha256": ("sc:Text", "SHA-256 of the whole image's bytes."),
    "source_check": ("sc:Text", "How these bytes were checked: none, by nothing from outside."),
    "group": ("sc:Text", "What the image must not be split from; empty where there are no groups."),
}  # fmt: skip
"""The columns of a set of other images, where they differ."""

_LABELS = ("class_index", "class_name")
_PROPERTIES = {"image_id": "prov:wasDerivedFrom", "file_sha256": "sc:sha256"}
"""Descriptions of the columns of a record, by the name of the property."""


def croissant_json(entries: Sequence[Entry], manifest_sha256: str, release: Release) -> str:
    """The description of the set whose manifest has these entries and this SHA-256."""
    models = sorted({entry.model for entry in entries})
    texts = release.texts
    described = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": [VERSION, RAI_VERSION],
        "name": name_of("-".join(models) or "empty"),
        "description": summary_of(entries, texts),
        "version": release.version,
        **({"datePublished": release.date} if release.date else {}),
        **texts.croissant,
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
                "includes": list(texts.includes),
                **provenance_of_files(release),
            },
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": "images",
                "name": "images",
                "key": {"@id": "images/file_name"},
                "field": [_image(), _file_name(), *(_column(name) for name in columns() if name != "file")],
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


def _column(name: str) -> dict[str, Any]:
    kind, description = _COLUMNS[name] if classes_in_use().is_imagenet else (_OWN_COLUMNS.get(name) or _COLUMNS[name])
    source = {"fileObject": {"@id": MANIFEST}, "extract": {"column": name}}
    return _field(name, kind, description, source)


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


def zenodo_json(entries: Sequence[Entry], release: Release, with_images: bool) -> str:
    """The text of the file for a set. `entries` is not empty; `with_images`: whether its images are published too."""
    summaries = [summary_of(entries, release.texts)]
    return deposit_json(name_of(entries[0].model), summaries, limits_of(entries, release), release, with_images)


def deposit_json(
    name: str, summaries: Sequence[str], limits: Sequence[str], release: Release, with_images: bool
) -> str:
    """The text of the file for one set or for several, with a summary of each, and what limits them in sentences.

    With images that not everybody may have, such as ImageNet's, it is not open.
    """
    texts = release.texts
    images = (
        "with its images"
        if with_images
        else f"without its images, which <code>cleanset rebuild</code> makes from {texts.originals}"
    )
    # the field is HTML
    others = (html.escape(text, quote=False) for text in (*limits, release.review))
    paragraphs = [*summaries[:-1], f"{summaries[-1]} Published {images}.", *others]
    of_source = dict(texts.zenodo)
    creators, licence = of_source.pop("creators"), of_source.pop("licence")
    where = f" They are at {texts.terms_url}." if texts.terms_url else ""
    access = (
        {"access_right": "restricted", "access_conditions": f"<p>{html.escape(texts.access, quote=False)}{where}</p>"}
        if with_images and texts.access
        else {"access_right": "open", "license": licence}
    )
    fields = {
        "title": texts.title.format(name=name),
        "upload_type": "dataset",
        "description": "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs),
        "creators": creators,
        "version": release.version,
        "publication_date": release.date,
        **({"doi": of_source.pop("doi")} if "doi" in of_source else {}),
        **access,
        "language": "eng",
        "keywords": of_source.pop("keywords"),
        "notes": html.escape(
            " ".join([texts.licences, texts.terms, *(f"Funding: {each}." for each in texts.acknowledged)]), quote=False
        ),
        **of_source,
    }
    return json.dumps(fields, indent=2, ensure_ascii=False) + "\n"
