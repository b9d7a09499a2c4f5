"""What publishers say of a set: read from card.yaml, checked, and the same in every text of the set."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from cleanset.classes import class_table, imagenet
from cleanset.edition.about import About, read_about
from cleanset.edition.params import checked_params
from cleanset.edition.readings import readings
from cleanset.errors import CleansetError
from cleanset.sets.archive import unpack, write_tar
from cleanset.sets.card import front_matter
from cleanset.sets.catalogues import citation_cff, croissant_json, deposit_json
from cleanset.sets.description import Release, licence_text, release_of
from cleanset.sets.manifest import ManifestForm

IMAGES = {"source": "Our clinic", "licence": "CC0-1.0", "people": "None."}
CARD: dict[str, Any] = {
    "title": "Easy lesions",
    "authors": [{"name": "Curie, Marie", "orcid": "0000-0002-1825-0097"}],
    "images": IMAGES,
}


OWN = class_table([("a", "a"), ("b", "b")], "here")


def written(folder: Path, content: object) -> Path:
    path = folder / "card.yaml"
    path.write_text(yaml.safe_dump(content, allow_unicode=True), encoding="utf-8")
    return path


def without(key: str) -> dict[str, Any]:
    return {name: value for name, value in CARD.items() if name != key}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "the file: expected keys and values"),
        ([], "the file: expected keys and values"),
        ({}, "title: "),
        (without("title"), "title: "),
        (without("authors"), "authors: "),
        (without("images"), "images: missing; expected source, licence and people"),
        (CARD | {"title": ""}, "title: "),
        (CARD | {"title": 3}, "title: "),
        (CARD | {"title": " x"}, "title: "),
        (CARD | {"title": "x\ny"}, "title: "),
        (CARD | {"title": "x" * 3000}, "title: "),
        (CARD | {"name": "x"}, "unknown key 'name'"),
        (CARD | {"authors": []}, "authors: "),
        (CARD | {"authors": "Curie"}, "authors: "),
        (CARD | {"authors": ["Curie"]}, "authors.0: "),
        (CARD | {"authors": [{"orcid": ""}]}, "authors.0.name: "),
        (CARD | {"authors": [{"name": ""}]}, "authors.0.name: "),
        (CARD | {"authors": [{"name": "Curie", "orcid": "1825-0097"}]}, "authors.0.orcid: "),
        (CARD | {"authors": [{"name": "Curie", "mail": "x"}]}, "authors.0: unknown key 'mail'"),
        (CARD | {"licence": ""}, "licence: "),
        (CARD | {"license": "MIT"}, "unknown key 'license'"),
        (CARD | {"doi": "https://doi.org/10.5281/zenodo.1"}, "doi: "),
        (CARD | {"doi": "zenodo.1"}, "doi: "),
        (CARD | {"funding": "a grant"}, "funding: "),
        (CARD | {"funding": [""]}, "funding.0: "),
        (CARD | {"keywords": [1]}, "keywords.0: "),
        (CARD | {"images": {}}, "images.source: "),
        (CARD | {"images": IMAGES | {"source": ""}}, "images.source: "),
        (CARD | {"images": IMAGES | {"url": "example.org"}}, "images.url: 'example.org'; expected an address"),
        (CARD | {"images": IMAGES | {"url": "file:///x"}}, "images.url: "),
        (CARD | {"images": IMAGES | {"people": None}}, "images.people: "),
        (CARD | {"images": IMAGES | {"consent": True}}, "images: unknown key 'consent'"),
    ],
)
def test_a_wrong_card(tmp_path: Path, content: object, message: str) -> None:
    with pytest.raises(CleansetError) as error:
        read_about(written(tmp_path, content))
    assert f"card.yaml: {message}" in str(error.value)
    assert "\n" not in str(error.value)


def params(about: object, **dataset: str) -> dict[str, Any]:
    models = {"a": {"source": "random", "name": "0"}}
    rest = {"review": {"wrong_after_crop": "accept"}, "count": {"accuracy": False}}
    return {"root": ".", "dataset": {"images": "x"} | dataset, "models": models, "export": {"about": about}} | rest


def test_whose_images_they_are_is_reported_of_own_images_alone() -> None:
    assert checked_params(params(CARD, reader="folder"), "params.yaml").export.about == About.model_validate(CARD)
    assert checked_params(params(without("images")), "params.yaml").export.about is not None
    with pytest.raises(CleansetError, match=r"export.about.images: missing; expected source, licence and people"):
        checked_params(params(without("images"), reader="folder"), "params.yaml")
    with pytest.raises(CleansetError, match=r"export.about.images: given; expected none for ImageNet"):
        checked_params(params(CARD), "params.yaml")


@pytest.mark.parametrize("title", ["Easy lesions", "$licence of {title}, {} and ${x}"])
def test_every_text_says_the_same(title: str) -> None:
    """Whatever the title holds: no text takes it for a template."""
    about = About.model_validate(
        CARD | {"title": title, "doi": "10.5281/zenodo.1", "funding": ["Grant <1> & more"], "licence": "CC0-1.0"}
    )
    release = Release(version="1.0.0", date="2026-11-25", archive="photos", review="One.", about=about, classes=OWN)
    croissant = croissant_json([], "0" * 64, release)
    assert release_of(croissant.encode(), OWN) == release
    licence = licence_text(release.texts)
    citation = citation_cff(release, with_images=True)
    assert json.loads(deposit_json("a", ["One."], [], release, with_images=False))["title"] == title
    for text in (croissant, licence, citation):
        assert "10.5281/zenodo.1" in text
        assert title in text
    assert "CC0-1.0" in licence
    assert "Our clinic" in licence
    assert yaml.safe_load(citation)["authors"] == [
        {"family-names": "Curie", "given-names": "Marie", "orcid": "https://orcid.org/0000-0002-1825-0097"}
    ]


def test_publishers_of_a_set_of_imagenet() -> None:
    """Its images stay ImageNet's; title, authors, funding and citation are the publishers'."""
    about = About.model_validate(without("images") | {"funding": ["Grant 1"]})
    release = Release(version="1.0.0", archive="val.tar", review="One.", about=about, classes=imagenet())
    described = json.loads(croissant_json([], "0" * 64, release))
    assert described["creator"][0]["name"] == "Marie Curie"
    assert described["license"] == "https://www.image-net.org/download.php"
    assert described["funding"] == [{"@type": "sc:Grant", "name": "Grant 1"}]
    assert "Easy lesions" in described["citeAs"]
    assert "ImageNet Large Scale" in described["citeAs"]
    assert release_of(json.dumps(described).encode(), imagenet()) == release
    assert replace(release, about=None).texts["croissant_creators"]["name"] == "The cleanset authors"


def test_a_set_without_a_card_claims_nothing() -> None:
    text = croissant_json([], "0" * 64, Release(archive="photos", review="One.", classes=OWN))
    described = json.loads(text)
    assert described["license"] == "not stated"
    assert "creator" not in described
    assert "imagenet" not in text.lower()
    assert "is not stated" in licence_text(Release(classes=OWN).texts)


def test_the_front_matter_of_own_images() -> None:
    release = Release(about=About.model_validate(CARD | {"keywords": ["lesions"]}), classes=OWN)
    form = ManifestForm()
    text = front_matter("a", 3, release, manifest_sha256="3" * 64, reviewed=True, with_images=True, form=form)
    fields = yaml.safe_load(text.strip("-"))
    assert (fields["license"], fields["source_datasets"], fields["tags"]) == (
        "cc0-1.0", ["original"], ["human-verified", "lesions"],
    )  # fmt: skip
    assert fields["pretty_name"] == "Easy lesions"


def test_a_random_order_is_of_no_model() -> None:
    text = " ".join(readings(checked_params(params(None, reader="folder"), "params.yaml")))
    assert "No model was used: the images of a class are in a random order." in text
    assert "Protocol" not in text
    assert "tier" not in text
    assert "log-odds" not in text
    assert "models classify" not in text


def test_a_tar_has_room_for_long_names(tmp_path: Path) -> None:
    folder = tmp_path / "cleanset-a-1.0.0"
    name = f"{'k' * 90}/{'n' * 150}.jpg"
    (folder / name).parent.mkdir(parents=True)
    (folder / name).write_bytes(b"image")
    (folder / "classes.tsv").write_text("class\tname\tindex\n")
    write_tar(folder, tmp_path / "a.tar")
    with unpack(tmp_path / "a.tar") as (inside, same_bytes):
        assert same_bytes
        assert (inside / name).read_bytes() == b"image"
