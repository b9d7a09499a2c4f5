"""Sets without a model: candidates in one random order, and no page, card or table speaks of tiers or confidences."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from bs4 import BeautifulSoup

import cleanset
from cleanset.classes import imagenet
from cleanset.edition.models import set_models
from cleanset.edition.params import Model, read_params
from cleanset.edition.paths import Edition
from cleanset.edition.readings import readings
from cleanset.scoring.brought import random_scores
from cleanset.selection.candidates import candidates, margins, of_tiers
from cleanset.selection.rule import Rule
from cleanset.sets import rebuild
from cleanset.sets.folder import read_set
from cleanset.sets.from_verdicts import problems
from cleanset.sets.made_from import outdated
from cleanset.sets.manifest import Entry, ManifestForm, manifest_csv
from cleanset.sets.manifest_checks import check_manifest
from cleanset.sets.verify import run as verify
from cleanset.tables import CANDIDATES, MARGINS, SELECTION, read_table
from tests import own_edition
from tests.edition.test_about import IMAGES
from tests.evaluation.compare.command import cleanset as command
from tests.evaluation.compare.command import says
from tests.once import once
from tests.selection.by_hand import filled, index_of, scores_of

pytestmark = pytest.mark.slow

KEYS = ("cat", "dog")
CROP = {"verdict": "crop", "reason": "border", "crop": [0, 0, 20, 20], "object_fully_visible": True}
WORDS = re.compile(
    r"(?i)top5|reserve|relaxed|\btiers?\b|confidence|\bprotocol|as_written|log.odds|images: no model|\beasy\b"
)
"""Words of sets with a model."""
ABOUT = {"title": "Drawn animals", "authors": [{"name": "Lovelace, Ada"}], "images": IMAGES}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Edition:
    """Eight cats and dogs, the first in the order cropped and the second rejected; not to be changed."""

    def make(folder: Path) -> None:
        edition = own_edition.make(folder, keys=KEYS, each=8)
        own_edition.change_params(edition, export={"date": "2026-11-29", "about": ABOUT})
        ranked = in_order(edition)
        others: dict[str, dict[str, Any]] = {name: CROP for names in ranked.values() for name in names[:1]}
        others |= {name: own_edition.REJECT for names in ranked.values() for name in names[1:2]}
        own_edition.review(edition, "ada", others)
        own_edition.run(edition, "crops", "score_crops", "review_apply", "export", "count", "report")

    return Edition(once(tmp_path_factory, "without_model", make) / "own")


def in_order(edition: Edition, role: str = "images") -> dict[int, list[str]]:
    """The candidates of each class by rank."""
    table = read_table(edition.candidates(role), CANDIDATES, edition.read_classes()).sort_values("rank")
    return {index: table.loc[table["class_index"] == index, "image_id"].tolist() for index in range(len(KEYS))}


def test_the_candidates_are_all_images_in_one_order(finished: Edition) -> None:
    classes = finished.read_classes()
    table = read_table(finished.candidates("images"), CANDIDATES, classes)
    assert set(table["tier"]) == {"none"}
    assert sorted(table["rank"]) == sorted([*range(1, 9)] * 2)
    assert len(read_table(finished.margins("images"), MARGINS, classes)) == 0
    ranked = in_order(finished)
    assert all(names != sorted(names) for names in ranked.values())
    # clean ones, wherever they are in the order, before the cropped one, which is the first
    kept = read_table(finished.selection("images"), SELECTION, classes).sort_values(["class_index", "place"])
    assert kept["image_id"].tolist() == [name for names in ranked.values() for name in names[2:5]]


def test_neither_the_pool_nor_the_number_nor_several_labels_matter() -> None:
    index = index_of({"a": [802], "b": [802], "c": [802, 803], "d": [], "e": [803]})
    scores = scores_of({"a": (802, 0.2), "b": (802, 0.9), "c": (802, 0.5), "d": (802, 0.6), "e": (803, 0.1)})
    nothing = index_of({})[["image_id"]].assign(class_index=[])
    found = candidates(index, nothing, scores, [802, 803], Rule(1, in_random_order=True))
    every = of_tiers(found, ["top5"])
    assert every[["image_id", "class_index", "tier", "rank"]].to_numpy().tolist() == [
        ["b", 802, "none", 1], ["a", 802, "none", 2], ["e", 803, "none", 1],
    ]  # fmt: skip
    assert len(margins(found)) == 0


def test_clean_before_cropped_in_the_whole_order() -> None:
    words = ["none crop", "none clean", "none undecided", "none clean"]
    assert filled(*words).selection["image_id"].tolist() == ["p2", "p4", "p1"]
    assert filled(*words, crops_in_rank=True).selection["image_id"].tolist() == ["p1", "p2", "p4"]


def texts(finished: Edition) -> dict[str, str]:
    """Every text that people and programs read of the set, without scripts and styles."""
    export = finished.export("images")
    found = {path.name: path.read_text() for path in export.iterdir() if path.is_file()}
    found |= {path.name: path.read_text() for path in finished.report.rglob("*.html")}
    found |= {str(path): path.read_text() for path in (finished.report / "plots").rglob("*.json")}
    found |= {"edition's README": (finished.folder / "README.md").read_text()}
    found |= {"metrics": " ".join(str(path) for path in finished.metrics.rglob("*.json"))}
    for name in found:
        if name.endswith(".html"):
            page = BeautifulSoup(found[name], "html.parser")
            for part in page(["script", "style"]):
                part.decompose()
            found[name] = str(page)
    return found


@pytest.mark.long
def test_no_text_speaks_of_a_model(finished: Edition, tmp_path: Path) -> None:
    found = texts(finished)
    release = publish(finished, tmp_path)
    of_release = [path for path in release.rglob("*") if path.suffix in (".md", ".csv", ".jsonl", ".cff", ".yaml")]
    found |= {f"release: {path.relative_to(release)}": path.read_text() for path in of_release}
    assert {f"release: {name}" for name in ("README.md", "sets/images/README.md", "verdicts.csv")} < set(found)
    code, _, errors = says(command("look", str(finished.export("images")), "--out", "look", cwd=tmp_path))
    assert code == 0, errors
    looked = BeautifulSoup((tmp_path / "look" / "index.html").read_text(), "html.parser")
    for part in looked(["script", "style"]):
        part.decompose()
    found["look"] = str(looked)
    said = {name: WORDS.findall(text) for name, text in found.items()}
    assert {name: words for name, words in said.items() if words} == {}
    for printed in (("review", "status"), ("status",), ("agreement",)):
        assert not WORDS.search(command(*printed, cwd=finished.folder).stdout)


def test_the_card_and_the_report_say_what_is_so(finished: Edition) -> None:
    card = " ".join((finished.export("images") / "README.md").read_text().split())
    assert "The candidates of a class are in a random order, with the seed 0." in card
    assert (
        "## Rules - The label of an image is the class that it came with. - No model was used: the images of a class "
        "are in a random order. - Cropped images come after the clean ones. ## Reviews" in card
    )
    report = BeautifulSoup((finished.report / "index.html").read_text(), "html.parser")
    steps = [row.th.get_text() for row in report.select("#funnel tbody tr") if row.th]
    assert steps == ["all images", "all candidates", "reviewed", "kept"]
    assert [each.get_text() for each in report.select("#funnel li")] == [
        "The label of an image is the class that it came with.",
        "No model was used: the images of a class are in a random order.",
        "Cropped images come after the clean ones.",
    ]
    assert "images_top5" not in {path.stem for path in (finished.metrics / "totals").iterdir()}


def test_manifest_and_record_have_no_such_columns(finished: Edition) -> None:
    export = finished.export("images")
    header = next(csv.reader((export / "manifest.csv").read_text().splitlines()))
    assert not {"tier", "confidence", "source_confidence"} & set(header)
    rejected = (export / "rejected.csv").read_text().splitlines()[0]
    assert rejected == "class,class_index,class_name,image_id,rank,reason,source_sha256"
    _, _, record = cleanset.load(export)[0]
    assert set(record) == {*header, "crop"} - {"left", "top", "right", "bottom"}
    assert list(cleanset.table(export).columns) == header
    assert list(json.loads((export / "metadata.jsonl").read_text().splitlines()[0])) == [
        {"class_index": "label", "file": "file_name"}.get(name, name) for name in header
    ]
    features = yaml.safe_load((export / "README.md").read_text().split("---\n")[1])["dataset_info"]["features"]
    assert [each["name"] for each in features][1:] == [
        {"class_index": "label"}.get(name, name) for name in header if name != "file"
    ]


def publish(edition: Edition, folder: Path) -> Path:
    code, _, errors = says(command("publish", ".", str(folder / "out"), "--with-images", cwd=edition.folder))
    assert code == 0, errors
    (release,) = (path for path in (folder / "out").iterdir() if path.is_dir())
    return release


def test_a_release_is_recomputed_and_a_set_rebuilt(finished: Edition, tmp_path: Path) -> None:
    release = publish(finished, tmp_path)
    assert list(problems(release)) == []
    rows = (release / "sets" / "images" / "manifest.csv").read_text().splitlines()
    (release / "sets" / "images" / "manifest.csv").write_text("\n".join([*rows[:-1], ""]))
    assert any("is missing" in line for line in problems(release))
    assert verify(finished.export("images"), decode=True).problems == []
    rebuild.run(finished.export("images") / "manifest.csv", finished.folder.parent / "images", tmp_path / "back")
    assert verify(tmp_path / "back", decode=True).problems == []
    assert not WORDS.search((tmp_path / "back" / "README.md").read_text())


def test_a_line_with_a_tier_or_a_confidence_alone_is_refused(finished: Edition) -> None:
    found = read_set(finished.export("images"))
    assert manifest_csv(found.entries, found.classes).splitlines()[0] == ",".join(
        ManifestForm(has_tiers=False).columns(found.classes)
    )
    values = found.entries[0].model_dump()
    with pytest.raises(ValueError, match=r"source_confidence 0\.5 without a tier; expected neither"):
        Entry.checked(values | {"confidence": 0.5, "source_confidence": 0.5}, found.classes)
    entry = Entry.checked(values | {"tier": "top5", "confidence": 0.5, "source_confidence": 0.5}, found.classes)
    text = manifest_csv([entry], found.classes)
    assert list(check_manifest(text, "here", found.classes).entries.values()) == [entry]
    # the same line without a value in the column
    (problem,) = check_manifest(text.replace(",top5,", ",,"), "here", found.classes).problems
    assert (problem.found, problem.expected) == ("tier ", "top5, reserve or relaxed")


def test_a_choice_of_candidates_changes_nothing(finished: Edition) -> None:
    """Neither protocol nor `select` are of a set without a model; a change of them makes no set old."""
    edition = finished
    params = edition.params_yaml.read_text()
    try:
        edition.params_yaml.write_text(
            params.replace("select: {}", "select: {candidates: 2}").replace("as_written", "as_published")
        )
        assert outdated(edition.export("images")) == ["params.yaml"]  # the protocol decides on crops
        edition.params_yaml.write_text(params.replace("select: {}", "select: {candidates: 2}"))
        assert outdated(edition.export("images")) == []
    finally:
        edition.params_yaml.write_text(params)


@pytest.mark.long
def test_next_to_a_set_with_scores(tmp_path: Path) -> None:
    """In one edition, the set with scores has its tiers, and the one without has none."""
    images = [f"{key}/{place:03d}.png" for key in KEYS for place in range(4)]
    rows = [f"{name},{name.partition('/')[0]},{0.9 - 0.1 * place}" for place, name in enumerate(images)]
    (tmp_path / "scores.csv").write_text("\n".join(["file,class,confidence", *rows, ""]))
    edition = own_edition.make(tmp_path, keys=KEYS, options=["--scores", "scores.csv"])
    own_edition.change_params(edition, count={"accuracy": False})
    models = read_params(edition.folder).models
    set_models(edition.folder, {**models, "drawn": Model(source="random", name="1")})
    own_edition.run(edition, "score", "intersect", "select")
    own_edition.review(edition, "ada")
    own_edition.run(edition, "crops", "score_crops", "review_apply", "export", "count", "report")
    of_scores = cleanset.table(edition.export("model"))
    assert set(of_scores["tier"]) == {"top5"}
    assert of_scores["confidence"].notna().all()
    assert "tier" not in cleanset.table(edition.export("drawn")).columns
    cards = {role: (edition.export(role) / "README.md").read_text() for role in ("model", "drawn")}
    assert "Protocol as written" in cards["model"]
    assert not WORDS.search(cards["drawn"].replace("scores", ""))
    totals = edition.metrics / "totals"
    assert set(json.loads((totals / "images_top5.json").read_text())) == {"model"}
    assert set(json.loads((totals / "images.json").read_text())) == {"model", "drawn"}
    for page in edition.report.rglob("*.html"):
        said = BeautifulSoup(page.read_text(), "html.parser").get_text().replace("None: every class", "")
        assert "None" not in said.replace("None was rejected", ""), page
    sheet = BeautifulSoup((edition.report / "sheet-1.html").read_text(), "html.parser")
    assert "None" not in " ".join(str(each["data-fates"]) for each in sheet.select("li[data-fates]"))
    assert readings(read_params(edition.folder))[-1] == (
        "drawn: no model was used; the images of a class are in one random order, without tiers."
    )
    release = publish_without_about(edition, tmp_path)
    assert list(problems(release)) == []


def publish_without_about(edition: Edition, folder: Path) -> Path:
    own_edition.change_params(edition, export={"date": "2026-11-29", "about": ABOUT})
    own_edition.run(edition, "export")
    return publish(edition, folder)


def test_images_of_imagenet_without_a_label_or_with_several_are_no_candidates() -> None:
    index = index_of({"a": [], "b": [3], "c": [3, 5]}).assign(sha256=["1" * 64, "2" * 64, "3" * 64])
    scores = random_scores("0", index, imagenet())
    found = candidates(index, index[["image_id"]].assign(class_index=0), scores, [0, 3, 5], Rule(in_random_order=True))
    assert found[["image_id", "class_index"]].to_numpy().tolist() == [["b", 3]]
