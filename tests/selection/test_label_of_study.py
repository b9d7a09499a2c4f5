"""`dataset.label` by the name of a study: which images have a label, in memory, in an edition and in its texts."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from pydantic import ValidationError

from cleanset.classes import imagenet
from cleanset.dataset import label_sources
from cleanset.edition.labels import read_labelled_index
from cleanset.edition.params import Dataset, Export, checked_params
from cleanset.edition.paths import Edition
from cleanset.edition.readings import readings
from cleanset.errors import CleansetError
from cleanset.selection.candidates import NAMED_CLASSES, candidates, correct, relaxed, shared
from cleanset.selection.metrics import accuracy
from cleanset.selection.rule import Rule
from cleanset.sets.release import check_label
from cleanset.stages import preprocess
from tests.dataset.label_files import PROPOSED, write_sources
from tests.documents import blocks
from tests.ten_images import Made, id_of

# image, reassessed labels, classes of the study, top-1 class
IMAGES = [
    ("a", [1], (1,), 1),  # confirmed
    ("b", [1], (1, 2), 1),  # among others
    ("c", [1], (2,), 1),  # denied
    ("d", [1], (), 1),  # not named, or not in the study
    ("e", [1], (1,), 2),  # confirmed, and misclassified
    ("f", [1, 2], (2, 3), 2),  # several labels, the top-1 class named
    ("g", [1, 2], (1,), 2),  # several labels, another one named
]
INDEX = pd.DataFrame(
    {
        "image_id": [image_id for image_id, *_ in IMAGES],
        "ilsvrc_class": [9] * len(IMAGES),
        "real_classes": [real for _, real, *_ in IMAGES],
        "single": [len(real) == 1 for _, real, *_ in IMAGES],
        NAMED_CLASSES: [named for _, _, named, _ in IMAGES],
    }
)
SCORES = pd.DataFrame(
    {
        "image_id": INDEX["image_id"],
        "top5_class": [[top1, 5, 6, 7, 8] for *_, top1 in IMAGES],
        "top5_probability": [[0.5, 0.1, 0.1, 0.1, 0.1]] * len(IMAGES),
        "log_odds": np.float32(0),
    }
)


def test_only_what_the_study_names_alone_has_the_label() -> None:
    assert correct(INDEX, SCORES, "joined")["image_id"].tolist() == ["a"]
    assert correct(INDEX, SCORES)["image_id"].tolist() == ["a", "b", "c", "d"]
    assert shared(INDEX, [SCORES, SCORES], "joined")["image_id"].tolist() == ["a"]


def test_of_several_labels_the_study_names_the_class() -> None:
    assert relaxed(INDEX, SCORES, "joined")["image_id"].tolist() == ["f"]
    assert relaxed(INDEX, SCORES)["image_id"].tolist() == ["f", "g"]


def test_candidates_and_metrics_follow_it() -> None:
    rule = Rule(label="joined")
    found = candidates(INDEX, shared(INDEX, [SCORES], "joined"), SCORES, [1, 2], rule)
    assert list(zip(found["image_id"], found["class_index"], found["tier"], strict=True)) == [
        ("a", 1, "top5"),
        ("f", 2, "relaxed"),
    ]
    assert accuracy(INDEX, SCORES, "joined")["correct_of_one_label"] == 1
    # by the reassessed labels alone
    assert accuracy(INDEX, SCORES, "joined")["accuracy_real"] == accuracy(INDEX, SCORES)["accuracy_real"]


def test_an_edition_reads_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Made(tmp_path).archives().params()
    edition = Edition(tmp_path)
    preprocess.run(edition)
    dataset = Dataset(images="tar", label="multilabel")
    with pytest.raises(CleansetError, match=r"data/raw/labels/multilabel\.csv: missing; .* and put it there"):
        read_labelled_index(edition, dataset, imagenet())
    sources = write_sources(tmp_path / label_sources.PLACE, {"multilabel": PROPOSED})
    monkeypatch.setattr(label_sources, "known_sources", lambda: sources)
    index = read_labelled_index(edition, dataset, imagenet()).set_index("image_id")
    assert index[NAMED_CLASSES].loc[[id_of(1), id_of(2), id_of(4), id_of(8)]].tolist() == [(), (0, 7), (278,), ()]
    assert NAMED_CLASSES not in read_labelled_index(edition, Dataset(images="tar"), imagenet())


def test_params() -> None:
    assert not Dataset(images="tar", label="both").label_is_study
    with pytest.raises(ValidationError, match="'kisel'; expected one of real, both, joined, finegrained"):
        Dataset(images="tar", label="kisel")
    with pytest.raises(ValidationError, match="label joined with reader folder; expected real"):
        Dataset(images="photos", reader="folder", label="joined")


def test_the_keys_in_the_docs_are_valid(repository: Path) -> None:
    label, sources = (yaml.safe_load(each) for each in blocks(repository, "yaml", "docs/labels.md"))
    assert Dataset(images="tar", **label["dataset"]).label == "joined"
    assert Export(**sources["export"]).label_sources[-1] == "multilabel"


def test_card_and_report_name_the_study() -> None:
    params = checked_params(
        {
            "root": ".",
            "protocol": "as_written",
            "dataset": {"images": "tar", "label": "joined"},
            "models": {"standard": {"source": "timm", "name": "resnet50"}},
        },
        "params",
    )
    (sentence,) = [each for each in readings(params, "standard") if "joined" in each]
    assert sentence.startswith(
        "An image has a label where its one reassessed label is also the only class that the study"
    )
    assert "Kisel et al. 2025" in sentence
    with pytest.raises(CleansetError, match=r"dataset\.label: joined; expected real or both"):
        check_label(Edition(Path("mine")), params)
