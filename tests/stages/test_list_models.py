"""A model that is a published list, from stage score to export, count and report, on ten images and without torch."""

import csv
import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from cleanset.classes import imagenet
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.review.page.library import open_library
from cleanset.review.status import run as review_status
from cleanset.scoring.record import ListRecord, read_record
from cleanset.sets import release
from cleanset.sets.from_verdicts import problems
from cleanset.sets.verify import run as verify
from cleanset.stages import (
    count,
    crops,
    export,
    intersect,
    preprocess,
    report,
    review_apply,
    score,
    score_crops,
    select,
)
from cleanset.tables import CROP_SCORES, INDEX, SCORES, read_table
from tests.sets.conftest import edit
from tests.ten_images import Made, id_of

REAL_LABELS = [[0], [0], [0], [278], [281], [281], [543], [0], [278, 281], [278, 999]]
LIST = "model,class_index,rank,image_id,confidence\n" + "".join(
    f"robust,{index},{rank},{id_of(number)},{confidence}\n"
    for index, rank, number, confidence in [(0, 1, 1, 0.75), (0, 2, 2, 0.5), (281, 1, 5, 0.875)]
)
BEYOND = f"model,class_index,image_id\nrobust,0,{id_of(3)}\nrobust,278,{id_of(4)}\n"
BOX = [3, 4, 20, 25]


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """Images 1 and 2 of class 0 and 5 of class 281 are listed, 3 of class 0 and 4 of class 278 come from beyond."""
    made = Made(tmp_path).archives(reassessed=json.dumps(REAL_LABELS))
    (tmp_path / "lists.csv").write_text(LIST)
    (tmp_path / "beyond.csv").write_text(BEYOND)
    model: dict[str, Any] = {"source": "lists", "file": "lists.csv", "beyond": "beyond.csv", "name": "robust"}
    made.others = {
        "protocol": "as_published",
        "models": {"robust": model | {"sha256": sha(LIST), "beyond_sha256": sha(BEYOND)}},
        "review": {"wrong_after_crop": "accept", "min_crop_pixels": 8},
        "count": {"accuracy": False},
    }
    made.params(classes=["n01440764", "n02119789", "n02123045"])
    return made


def review(edition: Edition, wnid: str, number: int, verdict: str) -> None:
    index = read_table(edition.index, INDEX, imagenet())
    digests = dict(zip(index["image_id"].tolist(), index["sha256"].tolist(), strict=True))
    path = edition.reviews / "ann" / f"{wnid}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = path.read_text() if path.exists() else f"{wnid}:\n"
    path.write_text(f"{text}  {id_of(number)}: {{{verdict}, sha256: {digests[id_of(number)]}}}\n")


def run_all(edition: Edition) -> None:
    preprocess.run(edition)
    score.run(edition, "robust")
    for wnid, number in (("n01440764", 1), ("n01440764", 3), ("n02119789", 4)):
        review(edition, wnid, number, "verdict: clean")
    review(edition, "n01440764", 2, f"verdict: crop, reason: border, crop: {BOX}, object_fully_visible: true")
    intersect.run(edition)
    select.run(edition, "robust")
    crops.run(edition)
    score_crops.run(edition, "robust")
    review_apply.run(edition, "robust")
    export.run(edition, "robust")
    count.run(edition)
    report.run(edition)


@pytest.mark.long
def test_from_the_list_to_the_set(made: Made) -> None:
    edition = Edition(made.folder)
    run_all(edition)
    record = read_record(edition.scored_with("robust"))
    assert record == ListRecord(
        role="robust", source="lists", name="robust", list_sha256=sha(LIST), beyond_sha256=sha(BEYOND), images=10,
        listed=3, beyond=[id_of(3), id_of(4)],
    )  # fmt: skip
    rows = list(csv.DictReader((edition.export("robust") / "manifest.csv").open()))
    found = {row["image_id"]: (row["file"][-4:], row["confidence"], row["source_confidence"]) for row in rows}
    assert found == {
        id_of(1): ("JPEG", "0.75", "0.75"),
        id_of(2): (".png", "", "0.5"),  # nobody has scored the crop
        id_of(3): ("JPEG", "", ""),
        id_of(4): ("JPEG", "", ""),
    }
    assert verify(edition.export("robust"), decode=True).problems == []
    assert len(read_table(edition.crop_scores("robust"), CROP_SCORES, imagenet())) == 0
    card = " ".join((edition.export("robust") / "README.md").read_text().split())
    assert "- published list of robust: 3 images; no network was run" in card
    assert f"- SHA-256 of the list: {sha(LIST)}" in card
    assert "whose confidence is not known and left empty: 2" in card
    assert "What it predicts for any other image or for a crop is not known" in card
    totals = {path.stem: json.loads(path.read_text()) for path in (edition.metrics / "totals").glob("*.json")}
    assert totals["images"] == {"robust": 4}
    assert totals["images_cropped"] == {"robust": 1}
    assert not {"images_wrong_after_crop", "confidence_change_by_crop", "accuracy_top1"} & set(totals)
    assert review_status(edition).progress["robust"].at_least == 1


