"""The texts of card, licence and catalogues on a set's images and publishers: of ImageNet's images, or of others."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cleanset.vocabulary import classes_in_use

if TYPE_CHECKING:
    from cleanset.edition.about import About


TERMS_URL = "https://www.image-net.org/download.php"
IMAGENET_URL = "https://www.image-net.org/challenges/LSVRC/2012/"
LICENCE_URL = "https://creativecommons.org/licenses/by/4.0/"
CC_BY = "CC-BY-4.0"

SCOOTER = "scooter"
"""The reviewer whose verdicts are those of the authors of SCOOTER (imagenet/reviews/README.md)."""
SCOOTER_LICENCE = "The reviews of `scooter` are the work of the authors of SCOOTER, and under their licence, MIT."

CREATOR = "The cleanset authors"

CITATION = """\
@misc{cleanset,
  title  = {cleanset: a clean, human-verified subset of ImageNet's validation images},
  author = {{The cleanset authors}}
}
@article{imagenet,
  title   = {ImageNet Large Scale Visual Recognition Challenge},
  author  = {Russakovsky, Olga and Deng, Jia and Su, Hao and Krause, Jonathan and Satheesh, Sanjeev and Ma, Sean and \
Huang, Zhiheng and Karpathy, Andrej and Khosla, Aditya and Bernstein, Michael and Berg, Alexander C. and Fei-Fei, Li},
  journal = {International Journal of Computer Vision},
  volume  = {115},
  number  = {3},
  pages   = {211--252},
  year    = {2015},
  doi     = {10.1007/s11263-015-0816-y}
}
@misc{reassessed,
  title  = {Are we done with ImageNet?},
  author = {Beyer, Lucas and H{\\'e}naff, Olivier J. and Kolesnikov, Alexander and Zhai, Xiaohua and \
van den Oord, A{\\"a}ron},
  year   = {2020},
  eprint = {2006.07159},
  archivePrefix = {arXiv}
}"""
"""BibTeX: this project, the images, the labels."""

_SCOOTER_CITATION = """\
@misc{scooter,
  title  = {SCOOTER: A Human Evaluation Framework for Unrestricted Adversarial Examples},
  author = {Fazlija, Dren and Z{\\"u}hlke, Monty-Maximilian and Schrader, Johanna and Orlov, Arkadij and Stein, Clara \
and Olatunji, Iyiola E. and Kudenko, Daniel},
  year   = {2025},
  eprint = {2507.07776},
  archivePrefix = {arXiv}
}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """The parts of the texts that describe a set which depend on whose images it has.

    `terms` are those of the images, at `terms_url`, which may be empty, and `terms_of_card` the same with what to do
    when handing them on; `precedent` is a set of which it is known how people see it. `licences` are those of
    everything else. `uses` is the section of the card on what the set is not for; `flaws` are sentences for the card,
    `biases`, `limitations` and `people` for Croissant. `front_matter`, `croissant` and `zenodo` are fields of these
    files. `access` are the conditions under which others get the images, empty where anybody may have them.
    """

    images: str
    classes: str
    terms: str
    terms_url: str
    terms_of_card: str
    licences: str
    licence_url: str
    citation: str
    motivation: str
    without_images: str
    uses: str
    label_columns: str
    class_columns: str
    precedent: str
    flaws: Sequence[str]
    collected: str
    raw: str
    biases: Sequence[str]
    limitations: Sequence[str]
    people: Sequence[str]
    title: str
    originals: str
    access: str
    acknowledged: Sequence[str]
    front_matter: Mapping[str, Any]
    croissant: Mapping[str, Any]
    includes: Sequence[str]
    zenodo: Mapping[str, Any]


def texts_of(about: "About | None", reviewers: Iterable[str]) -> Texts:
    """The texts of a set of images of the classes in use, of which its publishers say `about`."""
    if classes_in_use().is_imagenet:
        return _of_imagenet(about, SCOOTER in reviewers)
    from cleanset.sets.own_texts import own_texts

    return own_texts(about)


def citation(reviewers: Iterable[str]) -> str:
    """BibTeX of what a set of ImageNet's images with these reviewers is made from."""
    return f"{CITATION}\n{_SCOOTER_CITATION}" if SCOOTER in reviewers else CITATION


def licences_of(licence: str) -> str:
    """The sentence on the licences of everything but the images."""
    return (
        f"The manifest, what is made from it, and the human reviews behind it: {licence}. The code that made the set: "
        "MIT."
    )


def set_citation(about: "About") -> str:
    """BibTeX of a set by what its publishers say of it."""
    authors = " and ".join(each.name if ", " in each.name else f"{{{each.name}}}" for each in about.authors)
    doi = [f"doi    = {{{about.doi}}}"] if about.doi else []
    fields = ",\n  ".join([f"title  = {{{about.title}}}", f"author = {{{authors}}}", *doi])
    return f"@misc{{set,\n  {fields}\n}}"


def catalogue_fields(about: "About") -> dict[str, Any]:
    """The fields of Croissant that say who publishes a set, and how it is found."""
    creators = [
        {
            "@type": "sc:Person" if ", " in each.name else "sc:Organization",
            **({"@id": f"https://orcid.org/{each.orcid}"} if each.orcid else {}),
            "name": each.in_reading_order,
            **({"affiliation": {"@type": "sc:Organization", "name": each.affiliation}} if each.affiliation else {}),
        }
        for each in about.authors
    ]
    return {
        "alternateName": about.title,
        "creator": creators,
        **({"identifier": f"https://doi.org/{about.doi}"} if about.doi else {}),
        **({"funding": [{"@type": "sc:Grant", "name": each} for each in about.funding]} if about.funding else {}),
        # from this the other files of the set are made again, when it is verified
        "additionalProperty": {"@type": "sc:PropertyValue", "name": ABOUT, "value": about.model_dump_json()},
    }


ABOUT = "export.about"
"""The name of the property that holds all that the publishers say, as in params.yaml."""


def deposit_fields(about: "About") -> dict[str, Any]:
    """The fields of Zenodo's metadata that say who publishes a set."""
    creators = [
        {
            "name": each.name,
            **({"affiliation": each.affiliation} if each.affiliation else {}),
            **({"orcid": each.orcid} if each.orcid else {}),
        }
        for each in about.authors
    ]
    return {"creators": creators, **({"doi": about.doi} if about.doi else {})}


def citation_cff(about: "About", version: str, date: str) -> str:
    """The text of a CITATION.cff of a set (Citation File Format 1.2)."""
    import yaml

    def author(name: str) -> dict[str, str]:
        family, _, given = name.partition(", ")
        return {"family-names": family, "given-names": given} if given else {"name": name}

    fields = {
        "cff-version": "1.2.0",
        "message": "If you use this set, please cite it as below.",
        "type": "dataset",
        "title": about.title,
        "authors": [
            {
                **author(each.name),
                **({"affiliation": each.affiliation} if each.affiliation else {}),
                **({"orcid": f"https://orcid.org/{each.orcid}"} if each.orcid else {}),
            }
            for each in about.authors
        ],
        "version": version,
        "date-released": date,
        **({"doi": about.doi} if about.doi else {}),
        **({"keywords": about.keywords} if about.keywords else {}),
    }
    return yaml.safe_dump(fields, sort_keys=False, allow_unicode=True, width=1_000)


_TERMS = (
    "The images are ImageNet's and not ours to license: its terms of access apply, which allow research and "
    "education, nothing commercial, to people who have accepted them themselves."
)
_KEYWORDS = ["ImageNet", "ILSVRC2012", "image classification", "robustness", "human-verified"]
_USES = [
    {"@type": "sc:DefinedTerm", "name": name, "termCode": f"DUO_{code}", "url": f"duo:{code}"}
    for name, code in (("general research use", "0000042"), ("non-commercial use only", "0000046"))
]
"""The uses that ImageNet's terms allow, in the terms of the Data Use Ontology."""
_RELATED = (
    (IMAGENET_URL, "isDerivedFrom", "dataset"),
    ("10.1007/s11263-015-0816-y", "references", "publication-article"),
    ("arXiv:2006.07159", "references", "publication-preprint"),
)
"""Images, their paper, and the reassessed labels."""
_RELATED_REVIEWS = ("arXiv:2507.07776", "references", "publication-preprint")

_MOTIVATION = """\
## Motivation

Attacks on classifiers, and the people who judge whether an attacked image looks modified, need images to start from
that are beyond doubt: of one thing, classified correctly, and without anything that people would take for a
modification. ImageNet's validation images are not: they have watermarks, borders, filters, collages and second objects.
This set is the part of them that a model is sure of and that people have looked through."""

_WITHOUT_IMAGES = """\
## Loading

The images are not here: ImageNet's terms leave it to you to get them. With your own copy of the validation images (the
tar, or a folder of any layout) and `cleanset` installed, in this folder:

```sh
cleanset rebuild --manifest manifest.csv --images ILSVRC2012_img_val.tar --out ../images
```

makes every image byte for byte. The table alone:

```python
import os, datasets
table = datasets.load_dataset(os.getcwd())["validation"]
```
"""

_NOT_FOR = """\
## Uses

Made for studies that start from clean images: adversarial examples and how people see them, corruptions, certified
robustness, explanations. Not for:

- **how accurate a model is**: the images are those that one model is surest of, so that its own accuracy on them is
  100 % by construction, or nearly, and that of similar models is too high. For accuracy take all 50,000 images;
- **comparing models** by accuracy on a set that was chosen by one of them;
- **training**, which the set is too small for, and which would spoil ImageNet's validation images for every later test;
- anything commercial, which ImageNet's terms do not allow, or conclusions about the people in the images."""


def _of_imagenet(about: "About | None", with_scooter: bool) -> Texts:
    licence = about.licence if about else CC_BY
    licence_url = LICENCE_URL if licence == CC_BY else ""
    licences = licences_of("CC BY 4.0" if licence == CC_BY else licence)
    if with_scooter:
        licences += f" {SCOOTER_LICENCE}"
    cited = citation([SCOOTER] if with_scooter else [])
    if about:
        cited = f"{set_citation(about)}\n{cited}"
    related = [*_RELATED, *([_RELATED_REVIEWS] if with_scooter else [])]
    creator = {"creator": {"@type": "sc:Organization", "name": CREATOR}}
    keywords = [*_KEYWORDS, *(about.keywords if about else [])]
    return Texts(
        images="validation images of ImageNet (ILSVRC2012)",
        classes="classes of ILSVRC2012",
        terms=_TERMS,
        terms_url=TERMS_URL,
        terms_of_card=f"{_TERMS} They are at {TERMS_URL}; whoever hands this set on hands them on with it.",
        licences=licences,
        licence_url=licence_url,
        citation=cited,
        motivation=_MOTIVATION,
        without_images=_WITHOUT_IMAGES,
        uses=_NOT_FOR,
        class_columns="class (wnid, class index, name)",
        label_columns="`ilsvrc_class` and `real_classes` are the original and all reassessed\nlabels (class indices)",
        precedent="the set that the authors of this procedure made by hand (ImageNet S-R50-N)",
        flaws=(
            "**Labels are as good as their source.** A label is one of the reassessed labels (Beyer et al. 2020), "
            "which have errors of their own, and some classes of ImageNet overlap.",
            "**ImageNet's images are photographs from the web, from before 2012**, mostly from North America and "
            "Europe (Shankar et al. 2017, arXiv:1711.08536); people are in some of them, and were not asked. Nothing "
            "was added about anyone.",
        ),
        collected="validation images of ILSVRC2012",
        raw="The validation images of ILSVRC2012 ({archive}), with their labels (Russakovsky et al. 2015) and the "
        "reassessed ones (Beyer et al. 2020).",
        biases=(
            "The labels are reassessed labels (ReaL, Beyer et al. 2020, arXiv:2006.07159), which have errors of their "
            "own; some classes of ImageNet overlap.",
            "ImageNet's images are photographs from the web, from before 2012, mostly from North America and Europe "
            "(Shankar et al. 2017, arXiv:1711.08536).",
        ),
        limitations=(
            "Not for training: the set is too small, and it would spoil ImageNet's validation images for later tests.",
        ),
        people=(
            "People are in some of the photographs, and were not asked. No attribute of anyone was annotated: neither "
            "gender, age, origin nor any other.",
        ),
        title="{name}: a clean, human-verified subset of ImageNet's validation images" if not about else about.title,
        originals="ImageNet's",
        access=_TERMS,
        acknowledged=tuple(about.funding) if about else (),
        front_matter={
            "license": "other",
            "license_name": "imagenet",
            "license_link": TERMS_URL,
            "source_datasets": ["extended|imagenet-1k"],
            "tags": ["imagenet", "ilsvrc2012", "robustness", "adversarial-examples", "human-verified"],
        },
        croissant={
            "license": TERMS_URL,
            "sdLicense": licence_url or licence,
            "conditionsOfAccess": f"{_TERMS} {licences}",
            "usageInfo": _USES,
            "keywords": keywords,
            "isLiveDataset": False,
            "url": IMAGENET_URL,
            "citeAs": cited,
            **(catalogue_fields(about) if about else creator),
            "prov:wasDerivedFrom": {"@type": "prov:Entity", "@id": IMAGENET_URL, "prov:label": "ILSVRC2012"},
        },
        includes=("n*/*.JPEG", "n*/*.png"),
        zenodo={
            **(deposit_fields(about) if about else {"creators": [{"name": CREATOR}]}),
            "licence": licence,
            "keywords": keywords,
            "related_identifiers": [
                {"identifier": identifier, "relation": relation, "resource_type": kind}
                for identifier, relation, kind in related
            ],
        },
    )
