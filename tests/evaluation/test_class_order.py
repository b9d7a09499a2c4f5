"""The order of classes that have numbers for names: stated, found where it is another, and believed if stated."""

import re
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from PIL import Image

from cleanset import evaluate
from cleanset.classes import class_table, imagenet
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.evaluation.class_order import in_other_order, order_statement, places_of
from cleanset.scoring.fingerprints import sources_sha256
from cleanset.scoring.record import ScoreRecord, read_record
from cleanset.statistics.numbering import OtherNumbering
from cleanset.tables import SCORES, read_table
from tests.evaluation.compare.command import cleanset, says

TWELVE = class_table(((str(number), str(number)) for number in range(12)), "here")
BY_BRIGHTNESS = """
import torch

class Brightness(torch.nn.Module):
    # output k is the highest for images of brightness 20 k
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor(0.02))

    def forward(self, pixels):
        levels = pixels[:, 0, 8:24, 8:24].mean((1, 2)) * 255
        return -self.scale * (levels[:, None] - torch.arange(12, dtype=levels.dtype) * 20) ** 2

def make(): return Brightness(), "timm-bicubic-32-32"{order}
"""


def test_numbers_within_names_are_compared_as_numbers() -> None:
    keys = ["b2", "B10", "a", "10 x", "9 x", "fold 2.10", "fold 2.9", "007"]
    table = class_table(((key, key) for key in keys), "here")
    found = [table.keys[index] for index in table.natural_order]
    assert found == ["007", "9 x", "10 x", "a", "b2", "B10", "fold 2.9", "fold 2.10"]


def test_the_order_is_stated_where_it_surprises() -> None:
    assert order_statement(class_table([("cat", "cat"), ("dog 1", "dog"), ("dog 2", "dog")], "here")) == ""
    assert order_statement(imagenet()) == ""
    assert order_statement(TWELVE).startswith(
        "Class indices and the outputs of networks follow the sorted names: 0, 1, 10, 11, 2 and 7 more. If a network's "
        "outputs follow the numbers, 0, 1, 2, 3, 4 and 7 more, a callable returns the order"
    )


def test_a_stated_order_gives_the_output_of_each_class() -> None:
    assert places_of("natural", TWELVE, "mine") == [0, 1, 10, 11, 2, 3, 4, 5, 6, 7, 8, 9]
    assert places_of([str(number) for number in range(11, -1, -1)], TWELVE, "mine") == [
        11, 10, 1, 0, 9, 8, 7, 6, 5, 4, 3, 2,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("order", "found"),
    [
        ("sorted", "1 keys, of them 'sorted'"),
        (["0", "1"], "2 keys"),
        ([*map(str, range(11)), "x"], "12 keys, of them 'x'"),
        ([*map(str, range(11)), "0"], "12 keys"),
        (range(12), "1 keys, of them range(0, 12)"),
        ([*range(12)], "12 keys, of them 0"),
    ],
)
def test_another_order_is_refused(order: object, found: str) -> None:
    expected = f'mine: returns {found} as the order of its outputs; expected "natural", or each of the 12 classes once'
    with pytest.raises(CleansetError, match=f"^{re.escape(expected)}: 0, 1, 10, 11, 2 and 7 more$"):
        places_of(order, TWELVE, "mine")


def test_exchanged_classes_are_reported() -> None:
    prediction_of = {**{index: index for index in range(12)}, 2: 3, 3: 2}
    found = OtherNumbering(prediction_of=prediction_of, images=240, correct=231, correct_before=192)
    assert in_other_order(found, TWELVE) == (
        "its classes are probably numbered differently, or labels are swapped: 2 of 12 renumbered to fit half of the "
        "images, 10 as 11, 11 as 10; 96.25 % of the others are then correct, 80.00 % in the order of classes.tsv"
    )


def draw_numbered(folder: Path, each: int) -> None:
    """Twelve folders of `each` images, of brightness 20 times the name of the folder."""
    random = np.random.default_rng(0)
    for number in range(12):
        (folder / str(number)).mkdir(parents=True, exist_ok=True)
        for place in range(each):
            pixels = np.full((32, 32, 3), 20 * number, np.uint8)
            pixels[:4, :4] = random.integers(0, 255, (4, 4, 3))
            Image.fromarray(pixels).save(folder / str(number) / f"{place}.png")


REFUSAL = (
    "its classes are probably numbered differently, or labels are swapped: 10 of 12 renumbered to fit half of the "
    'images, in the order of the numbers ("natural"); 100.00 % of the others are then correct, 16.67 % in the order of '
    "classes.tsv; a callable returns the order of its outputs as a third value: the keys of the classes, or "
    '"natural", as cleanset docs own_model describes'
)
SORTED = [int(key) for key in TWELVE.keys]