@pytest.mark.long
def test_the_release_of_lists_can_be_recomputed(made: Made) -> None:
    """Without predictions of crops, and with images whose confidence is not known."""
    made.others["export"] = {"version": "1.0.0", "date": "2026-01-31"}
    made.params(classes=["n01440764", "n02119789", "n02123045"])
    edition = Edition(made.folder)
    run_all(edition)
    for path in edition.reviews.glob("*/*.yaml"):
        # a key on each line, as the program from_verdicts.py reads it
        path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text())))
    publication = release.run(edition, made.folder / "released", with_images=False, key=None)
    assert (publication.images, problems(publication.folder)) == (4, [])
    edit(publication.folder / "sets" / "robust" / "manifest.csv", "top5,0.75,0.75,", "top5,,,")
    assert any("confidence ; expected 0.75" in problem for problem in problems(publication.folder))


def test_the_report_shows_no_made_up_confidence(made: Made) -> None:
    edition = Edition(made.folder)
    run_all(edition)
    page = (edition.report / "classes" / "n02119789.html").read_text()
    assert "–" in page
    assert "0.500" not in page  # what orders it in the tables is next below one half
    text = (edition.report / "index.html").read_text()
    for words in (
        "0 candidates, 0 kept</figcaption>",
        "Margins",
        "classified correctly</th>",
        "make robustness",
        "relaxed",
    ):
        assert words not in text.partition("<main>")[2], "that is not known of a list"
    histogram = json.loads((edition.report / "plots" / "confidence" / "robust_top5.json").read_text())
    assert sum(each["candidates"] for each in histogram) == 3
    library = open_library(edition)
    assert library.unknown_confidences == {"robust": {id_of(3), id_of(4)}}
    assert library.seen_by == {}


def test_margins_are_of_known_confidences() -> None:
    margins = pd.DataFrame({"image_id": ["a", "b", "c"], "next_image_id": ["x", "y", "z"]})
    assert count.measured(margins, frozenset({"b", "z"}))["image_id"].tolist() == ["a"]


def test_a_changed_list_is_refused_before_anything_is_read(made: Made) -> None:
    (made.folder / "lists.csv").write_text(LIST.replace("0.875", "0.8125"))
    with pytest.raises(
        CleansetError, match=r"lists\.csv: SHA-256 .*, expected .* as in params\.yaml \(models\.robust\.sh"
    ):
        preprocess.run(Edition(made.folder))
    assert not Edition(made.folder).index.exists()


def test_an_unpinned_list_is_refused(made: Made) -> None:
    edition = Edition(made.folder)
    preprocess.run(edition)
    del made.others["models"]["robust"]["beyond_sha256"]
    made.params()
    with pytest.raises(CleansetError) as error:
        score.run(edition, "robust")
    assert str(error.value) == (
        "params.yaml: no sha256 of the list of robust: run cleanset models --pin first, which writes it"
    )


@pytest.mark.long
def test_scores_need_no_torch(made: Made) -> None:
    edition = Edition(made.folder)
    preprocess.run(edition)
    program = (
        "import sys; sys.modules |= dict.fromkeys(('torch', 'timm', 'torchvision'))\n"
        "from pathlib import Path; from cleanset.edition.paths import Edition\n"
        "from cleanset.stages import score, crops, score_crops\n"
        "edition = Edition(Path(sys.argv[1])); edition.reviews.mkdir()\n"
        "score.run(edition, 'robust'); crops.run(edition); score_crops.run(edition, 'robust')\n"
    )
    subprocess.run([sys.executable, "-c", program, str(made.folder)], check=True)
    scores = read_table(edition.scores("robust"), SCORES, imagenet())
    assert [row[0] for row in scores["top5_probability"]][:2] == [0.75, 0.5]
