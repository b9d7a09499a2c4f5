"""Multi-label accuracies by the definitions of Beyer, Shankar and Vasudevan, and `evaluate --labels`."""

from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import cleanset
from cleanset.dataset import label_sources
from cleanset.dataset.label_sources import ImageLabels
from cleanset.edition.paths import Edition
from cleanset.errors import InputError
from cleanset.evaluation.arguments import Arguments
from cleanset.evaluation.evaluate import run
from cleanset.evaluation.multilabel import SetLabels, labels_from, multilabel_accuracies
from cleanset.evaluation.rendering import as_text, write_page
from cleanset.statistics.groups import Units, share_interval
from cleanset.statistics.shares import wilson
from tests.dataset.label_files import ANNOTATIONS, PROPOSED, write_sources
from tests.sets.conftest import FILES

EXPERTS = {
    "a": ImageLabels(classes=(1, 2)),
    "b": ImageLabels(classes=(1,), unclear=(3,)),
    "c": ImageLabels(classes=(2,)),
    "d": ImageLabels(classes=(9,), problematic=True),
    "e": ImageLabels(classes=()),
}
LABELS = SetLabels(
    original={"a": 1, "b": 1, "c": 2, "d": 9, "e": 4},
    sources={
        "real": {"a": ImageLabels(classes=(1,)), "b": ImageLabels(classes=(1, 3)), "e": ImageLabels(classes=())},
        "multilabel": EXPERTS,
        "imagenet_m": {"b": EXPERTS["b"], "c": EXPERTS["c"]},
    },
)
PREDICTED = {"a": 2, "b": 3, "c": 2, "d": 9, "e": 4}


def test_the_definitions() -> None:
    """Image by image: a 2 is correct to experts, not to ReaL; b 3 is unclear; d is problematic; e shows no class."""
    found = {each.definition.name: each for each in multilabel_accuracies(PREDICTED, LABELS)}
    assert {name: (each.images, each.correct) for name, each in found.items()} == {
        "real": (2, 1),
        "shankar": (4, 2),
        "vasudevan": (4, 3),
        "imagenet_m": (2, 2),
    }
    assert (found["real"].value, found["shankar"].value, found["imagenet_m"].value) == (0.5, 0.5, 1.0)
    # classes 1, 2 and 4: 2 of 2, 1 of 1, 0 of 1
    assert found["vasudevan"].value == pytest.approx((1 + 1 + 0) / 3)
    assert found["vasudevan"].interval is None
    assert found["shankar"].interval == wilson(2, 4)


def test_shares_of_images_are_by_groups() -> None:
    groups = {"a": "one", "b": "one", "c": "two", "d": "two", "e": ""}
    found = {each.definition.name: each for each in multilabel_accuracies(PREDICTED, LABELS, groups)}
    # a and b are wrong, c and e: correct and wrong
    units = Units.of(["one", "one", "two", ""])
    assert found["shankar"].interval == pytest.approx(share_interval([True, False, True, False], units))
    assert found["shankar"].interval != pytest.approx(wilson(2, 4))
    assert found["real"].interval is None
    assert found["vasudevan"].interval is None


def test_the_authors_own_file_comes_first() -> None:
    labels = SetLabels(
        original=LABELS.original, sources={**LABELS.sources, "multilabel_v3": {"a": ImageLabels(classes=(1,))}}
    )
    found = {each.definition.name: each for each in multilabel_accuracies(PREDICTED, labels)}
    assert (found["shankar"].source, found["shankar"].images, found["shankar"].correct) == ("multilabel_v3", 1, 0)


def test_without_studies_there_is_none() -> None:
    assert multilabel_accuracies(PREDICTED, SetLabels(sources={"real": LABELS.sources["real"]})) == []
    only_problematic = SetLabels(original={"d": 9}, sources={"multilabel": {"d": EXPERTS["d"]}})
    assert multilabel_accuracies(PREDICTED, only_problematic) == []


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two small files of studies, which stand in for the published ones."""
    sources = write_sources(tmp_path / "labels", {"multilabel": PROPOSED, "imagenet_m": ANNOTATIONS})
    monkeypatch.setattr(label_sources, "known_sources", lambda: sources)
    return tmp_path / "labels"


def test_evaluate_counts_them_next_to_top1(edition: Edition, folder: Path, tmp_path: Path) -> None:
    """The experts have images 4, 6 and 8 of six: 6 is problematic, 8 shows none of the classes."""
    path = tmp_path / "predictions.csv"
    rows = [f"{file},{each}\n" for file, each in zip(FILES, (0, 0, 278, 281, 278, 282), strict=True)]
    path.write_text("".join(["image,class_index\n", *rows]))
    wanted = Arguments("standard", [], predictions=[f"mine={path}"], labels=folder, out=tmp_path / "out")
    images, (row,) = run(edition, wanted)
    assert [(each.definition.name, each.images, each.correct) for each in row.multilabel] == [
        ("real", 6, 5),
        ("shankar", 2, 1),
        ("vasudevan", 2, 1),
        ("imagenet_m", 1, 1),
    ]
    console = Console(width=80, color_system=None)
    with console.capture() as printed:
        console.print(as_text(images, [row]), highlight=False)
    text = printed.get()
    assert "multi-label, %" in text
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    note = "2 images are cropped, and the labels of multi-label accuracies are of whole images"
    assert note in " ".join(text.split())
    write_page(tmp_path / "page", images, [row])
    assert "Multi-label, in percent. ReaL, by real: of the images" in (tmp_path / "page" / "index.html").read_text()
    assert '"vasudevan": {' in (tmp_path / "out" / "results.json").read_text()


def test_python(edition: Edition, folder: Path) -> None:
    found = cleanset.evaluate(
        np.array([0, 0, 278, 278, 278, 281]), edition.export("standard"), edition=edition.folder, labels=folder
    )
    assert found.multilabel == {"real": 1.0, "shankar": 0.5, "vasudevan": 0.5, "imagenet_m": 1.0}
    assert cleanset.evaluate(np.array([0] * 6), edition.export("standard")).multilabel == {}


def test_images_without_ids(folder: Path) -> None:
    with pytest.raises(InputError, match=r"0 of 1 images have labels in .*; expected a set of ImageNet"):
        labels_from(folder, ["n01440764/cat.png"], SetLabels())
