"""Smoothed values and final values of histories that are written down, and the charts of them."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleanset.errors import CleansetError
from cleanset.studies.training.curves import (
    PLOT_BOTTOM,
    PLOT_LEFT,
    PLOT_RIGHT,
    PLOT_TOP,
    Curve,
    chart,
    run_charts,
    tick_step,
)
from cleanset.studies.training.finished import FinishedFold, FinishedRun
from cleanset.studies.training.histories import final_values, history_rows, smoothed
from cleanset.studies.training.run_params import Run
from tests.studies.training.finished_study import record_of

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


def finished(*histories: pd.DataFrame, chosen: int = 2) -> FinishedRun:
    """A run with only histories, one for each fold."""
    folds = [
        FinishedFold(f"fold_{number:02d}", record_of(epoch=chosen), each, pd.DataFrame())
        for number, each in enumerate(histories, 1)
    ]
    return FinishedRun("one", Run.model_validate({"network": {"name": "a"}, "epochs": 3}), folds)


RUN = finished(ROWS)


def test_smoothing_by_hand() -> None:
    """Weight 1/2: (1), (1/2 + 2) / 1.5, (1/4 + 2/2 + 4) / 1.75."""
    assert smoothed(pd.Series([1.0, 2, 4]), 0.5).tolist() == pytest.approx([1, 5 / 3, 3])


def test_what_follows_an_infinite_value_is_infinite() -> None:
    """As in a training whose validation diverged once: the end must not look as if it had not."""
    assert smoothed(pd.Series([1.0, math.inf, 2])).tolist() == [1, math.inf, math.inf]


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=20), st.floats(0, 0.95))
def test_smoothing_is_a_weighted_mean(values: list[float], weight: float) -> None:
    expected = [
        np.average(values[: end + 1], weights=[weight ** (end - place) for place in range(end + 1)])
        for end in range(len(values))
    ]
    assert smoothed(pd.Series(values), weight).tolist() == pytest.approx(expected, abs=1e-9)


def test_final_values() -> None:
    table = final_values([RUN], history_rows([RUN]))
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
        final_values([finished(ROWS, chosen=9)], history_rows([RUN]))


def test_rows_for_dvc_plots() -> None:
    table = history_rows([RUN])
    assert len(table) == 11
    assert table.iloc[0].tolist() == pytest.approx(["one", "fold_01", "loss", "train", 1, 10, 3.0, 3.0])
    gap = history_rows([finished(ROWS.assign(train_loss=[1.0, NAN, 3.0]))])
    assert gap["smoothed"].tolist()[:2] == smoothed(pd.Series([1.0, 3.0])).tolist()


def test_the_mean_over_folds_is_of_those_that_got_so_far() -> None:
    """Losses 4, 3 and 1 of at most 4, from the top to a quarter of the height."""
    both = finished(ROWS, ROWS.head(2).assign(train_loss=[5.0, 4.0]))
    (group,) = run_charts([both], history_rows([both]))
    assert [each.title for each in group.charts] == ["accuracy", "loss"]
    assert group.charts[1].lines[0] == (0, True, f"{PLOT_LEFT},{PLOT_TOP} 165.0,34.0 {PLOT_RIGHT},86.0")


def curve(y: list[float], *, faint: bool = False) -> Curve:
    return Curve(0, faint, pd.Series(y, np.arange(1, len(y) + 1)))


def test_a_chart() -> None:
    found = chart("Loss", "label", [curve([2.0, 1.0, 0.0]), curve([1.0, 1.0, 1.0], faint=True)])
    middle = (PLOT_LEFT + PLOT_RIGHT) / 2
    assert [text for _, text in found.ticks] == ["0", "0.5", "1", "1.5", "2"]
    assert (found.first, found.last) == (1, 3)
    # faint lines first, so that others are over them
    assert [faint for _, faint, _ in found.lines] == [True, False]
    assert (
        found.lines[1][2]
        == f"{PLOT_LEFT},{PLOT_TOP} {middle},{(PLOT_TOP + PLOT_BOTTOM) / 2} {PLOT_RIGHT},{PLOT_BOTTOM}"
    )


def test_a_chart_of_one_epoch_and_of_none() -> None:
    assert chart("", "", [curve([0.5])], highest=1).lines[0][2] == f"{PLOT_LEFT},60.0 {PLOT_LEFT + 6},60.0"
    assert chart("", "", [curve([NAN])], highest=1).lines == []
    assert chart("", "", []).lines == []


def test_a_long_history_is_thinned() -> None:
    (line,) = chart("", "", [curve(list(np.linspace(0, 1, 10_000)))]).lines
    points = line[2].split()
    assert len(points) == 300
    assert (points[0], points[-1]) == (f"{PLOT_LEFT},{PLOT_BOTTOM}", f"{PLOT_RIGHT},{PLOT_TOP}")


@given(st.floats(1e-6, 1e6))
def test_ticks_are_few_and_round(largest: float) -> None:
    step = tick_step(largest)
    assert 1.5 < largest / step <= 4.0001
    assert float(f"{step:.2g}") == pytest.approx(step)
