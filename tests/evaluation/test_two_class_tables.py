"""Results of images of different classes in one process: by turns, in both orders, and in threads."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest

import cleanset
from cleanset.edition.paths import Edition
from cleanset.evaluation.function import Results
from tests.evaluation.conftest import draw
from tests.own_edition import KEYS

pytestmark = pytest.mark.slow


@pytest.fixture
def sets(edition: Edition, own: Edition) -> dict[str, Path]:
    """The folder of a set of three own classes, and of a set of ImageNet's."""
    return {"own": own.export("images"), "imagenet": edition.export("standard")}


def two_mistakes(folder: Path) -> Results:
    """Labels as predictions, but for the first and the last image, which are taken for each other."""
    images = cleanset.load(folder)
    predicted = np.array(images.targets)
    predicted[[0, -1]] = predicted[[-1, 0]]
    return cleanset.evaluate(predicted, images, name="two mistakes")


def everything(results: Results, folder: Path) -> dict[str, str]:
    """All that is printed, stored and shown of results, and what programs get."""
    results.write_page(folder)
    return {
        "json": results.as_json(),
        "text": str(results),
        "repr": repr(results),
        "html": results._repr_html_(),
        "page": (folder / "index.html").read_text(),
    }


@pytest.mark.parametrize(("first", "second"), [("own", "imagenet"), ("imagenet", "own")])
def test_results_stay_when_a_set_of_other_classes_is_opened(
    sets: dict[str, Path], first: str, second: str, tmp_path: Path
) -> None:
    results = two_mistakes(sets[first])
    before = everything(results, tmp_path / "before")
    cleanset.load(sets[second])
    assert everything(results, tmp_path / "after") == before
    two_mistakes(sets[second])
    assert everything(results, tmp_path / "later") == before


def test_each_confusion_has_the_keys_of_its_own_set(sets: dict[str, Path]) -> None:
    results = {name: two_mistakes(folder) for name, folder in sets.items()}
    found = {name: each.as_dict()["models"][0]["confusions"] for name, each in results.items()}
    assert found["own"] == {KEYS[0]: {KEYS[2]: 1}, KEYS[2]: {KEYS[0]: 1}}
    assert found["imagenet"] == {"n01440764": {"n02123045": 1}, "n02123045": {"n01440764": 1}}


def test_chance_is_that_of_the_set(own: Edition, sets: dict[str, Path], tmp_path: Path) -> None:
    """12 of 30 are at chance among three classes, and far above it among a thousand."""
    for key in KEYS:
        for number in range(10):
            draw(tmp_path / "photos" / key / f"{number}.png", (number, 0, 0))
    results = cleanset.evaluate(np.tile([0, 1, 2], 10), tmp_path / "photos", name="guesses", edition=own.folder)
    assert (results.accuracy, len(results.predictions)) == (0.4, 30)
    cleanset.load(sets["imagenet"])
    (note,) = results.as_dict()["models"][0]["notes"]
    assert note.startswith("guesses: accuracy at chance; expected a trained model that predicts the order of classes.")
    assert note in str(results).replace("\n", " ")


def test_a_folder_has_the_classes_of_the_given_edition(own: Edition, tmp_path: Path, folder: Path) -> None:
    draw(tmp_path / "photos" / KEYS[1] / "a.png", (9, 9, 9))
    for _ in range(2):
        of_own = cleanset.evaluate(np.array([1]), tmp_path / "photos", edition=own.folder)
        of_imagenet = cleanset.evaluate(np.array([0, 1, 0]), folder, edition=tmp_path)
        assert of_own.images.classes.keys == KEYS
        assert len(of_imagenet.images.classes) == 1000
        assert (of_own.accuracy, of_imagenet.accuracy) == (1.0, 2 / 3)


@pytest.mark.long
def test_in_threads(sets: dict[str, Path], tmp_path: Path) -> None:
    """Each as alone, however the steps of the two fall together."""
    alone = {name: everything(two_mistakes(folder), tmp_path / name) for name, folder in sets.items()}
    rounds = 6
    barrier = Barrier(len(sets), timeout=60)

    def work(name: str) -> list[dict[str, str]]:
        found = []
        for number in range(rounds):
            barrier.wait()
            found.append(everything(two_mistakes(sets[name]), tmp_path / f"{name} {number}"))
        return found

    with ThreadPoolExecutor(len(sets)) as pool:
        together = dict(zip(sets, pool.map(work, sets), strict=True))
    for name, found in together.items():
        assert found == [alone[name]] * rounds


def test_a_callable_gives_as_many_logits_as_its_set_has_classes(sets: dict[str, Path]) -> None:
    def of_size(classes: int) -> Callable[[np.ndarray], np.ndarray]:
        return lambda batch: np.eye(classes)[np.zeros(len(batch), np.int64)] * 9

    for classes, name in ((3, "own"), (1000, "imagenet"), (3, "own")):
        results = cleanset.evaluate(of_size(classes), sets[name], lambda image: np.zeros(1), name="first class")
        assert set(results.predictions["prediction"]) == {0}
