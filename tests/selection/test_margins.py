"""How far the last image of a class is from the first one out, and what the metrics make of it."""

import os
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given

from cleanset.edition.params import read_params
from cleanset.errors import CleansetError
from cleanset.selection.candidates import candidates, margins, shared
from cleanset.selection.metrics import closeness, top1_minus_published
from cleanset.selection.rule import Rule
from cleanset.stages import count
from tests.properties import examples
from tests.selection.by_hand import index_of, scores_of
from tests.selection.test_oracle import World, candidates_by_code, pick, worlds
from tests.stages.test_stages import edition_in

COLUMNS = ["class_index", "image_id", "confidence", "next_image_id", "next_confidence", "margin"]

Row = tuple[int, str, float, str, float, float]


def rows(table: pd.DataFrame) -> list[Row]:
    return list(table[COLUMNS].sort_values("class_index").itertuples(index=False, name=None))


def margins_of(labels: dict[str, list[int]], *ensemble: dict[str, tuple[int, float]], count: int = 2) -> list[Row]:
    """The margins of the first model."""
    index, tables = index_of(labels), [scores_of(predictions) for predictions in ensemble]
    common = shared(index, tables)
    return rows(margins(candidates(index, common, tables[0], range(1000), Rule(count))))


@pytest.mark.parametrize(
    ("predictions", "expected"),
    [
        ({"a": (5, 0.875), "b": (5, 0.75), "c": (5, 0.5), "d": (5, 0.25)}, [(5, "b", 0.75, "c", 0.5, 0.25)]),
        ({"a": (5, 0.875), "b": (5, 0.75), "c": (6, 0.5)}, []),  # no image is out
        ({"b": (5, 0.5), "c": (5, 0.5), "a": (5, 0.5)}, [(5, "b", 0.5, "c", 0.5, 0.0)]),
    ],
)
def test_the_last_one_in_against_the_first_one_out(
    predictions: dict[str, tuple[int, float]], expected: list[Row]
) -> None:
    assert margins_of({name: [each] for name, (each, _) in predictions.items()}, predictions) == expected


def test_only_what_all_models_classify_correctly_can_take_the_place() -> None:
    """Image c, which the other model misclassifies, and d with two labels are not rivals."""
    labels = {"a": [5], "b": [5], "c": [5], "d": [5, 6], "e": [5]}
    mine = {"a": (5, 0.875), "b": (5, 0.75), "c": (5, 0.625), "d": (5, 0.625), "e": (5, 0.5)}
    other = mine | {"c": (6, 0.625)}
    assert margins_of(labels, mine, other) == [(5, "b", 0.75, "e", 0.5, 0.25)]


def test_the_difference_of_two_float32_is_exact() -> None:
    predictions = {"a": (5, 0.1), "b": (5, 0.09999999)}
    ((*_, margin),) = margins_of({"a": [5], "b": [5]}, predictions, count=1)
    assert margin == 0.10000000149011612 - 0.09999998658895493


@examples(20, fast=4)
@given(worlds())
def test_against_an_oracle(world: World) -> None:
    expected = list[Row]()
    for class_index in world.classes:
        easy = [
            image
            for image in world.images(0)
            if image.labels == (class_index,) and set(image.predictions) == {class_index}
        ]
        ranked = pick(easy)
        if len(ranked) > world.count:
            last, first_out = ranked[world.count - 1], ranked[world.count]
            expected.append(
                (
                    class_index,
                    last.image_id,
                    last.confidence,
                    first_out.image_id,
                    first_out.confidence,
                    last.confidence - first_out.confidence,
                )
            )
    assert rows(margins(candidates_by_code(world, 0))) == sorted(expected)


# The metrics


def test_closeness() -> None:
    margin, log_odds = [0.25, 1e-5, 9.999e-6, 1.23456789e-7, 0.0], [2.0, 0.5, 0.25, 0.125, 2.5e-5]
    table = pd.DataFrame({"margin": margin, "log_odds_margin": log_odds})

    def numbers(below: int, smallest: float, smallest_in_log_odds: float) -> dict[str, float]:
        return {
            "margins_below_1e-5": below,
            "margin_smallest_ppm": smallest,
            "log_odds_margin_smallest_ppm": smallest_in_log_odds,
        }

    assert closeness(table) == numbers(3, 0.0, 25.0)
    assert closeness(table[:4]) == numbers(2, 0.123457, 125_000.0)
    assert closeness(table[:2]) == numbers(0, 10.0, 500_000.0)


def test_without_any_margin_there_is_no_smallest() -> None:
    assert closeness(pd.DataFrame({"margin": [], "log_odds_margin": []})) == {"margins_below_1e-5": 0}


@pytest.mark.parametrize(
    ("top1", "printed", "line"),
    [
        (63.5, 64.02, {"accuracy_top1_minus_published": -0.52}),
        (76.9, 76.9, {"accuracy_top1_minus_published": 0.0}),
        (80.41, 80.38, {"accuracy_top1_minus_published": 0.03}),
        (80.41, None, {}),
    ],
)
def test_top1_minus_published(top1: float, printed: float | None, line: dict[str, float]) -> None:
    assert top1_minus_published(top1, printed) == line


@pytest.mark.long
@pytest.mark.slow
def test_the_line_holds_the_models_that_have_a_published_number(tmp_path: Path) -> None:
    """And `dvc metrics show` has a dash for the others."""
    edition = edition_in(tmp_path)
    count.run(edition)
    line = edition.metrics / "totals" / "accuracy_top1_minus_published.json"
    assert not line.exists()
    params = (tmp_path / "params.yaml").read_text()
    (tmp_path / "params.yaml").write_text(params + "count: {published_top1: {norm_robust: 88}}\n")
    count.run(edition)
    assert line.read_text() == '{"norm_robust": -0.5}\n'
    (tmp_path / "dvc.yaml").write_text("metrics: [metrics]\n")
    environment = os.environ | {"DVC_SITE_CACHE_DIR": str(tmp_path / "site"), "COLUMNS": "120"}
    for command in (["dvc", "init", "--quiet", "--no-scm"], ["dvc", "metrics", "show"]):
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    columns = {row.split()[0].rpartition("/")[2]: row.split()[1:] for row in done.stdout.splitlines()}
    assert columns["Path"] == ["SHA-256", "corruption_robust", "norm_robust", "standard"]
    assert columns["accuracy_top1_minus_published.json"] == ["-", "-", "-0.5", "-"]
    assert columns["accuracy_top1.json"] == ["-", "50.0", "87.5", "50.0"]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        *((f"standard: {number!r}", r"\.standard: .*; found") for number in (-1, 100.5, "64")),
        ("standrad: 80", ": no model 'standrad'; expected one of standard$"),
    ],
)
def test_a_published_number_is_a_percentage_of_a_model(entry: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "params.yaml").write_text(
        "root: .\ndataset: {images: x}\nmodels: {standard: {source: timm, name: resnet18}}\n"
        f"count: {{published_top1: {{{entry}}}}}\n"
    )
    with pytest.raises(CleansetError, match=rf"count\.published_top1{message}"):
        read_params(tmp_path)


def test_the_published_numbers(repository: Path) -> None:
    """timm's model card at 224 pixels; RobustBench's table."""
    assert read_params(repository / "imagenet").count.published_top1 == {
        "standard": 80.38,
        "norm_robust": 64.02,
        "corruption_robust": 76.90,
    }
