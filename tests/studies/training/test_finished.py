"""Smoothed values and final values of histories that are written down, and the charts of them."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleanset.errors import CleansetError
from cleanset.studies.training.finished import History, final_values, history_rows, over_folds, smoothed
from cleanset.studies.training.pages import BOTTOM, LEFT, RIGHT, TOP, Curve, chart, tick_step

NAN = math.nan
ROWS = pd.DataFrame(
    {
        "epoch": [1, 2, 3],
        "step": [10, 20, 30],
        "train_loss": [3.0, 2.0, 1.0],
        "train_accuracy": [0.25, 0.5, 0.75],
        "validation_loss": [2.5, 2.0, 2.25],
        "validation_accuracy": [0.25, 0.5, NAN],
        "rate": [0.1, 0.1, 0.1],
    }
)
HISTORY = History("one", "fold_01", ROWS, 2)


def test_smoothing_by_hand() -> None:
    """Weight 1/2: (1), (1/2 + 2) / 1.5, (1/4 + 2/2 + 4) / 1.75."""
    assert smoothed([1, 2, 4], 0.5).tolist() == pytest.approx([1, 5 / 3, 3])


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=20), st.floats(0, 0.95))
def test_smoothing_is_a_weighted_mean(values: list[float], weight: float) -> None:
    expected = [
        np.average(values[: end + 1], weights=[weight ** (end - place) for place in range(end + 1)])
        for end in range(len(values))
    ]
    assert smoothed(values, weight).tolist() == pytest.approx(expected, abs=1e-9)


def test_smoothing_passes_over_what_was_not_measured() -> None:
    assert smoothed([1, NAN, 3], 0.5).tolist() == pytest.approx([1, NAN, 7 / 3], nan_ok=True)
    with pytest.raises(ValueError, match=r"weight 1\.0; expected 0 or more and less than 1"):
        smoothed([1], 1.0)


def test_final_values() -> None:
    table = final_values([HISTORY], history_rows([HISTORY]))
    found = {(each.measure, each.part): each for each in table.itertuples()}
    assert list(found) == [
        ("loss", "train"), ("loss", "validation"), ("accuracy", "train"), ("accuracy", "validation"),
    ]  # fmt: skip
    last = found["loss", "train"]
    assert (last.value, last.epoch, last.step, last.chosen, last.value_of_chosen) == (1.0, 3, 30, 2, 2.0)
    assert last.smoothed == pytest.approx((0.36 * 3 + 0.6 * 2 + 1) / (0.36 + 0.6 + 1))
    # of what was not measured in the last epoch, the one before
    assert (found["accuracy", "validation"].value, found["accuracy", "validation"].epoch) == (0.5, 2)


def test_a_chosen_epoch_that_is_not_there() -> None:
    with pytest.raises(CleansetError, match="run one, fold_01: epoch 9 is chosen, but its history has 3 epochs"):
        final_values([History("one", "fold_01", ROWS, 9)], history_rows([HISTORY]))


def test_rows_for_dvc_plots() -> None:
    table = history_rows([HISTORY])
    assert len(table) == 11
    assert table.iloc[0].tolist() == pytest.approx(["one", "fold_01", "loss", "train", 1, 10, 3.0, 3.0])
    assert history_rows([]).columns.tolist() == table.columns.tolist()


def test_the_mean_over_folds_is_of_those_that_got_so_far() -> None:
    short = History("one", "fold_02", ROWS.head(2).assign(train_loss=[5.0, 4.0]), 1)
    epochs, means = over_folds([HISTORY, short], "loss", "train")
    assert (epochs.tolist(), means.tolist()) == ([1, 2, 3], [4.0, 3.0, 1.0])


def curve(y: list[float], *, faint: bool = False) -> Curve:
    return Curve("one", 0, np.arange(1.0, len(y) + 1), np.array(y), faint)


def test_a_chart() -> None:
    found = chart("Loss", "label", [curve([2.0, 1.0, 0.0]), curve([1.0, 1.0, 1.0], faint=True)])
    middle = (LEFT + RIGHT) / 2
    assert [text for _, text in found.ticks] == ["0", "0.5", "1", "1.5", "2"]
    assert (found.first, found.last) == (1, 3)
    # faint lines first, so that others lie over them
    assert [faint for _, faint, _ in found.lines] == [True, False]
    assert found.lines[1][2] == f"{LEFT},{TOP} {middle},{(TOP + BOTTOM) / 2} {RIGHT},{BOTTOM}"


def test_a_chart_of_one_epoch_and_of_none() -> None:
    assert chart("", "", [curve([0.5])], highest=1).lines[0][2] == f"{LEFT},60.0 {LEFT + 6},60.0"
    assert chart("", "", [curve([NAN])], highest=1).lines == []
    assert chart("", "", []).lines == []


def test_a_long_history_is_thinned() -> None:
    (line,) = chart("", "", [curve(list(np.linspace(0, 1, 10_000)))]).lines
    points = line[2].split()
    assert len(points) == 300
    assert (points[0], points[-1]) == (f"{LEFT},{BOTTOM}", f"{RIGHT},{TOP}")


@given(st.floats(1e-6, 1e6))
def test_ticks_are_few_and_round(largest: float) -> None:
    step = tick_step(largest)
    assert 1.5 < largest / step <= 4.0001
    assert float(f"{step:.2g}") == pytest.approx(step)
