"""Labels that the models contradict: found, looked at on the page, corrected in a new table."""

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cleanset.classes import class_table, imagenet
from cleanset.dataset import label_sources
from cleanset.dataset.label_sources import PLACE, ImageLabels, SourceLabels, known_sources
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.review import labels as review_labels
from cleanset.review.file_format import parse_reviews
from cleanset.review.labels import Contradiction, as_opinions, contradictions, opinions_on, write_corrected
from cleanset.review.opinions import read_opinions
from cleanset.review.page.library import label_library, open_library
from cleanset.review.page.server import open_session
from cleanset.review.page.tab import Tab
from cleanset.review.page.view import render
from cleanset.review.store import read_reviews
from cleanset.review.verdicts import Clean, Rejected, Review
from tests import own_edition
from tests.dataset.label_files import ANNOTATIONS, PROPOSED, write_sources
from tests.evaluation.compare.command import cleanset, says
from tests.review.texts import save, sent
from tests.ten_images import drawn_image, id_of

SHA = "0" * 64


def index_of(labels: Sequence[int | None]) -> pd.DataFrame:
    """The index of images 0, 1, …; None: an image of two labels."""
    ids = [f"{place:02d}" for place in range(len(labels))]
    real = [[0, 1] if label is None else [label] for label in labels]
    return pd.DataFrame({"image_id": ids, "real_classes": real, "single": [label is not None for label in labels]})


def scores_of(probabilities: Sequence[Sequence[float]]) -> pd.DataFrame:
    """The scores of a model by the probability of each of four classes."""
    order = [np.argsort(-np.array(row), kind="stable").tolist() for row in probabilities]
    return pd.DataFrame(
        {
            "image_id": [f"{place:02d}" for place in range(len(probabilities))],
            "top5_class": [[*of_row, -1] for of_row in order],
            "top5_probability": [
                [*(row[each] for each in of_row), 0.0] for row, of_row in zip(probabilities, order, strict=True)
            ],
        }
    )


def found(labels: Sequence[int | None], *models: Sequence[Sequence[float]]) -> list[Contradiction]:
    return contradictions(index_of(labels), [scores_of(each) for each in models])


CLEAR = [[0.9, 0.1, 0, 0], [0.8, 0.2, 0, 0], [0.1, 0.9, 0, 0], [0.2, 0.8, 0, 0], [0, 0, 0.7, 0.3], [0, 0, 0.3, 0.7]]
"""Two images of each of the first two classes, one of each of the others."""


def rounded(contradicted: Sequence[Contradiction]) -> list[tuple[str, int, float, int, float]]:
    return [
        (each.image_id, each.label, round(each.confidence, 6), each.predicted, round(each.predicted_confidence, 6))
        for each in contradicted
    ]


def test_a_label_is_contradicted_by_a_more_probable_class_above_its_threshold() -> None:
    labels = [0, 0, 1, 1, 2, 3]
    assert found(labels, CLEAR) == []
    # the mean probability of class 1 is (0.9 + 0.8) / 2 = 0.85
    assert rounded(found([*labels, 0], [*CLEAR, [0.1, 0.86, 0.04, 0]])) == [("06", 0, 0.1, 1, 0.86)]
    assert found([*labels, 0], [*CLEAR, [0.11, 0.84, 0.05, 0]]) == []
    # below the label, whatever the threshold
    assert rounded(found([0, 1], [[0.6, 0.4, 0, 0], [0.7, 0.3, 0, 0]])) == [("01", 1, 0.3, 0, 0.7)]
    # of several models the mean
    models = [[0.6, 0.4, 0, 0], [0.9, 0.1, 0, 0]], [[0.8, 0.2, 0, 0], [0.7, 0.3, 0, 0]]
    assert rounded(found([0, 1], *models)) == [("01", 1, 0.2, 0, 0.8)]


def test_the_least_probable_label_comes_first_and_the_most_probable_class_is_reported() -> None:
    labels = [0, 0, 1, 1, 2, 3, 0, 3]
    ranked = found(labels, [*CLEAR, [0.05, 0, 0.95, 0], [0.9, 0.09, 0, 0.01]])
    assert [(each.image_id, each.predicted) for each in ranked] == [("07", 0), ("06", 2)]


