"""`.zenodo.json` of a published set, by the fields that Zenodo documents."""

import json
from pathlib import Path
from typing import Any

import pytest

from cleanset.classes import imagenet
from cleanset.edition.readings import COUNTS_AS_CLEAN
from cleanset.sets import publish
from cleanset.sets.catalogues import zenodo_json
from cleanset.sets.description import Release
from tests.sets.entries import CROPPED, WHOLE

RELEASE = Release("1.2.3", "2026-01-31", "val.tar", "", "One reviewer < two & enough.", ("ann",), classes=imagenet())

# of developers.zenodo.org, "Deposit metadata": the fields of a dataset, and the closed lists that are used here
FIELDS = {
    "access_conditions", "access_right", "communities", "contributors", "creators", "description", "doi",
    "embargo_date", "grants", "keywords", "language", "license", "notes", "prereserve_doi", "publication_date",
    "references", "related_identifiers", "subjects", "title", "upload_type", "version",
}  # fmt: skip
REQUIRED = {"access_right", "creators", "description", "publication_date", "title", "upload_type"}
RELATIONS = {"cites", "documents", "isDerivedFrom", "isNewVersionOf", "isSupplementTo", "references"}
RESOURCES = {"dataset", "publication-article", "publication-preprint", "software"}


def fields(release: Release, with_images: bool) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(zenodo_json([WHOLE, CROPPED], release, with_images=with_images))
    return found


@pytest.mark.parametrize("with_images", [False, True])
@pytest.mark.parametrize("reviewers", [("ann",), ("ann", "scooter")])
def test_only_documented_fields(reviewers: tuple[str, ...], with_images: bool) -> None:
    found = fields(
        Release("1.2.3", "2026-01-31", "val.tar", "", "One is enough.", reviewers, classes=imagenet()), with_images
    )
    assert set(found) <= FIELDS
    assert set(found) >= REQUIRED
    assert found["upload_type"] == "dataset"
    assert all(set(creator) <= {"name", "affiliation", "orcid", "gnd"} for creator in found["creators"])
    for related in found["related_identifiers"]:
        assert set(related) == {"identifier", "relation", "resource_type"}
        assert related["relation"] in RELATIONS
        assert related["resource_type"] in RESOURCES
    # an open upload needs a licence, a restricted one its conditions
    assert found["access_right"] == ("restricted" if with_images else "open")
    assert ("license" in found, "access_conditions" in found) == (not with_images, with_images)
    identifiers = [related["identifier"] for related in found["related_identifiers"]]
    assert ("arXiv:2507.07776" in identifiers) == ("scooter" in reviewers)
    assert "MIT" in found["notes"]


def test_without_images() -> None:
    assert fields(RELEASE, with_images=False) == {
        "title": "cleanset-standard: a clean, human-verified subset of ImageNet's validation images",
        "upload_type": "dataset",
        "description": "<p>2 images of 1 classes of ILSVRC2012 that the model finds easy, each with one label, or "
        "several where its tier is relaxed, without watermark, filter, border or noise. Published without its images, "
        "which <code>cleanset rebuild</code> makes from ImageNet's.</p><p>One reviewer &lt; two &amp; enough.</p>",
        "creators": [{"name": "The cleanset authors"}],
        "version": "1.2.3",
        "publication_date": "2026-01-31",
        "access_right": "open",
        "license": "CC-BY-4.0",
        "language": "eng",
        "keywords": ["ImageNet", "ILSVRC2012", "image classification", "robustness", "human-verified"],
        "notes": "The manifest, what is made from it, and the human reviews behind it: CC BY 4.0. The code that made "
        "the set: MIT. The images are ImageNet's and not ours to license: its terms of access apply, which allow "
        "research and education, nothing commercial, to people who have accepted them themselves.",
        "related_identifiers": [
            {
                "identifier": "https://www.image-net.org/challenges/LSVRC/2012/",
                "relation": "isDerivedFrom",
                "resource_type": "dataset",
            },
            {
                "identifier": "10.1007/s11263-015-0816-y",
                "relation": "references",
                "resource_type": "publication-article",
            },
            {"identifier": "arXiv:2006.07159", "relation": "references", "resource_type": "publication-preprint"},
        ],
    }


def test_it_says_what_limits_the_set() -> None:
    release = Release(
        "1.2.3", "2026-01-31", "val.tar", "0" * 32, f"{COUNTS_AS_CLEAN} < two.", ("ann",), classes=imagenet()
    )
    entries = [WHOLE.model_copy(update={"source_check": "none"})]
    _, *said, last, end = json.loads(zenodo_json(entries, release, with_images=False))["description"].split("</p>")
    assert (last, end) == (f"<p>{COUNTS_AS_CLEAN} &lt; two.", "")
    assert said == [
        "<p>Images that nobody has reviewed were taken for clean: a first look, not for a study.",
        "<p>Not verified: no digest of single images is known.",
        f"<p>Made from an archive with the MD5 {'0' * 32}, which is not ImageNet's official one: a trial, not for a "
        "study.",
    ]


def test_it_tells_what_croissant_tells(export_folder: Path, tmp_path: Path) -> None:
    """Title, version, date, keywords and creator, of a set that was really published."""
    publish.run(export_folder, tmp_path / "out", with_images=False, key=None)
    folder = tmp_path / "out" / "cleanset-standard-1.2.3"
    found, described = (json.loads((folder / name).read_text()) for name in (".zenodo.json", "croissant.json"))
    assert found["title"].startswith(f"{described['name']}: ")
    assert (found["version"], found["publication_date"]) == ("1.2.3", described["datePublished"])
    assert described["version"].startswith("1.2.3+manifest.")
    assert found["keywords"] == described["keywords"]
    assert found["creators"][0]["name"] == described["creator"]["name"]
    assert described["description"] in found["description"]
    assert "  .zenodo.json" in (folder / "checksums.sha256").read_text()