@pytest.mark.exhaustive
@pytest.mark.slow
def test_an_edition_of_numbered_folders(tmp_path: Path) -> None:
    """Refused, not a set of two classes; then with the stated order, then with another network again, then believed."""
    draw_numbered(tmp_path / "photos", 3)
    nets = tmp_path / "nets.py"
    nets.write_text(BY_BRIGHTNESS.format(order=""))
    given = ("edition", "own", "--images", "photos", "--model", "mine=module:nets:make")
    code, out, _ = says(cleanset(*given, cwd=tmp_path))
    assert code == 0
    assert out.startswith("Class indices and the outputs of networks follow the sorted names: 0, 1, 10, 11, 2 and 7 mo")
    own = tmp_path / "own"
    edition = Edition(own)
    assert says(cleanset("preprocess", cwd=own))[0] == 0

    def score(order: str) -> tuple[int, str]:
        (own / "nets.py").write_text(BY_BRIGHTNESS.format(order=order))
        assert says(cleanset("models", "--pin", cwd=own))[0] == 0
        code, _, errors = says(cleanset("score", "--model", "mine", cwd=own))
        return code, "".join(line for line in errors.splitlines() if line.startswith("error: "))

    def predictions() -> list[int]:
        scores = read_table(edition.scores("mine"), SCORES, edition.read_classes())
        return [classes[0] for classes in scores["top5_class"]]

    refused = (1, f"error: score mine: {REFUSAL}, which is then believed")
    assert score("") == refused
    assert not edition.scores("mine").exists()
    assert score(', "natural"') == (0, "")
    assert predictions() == [index for index in range(12) for _ in range(3)]
    record = read_record(edition.scored_with("mine"))
    assert isinstance(record, ScoreRecord)
    assert record.module_sha256 == sources_sha256("nets", own)
    # the same weights without the order are another network: scores that were kept are not its own
    assert score("") == refused
    assert score(f", {list(TWELVE.keys)}") == (0, "")
    assert predictions() == [index for index in SORTED for _ in range(3)]


def test_predictions_on_numbered_folders(tmp_path: Path) -> None:
    """In the order of the numbers, then of the names; then the same accuracy of more images, which is above chance."""
    draw_numbered(tmp_path / "photos", 3)
    assert says(cleanset("edition", "own", "--images", "photos", cwd=tmp_path))[0] == 0
    assert says(cleanset("preprocess", cwd=tmp_path / "own"))[0] == 0

    def noted(indices: list[int], each: int) -> tuple[float, list[str]]:
        numbers = np.repeat(indices, each)
        found = evaluate(numbers, tmp_path / "photos", name="mine", edition=tmp_path / "own")
        assert "follow the sorted names: 0, 1, 10, 11, 2 and 7 more" in str(found).replace("\n", " ")
        return found.accuracy, cast(Any, found.as_dict())["models"][0]["notes"]

    # the files are in the order of the names
    assert noted(SORTED, 3) == (1 / 6, [f"mine: accuracy at chance; {REFUSAL}"])
    assert noted([*range(12)], 3) == (1, [])
    draw_numbered(tmp_path / "photos", 30)
    assert noted(SORTED, 30) == (1 / 6, [f"mine: {REFUSAL}"])


@pytest.mark.slow
def test_a_callable_states_the_order_of_its_outputs(tmp_path: Path) -> None:
    import torch

    from cleanset.evaluation.specs import ModuleModel
    from cleanset.evaluation.user_model import load_module

    digests = []
    # other names, since a module is imported once
    for number, order in enumerate(["", ', "natural"', f", {list(TWELVE.keys)}", ""]):
        name = f"numbered_{number}"
        (tmp_path / f"{name}.py").write_text(BY_BRIGHTNESS.format(order=order))
        loaded = load_module(ModuleModel(f"{name}:make", name, "make", tmp_path), TWELVE)
        pixels = torch.arange(12).view(12, 1, 1, 1).expand(12, 3, 32, 32) * 20 / 255
        expected = [TWELVE.indices[str(number)] for number in range(12)] if "natural" in order else [*range(12)]
        assert loaded.network(pixels).argmax(dim=1).tolist() == expected
        assert loaded.order_is_stated == bool(order)
        digests.append(loaded.weights_sha256)
    assert digests[0] == digests[3]
    assert len(set(digests)) == 3