def test_of_labels_of_one_probability_the_most_probable_other_class_comes_first() -> None:
    """Then the first image id: a label that no model has among its five has the probability 0."""
    labels = [0, 0, 1, 1, 2, 3, 1, 2, 0]
    ranked = found(labels, [*CLEAR, [0.87, 0, 0.13, 0], [0.95, 0.05, 0, 0], [0, 0.95, 0.05, 0]])
    assert rounded(ranked) == [("07", 2, 0, 0, 0.95), ("08", 0, 0, 1, 0.95), ("06", 1, 0, 0, 0.87)]


def test_images_of_several_labels_are_left_out() -> None:
    ranked = found([0, 0, 1, 1, 2, 3, None, 0], [*CLEAR, [0, 0, 1, 0], [0, 0, 1, 0]])
    assert [each.image_id for each in ranked] == ["07"]


def test_the_models_are_averaged() -> None:
    labels, sure, unsure = [0, 0, 1, 1, 2, 3, 0], [0.1, 0.9, 0, 0], [0.6, 0.4, 0, 0]
    assert [each.image_id for each in found(labels, [*CLEAR, sure], [*CLEAR, sure])] == ["06"]
    assert found(labels, [*CLEAR, sure], [*CLEAR, unsure]) == []


def test_those_of_cleanlab() -> None:
    """cleanlab 2.9.0, find_label_issues by confident learning, ranked by self-confidence; 9 labels are wrong."""
    rng = np.random.default_rng(11)
    true = np.arange(60) % 4
    values = np.exp(rng.normal(size=(60, 4)) + 3 * np.eye(4)[true])
    values = np.round(values / values.sum(axis=1, keepdims=True), 4)
    labels, wrong = true.copy(), rng.choice(60, 9, replace=False)
    labels[wrong] = (labels[wrong] + 1 + rng.integers(0, 3, 9)) % 4
    ranked = [int(each.image_id) for each in found(labels.tolist(), values.tolist())]
    assert ranked == GOLDEN


GOLDEN = [49, 2, 53, 10, 3, 34, 33, 24]


# The verdict


CATS = class_table([("cat", "cat"), ("dog", "dog"), ("null", "null")], "here")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ("verdict: reject, reason: blur, correct_class: dog", "correct_class with another reason"),
        ("verdict: unsure, correct_class: dog", "correct_class with another reason"),
        ("verdict: reject, reason: wrong_class, correct_class: Dog", "correct_class 'Dog'; expected a class"),
        ("verdict: reject, reason: wrong_class, correct_class: cat", "correct_class cat, the class of this file"),
    ],
)
def test_invalid_correct_classes(fields: str, message: str) -> None:
    with pytest.raises(CleansetError, match=rf"^here, line 2, cat/1\.png.*{re.escape(message)}"):
        parse_reviews(f"cat:\n  cat/1.png: {{{fields}, sha256: '{SHA}'}}\n", "cat", "here", CATS)


def test_any_class_is_written_and_read_back(tmp_path: Path) -> None:
    for key in ("dog", "null"):
        review = Review(verdict=Rejected("wrong_class", key), sha256=SHA)
        save(tmp_path, "ada", "cat", "cat/1.png", review, classes=CATS)
        ((votes,),) = (read_reviews(tmp_path, CATS).values(),)
        assert votes["ada"].review == review


# The page and the table


@pytest.fixture
def edition(made: Path, tmp_path: Path) -> Edition:
    """A copy of the edition, to be reviewed."""
    shutil.copytree(made, tmp_path / "copy", symlinks=True)
    return Edition(tmp_path / "copy" / "own")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An edition of four cats and four dogs; the model takes cat/3.png for a dog, and dog/3.png for a cat."""
    tmp_path = tmp_path_factory.mktemp("made")
    lines = ["file,cat,dog"]
    for number, key in enumerate(("cat", "dog")):
        (tmp_path / "images" / key).mkdir(parents=True)
        for place in range(4):
            drawn_image(40, 40, seed=10 * number + place).save(tmp_path / "images" / key / f"{place}.png")
            sure = (0.05 + 0.01 * number) if place == 3 else 0.9
            lines.append(
                f"{key}/{place}.png," + ",".join(f"{each:.2f}" for each in (sure, 1 - sure)[:: 1 - 2 * number])
            )
    (tmp_path / "scores.csv").write_text("\n".join(lines) + "\n")
    command = cleanset("edition", "own", "--images", "images", "--scores", "scores.csv", cwd=tmp_path)
    assert says(command)[0] == 0
    edition = Edition(tmp_path / "own")
    own_edition.run(edition, "preprocess", "score", "intersect", "select")
    return tmp_path


def run(edition: Edition, *command: str) -> tuple[int, str]:
    code, out, errors = says(cleanset(*command, cwd=edition.folder))
    return code, out + errors


def test_the_list_is_a_file_of_second_opinions(edition: Edition) -> None:
    assert run(edition, "review", "labels") == (
        0,
        'image_id,flag,source\ncat/3.png,wrong class,"dog 95 %, cat 5 %"\ndog/3.png,wrong class,"cat 94 %, dog 6 %"\n',
    )


def study(name: str, labels: Mapping[str, ImageLabels]) -> SourceLabels:
    return SourceLabels(source=known_sources()[name], labels=labels)


def test_what_studies_say_is_next_to_the_models() -> None:
    """Each study that has the image, by its finding on the label that the models contradict."""
    found = [Contradiction("a", 281, 0.05, 282, 0.9), Contradiction("b", 0, 0.1, 1, 0.8)]
    studies = [
        study("finegrained", {"a": ImageLabels(classes=(281,)), "b": ImageLabels(classes=(0, 1))}),
        study("label_errors_3of5", {"a": ImageLabels(classes=()), "b": ImageLabels(classes=(1,))}),
        study("multilabel", {"a": ImageLabels(classes=(282,), unclear=(281,))}),
    ]
    opinions = opinions_on(found, studies, imagenet())
    assert {image_id: [(each.flag, each.source) for each in of_image] for image_id, of_image in opinions.items()} == {
        "a": [
            ("wrong class", "tiger cat 90 %, tabby 5 %"),
            ("same class", "finegrained"),
            ("no class", "label errors 3of5"),
            ("unclear class", "multilabel: tiger cat"),
        ],
        "b": [
            ("wrong class", "goldfish 80 %, tench 10 %"),
            ("several objects", "finegrained: tench, goldfish"),
            ("wrong class", "label errors 3of5: goldfish"),
        ],
    }
    path_text = as_opinions(opinions)
    assert len(path_text.splitlines()) == 8


def test_the_list_with_studies_can_be_read_as_opinions(tmp_path: Path) -> None:
    many = study("multilabel", {id_of(1): ImageLabels(classes=tuple(range(60)))})
    opinions = opinions_on([Contradiction(id_of(1), 99, 0.1, 0, 0.8)], [many], imagenet())
    path = tmp_path / "opinions.csv"
    path.write_text(as_opinions(opinions))
    assert read_opinions([path], imagenet()) == opinions


def test_the_studies_of_an_edition(edition: Edition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All whose files are there, or those of export.label_sources; none for your own images."""
    sources = write_sources(tmp_path / PLACE, {"multilabel": PROPOSED, "imagenet_m": ANNOTATIONS})
    monkeypatch.setattr(label_sources, "known_sources", lambda: sources)
    monkeypatch.setattr(review_labels, "known_sources", lambda: sources)
    shutil.copy(edition.params_yaml, tmp_path / "params.yaml")
    found = review_labels.studies_of(Edition(tmp_path), imagenet())
    assert [each.source.name for each in found] == ["multilabel", "imagenet_m"]
    text = (tmp_path / "params.yaml").read_text()
    (tmp_path / "params.yaml").write_text(
        re.sub(r"(?m)^export:(.*)$", r"export:\1\n  label_sources: [imagenet_m]", text, count=1)
    )
    found = review_labels.studies_of(Edition(tmp_path), imagenet())
    assert [each.source.name for each in found] == ["imagenet_m"]
    assert review_labels.studies_of(Edition(tmp_path), edition.read_classes()) == []
    (tmp_path / "params.yaml").write_text(text)
    shutil.rmtree(tmp_path / PLACE)
    assert review_labels.studies_of(Edition(tmp_path), imagenet()) == []


def test_the_images_are_looked_at_and_the_class_is_reported(edition: Edition) -> None:
    library, of_models = label_library(edition, open_library(edition))
    session = open_session(edition, library, "ada", of_models=of_models)
    tab = Tab(session)
    tab.start()
    shown = render(tab)["view"]
    assert re.findall('data-card="(.*?)"', shown) == ["cat/3.png"]
    assert "wrong class?" in shown
    assert "dog 95 %, cat 5 %" in shown
    tab.press(sent("i", ["cat/3.png"]))
    assert tab.mode == "search"
    tab.choose_class(0, sent("hit", ["cat/3.png"]))
    assert tab.notice is not None
    assert "the image is in that class already" in tab.notice.text
    tab.press(sent("i", ["cat/3.png"]))
    tab.leave_search()
    assert (tab.mode, tab.draft) == ("class", None)
    tab.press(sent("i", ["cat/3.png"]))
    tab.choose_class(1, sent("hit", ["cat/3.png"]))
    assert tab.cursor.class_index == 1
    tab.press(sent("c", ["dog/3.png"]))
    assert tab.ended
    session.hints.close()
    votes = {
        key[1]: by_reviewer["ada"].review
        for key, by_reviewer in read_reviews(edition.reviews, edition.read_classes()).items()
    }
    cat, dog = votes["cat/3.png"], votes["dog/3.png"]
    assert cat.verdict == Rejected("wrong_class", "dog")
    assert dog.verdict == Clean()
    # another reviewer is not asked any more
    other = open_session(edition, library, "ben", of_models=of_models)
    assert other.unsettled() == []
    other.hints.close()


def test_another_reason_takes_the_class_back(edition: Edition) -> None:
    library, of_models = label_library(edition, open_library(edition))
    session = open_session(edition, library, "ada", of_models=of_models)
    tab = Tab(session)
    tab.start()
    render(tab)
    tab.press(sent("i", ["cat/3.png"]))
    tab.choose_class(1, sent("hit", ["cat/3.png"]))
    tab.open(0, "cat/3.png")
    render(tab)
    assert "reject: wrong class, dog" in render(tab)["view"]
    tab.press(sent("r", ["cat/3.png"]))
    tab.press(sent("l", ["cat/3.png"]))
    own = session.own(0, "cat/3.png")
    session.hints.close()
    assert own is not None
    assert own.verdict == Rejected("blur")


def test_the_corrected_table(edition: Edition) -> None:
    wrong = {"verdict": "reject", "reason": "wrong_class"}
    others = {"cat/3.png": wrong | {"correct_class": "dog"}, "dog/3.png": wrong}
    own_edition.review(edition, "ada", others)
    assert run(edition, "review", "relabel", "labels.csv") == (
        0,
        "labels.csv: 1 of 8 labels corrected; wrong class, but no single correct class: dog/3.png\n",
    )
    assert (edition.folder / "labels.csv").read_text() == (
        "file,class\ncat/0.png,cat\ncat/1.png,cat\ncat/2.png,cat\ncat/3.png,dog\n"
        "dog/0.png,dog\ndog/1.png,dog\ndog/2.png,dog\ndog/3.png,dog\n"
    )
    code, out = run(edition, "review", "relabel", "labels.csv")
    assert (code, out) == (1, "error: labels.csv: exists already; expected a new file: move it away\n")
    again = ("edition", "../new", "--images", "../images", "--labels", "labels.csv")
    assert run(edition, *again)[0] == 0


def test_reviewers_who_name_different_classes_and_the_board(edition: Edition) -> None:
    """The board overrules; without it, exactly one class must be given."""
    wrong = {"verdict": "reject", "reason": "wrong_class"}
    own_edition.review(edition, "ada", {"cat/3.png": wrong | {"correct_class": "dog"}})
    own_edition.review(edition, "board", {"cat/3.png": wrong | {"note": "a fox"}} | NOTED)
    assert run(edition, "review", "relabel", "labels.csv") == (
        0,
        "labels.csv: 0 of 8 labels corrected; wrong class, but no single correct class: cat/3.png\n",
    )


NOTED = {f"{key}/{place}.png": {"verdict": "clean", "note": "seen"} for key in ("cat", "dog") for place in range(3)} | {
    "dog/3.png": {"verdict": "clean", "note": "seen"}
}


def test_what_has_no_scores_or_no_labels_of_its_own_is_refused(tmp_path: Path) -> None:
    random = own_edition.make(tmp_path, each=3)
    assert run(random, "review", "labels") == (
        1,
        "error: params.yaml: models images are lists or random; expected a model with scores of every image\n",
    )


def test_the_labels_of_imagenet_are_not_corrected(tmp_path: Path) -> None:
    """Before anything is read or written: they are the published ones."""
    (tmp_path / "params.yaml").write_text("")
    with pytest.raises(CleansetError) as raised:
        write_corrected(Edition(tmp_path), tmp_path / "labels.csv")
    assert str(raised.value) == f"{tmp_path}: images of ImageNet; expected an edition of your own images"
    assert not (tmp_path / "labels.csv").exists()
