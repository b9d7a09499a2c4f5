"""The tables of XIMAGENET-12 from their coefficients and residual sum of squares.

A least-squares fit is known by its fitted values and the size of its residuals, so any residuals will do that are
orthogonal to the factors and have the published sum of squares.
"""

import sys

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import statsmodels.formula.api as formulas
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.anova import anova_lm

from cleanset.classes import imagenet
from cleanset.errors import CleansetError
from cleanset.studies.robustness.scenarios import regression as module
from cleanset.studies.robustness.scenarios.family import _baseline_names
from cleanset.studies.robustness.scenarios.params import Baselines
from cleanset.studies.robustness.scenarios.regression import FACTORS, Design, Fit, design_of, in_closed_form, regression
from tests.properties import examples
from tests.studies.robustness.scenarios.ximagenet12 import EX1, EX3, Published

Floats = npt.NDArray[np.float64]
CLASSES = 12


def without_effects(noise: Floats) -> Floats:
    """What is left of the noise without the mean of any level."""
    for axis in range(3):
        noise = noise - noise.mean(axis=tuple(other for other in range(3) if other != axis), keepdims=True)
    return noise


def frame(accuracies: Floats, models: tuple[str, ...], scenarios: tuple[str, ...]) -> pd.DataFrame:
    """The cells in no order."""
    classes = range(accuracies.shape[2])
    index = pd.MultiIndex.from_product([models, scenarios, classes], names=["model", "scenario", "class_index"])
    cells = index.to_frame(index=False)
    cells["accuracy"] = accuracies.ravel()
    return cells.sample(frac=1, random_state=3)


def cells_of(published: Published) -> pd.DataFrame:
    estimates = np.array([row[0] for row in published.coefficients])
    models, scenarios = len(published.models), len(published.scenarios)
    by_model, by_scenario, by_class = np.split(estimates[1:], [models - 1, models + scenarios - 2])
    fitted = (
        estimates[0]
        + np.concatenate([[0], by_model])[:, None, None]
        + np.concatenate([[0], by_scenario])[:, None]
        + np.concatenate([[0], by_class])
    )
    residuals = without_effects(np.random.default_rng(5).normal(size=fitted.shape))
    residuals *= np.sqrt(published.residual_ss / (residuals**2).sum())
    return frame(fitted + residuals, published.models, published.scenarios)


def levels_of(published: Published) -> list[tuple[str, object]]:
    models = [("model", level) for level in published.models[1:]]
    scenarios = [("scenario", level) for level in published.scenarios[1:]]
    return [("intercept", None), *models, *scenarios, *(("class_index", level) for level in range(1, CLASSES))]


def by_statsmodels(design: Design) -> Fit:
    """The fit of statsmodels; its sums of squares are of type I, and all types are equal in a balanced design."""
    table = pd.MultiIndex.from_product(design.levels, names=FACTORS).to_frame(index=False)
    for factor, levels in zip(FACTORS, design.levels, strict=True):
        table[factor] = pd.Categorical(table[factor], categories=list(levels))
    table["accuracy"] = design.observed.ravel()
    factors = [f for f, levels in zip(FACTORS, design.levels, strict=True) if len(levels) > 1]
    fit = formulas.ols(f"accuracy ~ {' + '.join(factors) or '1'}", table).fit()
    squares = anova_lm(fit)["sum_sq"]
    factor_ss = np.array([float(squares.get(factor, 0.0)) for factor in FACTORS])
    return Fit(np.asarray(fit.params), np.asarray(fit.bse), factor_ss, float(fit.ssr))


def fitted(paper: Published, oracle: bool, monkeypatch: pytest.MonkeyPatch) -> dict[str, pd.DataFrame]:
    if oracle:
        monkeypatch.setattr(module, "in_closed_form", by_statsmodels)
    return regression(cells_of(paper), [paper.models[0], paper.scenarios[0], 0])


@pytest.mark.slow
@pytest.mark.parametrize("oracle", [True, False], ids=["statsmodels", "closed_form"])
@pytest.mark.parametrize("paper", [EX1, EX3], ids=["EX1", "EX3"])
def test_the_published_estimates(paper: Published, oracle: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Intervals agree but for the rounding of the published estimates, to 4 digits, and so do p-values."""
    rows = fitted(paper, oracle, monkeypatch)["regression"].set_index(["factor", "level"])
    assert len(rows) == len(paper.coefficients)
    for key, (estimate, low, high, p) in zip(levels_of(paper), paper.coefficients, strict=True):
        row = rows.loc[[key]].iloc[0]
        assert row["estimate"] == pytest.approx(estimate, abs=1e-10)
        assert [row["low"], row["high"]] == pytest.approx([low, high], abs=1e-4)
        if p is None:
            assert row["p"] < 0.0001
        else:
            assert row["p"] == pytest.approx(p, rel=1e-3, abs=6e-5)


@pytest.mark.slow
@pytest.mark.parametrize("oracle", [True, False], ids=["statsmodels", "closed_form"])
@pytest.mark.parametrize(
    ("paper", "f", "df", "errors"),
    [
        (EX1, 99.3855, [23, 4, 8, 11, 516, 539], (0.02238, 0.01445, 0.01938, 0.02238)),
        (EX3, 41.9542, [25, 6, 8, 11, 730, 755], (0.02394, 0.01756, 0.01992, 0.0230)),
    ],
    ids=["EX1", "EX3"],
)
def test_the_published_analysis_of_variance(
    paper: Published,
    f: float,
    df: list[int],
    errors: tuple[float, ...],
    oracle: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = fitted(paper, oracle, monkeypatch)
    anova = found["anova"]
    assert anova["source"].tolist() == ["regression", "model", "scenario", "class_index", "residual", "total"]
    assert anova["df"].tolist() == df
    assert round(anova["f"][0], 4) == f
    assert anova["f"][:4].tolist() == pytest.approx(paper.f, rel=5e-4)
    assert (anova["p"][:4] < 0.0001).all()
    assert anova["ss"][4] == pytest.approx(paper.residual_ss)
    accuracies = found["fitted"]["accuracy"]
    assert anova["ss"][5] == pytest.approx(((accuracies - accuracies.mean()) ** 2).sum())
    rows = found["regression"]
    for factor, error in zip(["intercept", "model", "scenario", "class_index"], errors, strict=True):
        of_factor = rows["standard_error"][rows["factor"] == factor].tolist()
        assert of_factor == pytest.approx([error] * len(of_factor), abs=6e-6)


def test_the_total_of_ex1_is_the_published_one(monkeypatch: pytest.MonkeyPatch) -> None:
    anova = fitted(EX1, False, monkeypatch)["anova"].set_index("source")
    assert anova["ss"].round(4)[["model", "scenario", "class_index"]].tolist() == [0.2761, 23.1862, 2.2980]
    assert anova["ss"]["total"] == pytest.approx(31.575, abs=5e-4)
    assert anova["ms"]["residual"] == pytest.approx(0.011269, abs=5e-7)


def both(design: Design) -> tuple[Fit, Fit]:
    return by_statsmodels(design), in_closed_form(design)


def made(seed: int, shape: tuple[int, int, int]) -> Design:
    accuracies = np.random.default_rng(seed).random(shape)
    models = tuple(f"m{index}" for index in range(shape[0]))
    scenarios = tuple(f"s {index}'" for index in range(shape[1]))
    return design_of(frame(accuracies, models, scenarios), [models[-1], scenarios[0], shape[2] // 2])


@pytest.mark.slow
@examples(30)
@given(st.integers(0, 2**32), st.tuples(st.integers(1, 4), st.integers(2, 4), st.integers(3, 12)))
def test_the_closed_form_is_statsmodels_fit(seed: int, shape: tuple[int, int, int]) -> None:
    one, other = both(made(seed, shape))
    for name in ("coefficients", "standard_errors", "factor_ss", "residual_ss"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), abs=1e-10, rel=1e-10)


@pytest.mark.slow
def test_the_closed_form_is_statsmodels_fit_with_100_classes() -> None:
    one, other = both(made(8, (3, 13, 100)))
    for name in ("coefficients", "standard_errors", "factor_ss", "residual_ss"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), abs=1e-10, rel=1e-10)


def test_a_thousand_classes_are_fitted_in_closed_form() -> None:
    accuracies = np.random.default_rng(1).random((3, 12, 1000))
    found = regression(frame(accuracies, ("a", "b", "c"), tuple("stuvwxyzklmn")), ["a", "s", 0])
    assert len(found["regression"]) == 1 + 2 + 11 + 999
    assert len(found["fitted"]) == 36_000
    means = accuracies.mean(axis=(1, 2))
    estimates = found["regression"][found["regression"]["factor"] == "model"]["estimate"]
    assert estimates.tolist() == pytest.approx((means - means[0])[1:].tolist())


def small(accuracies: list[float]) -> pd.DataFrame:
    return frame(np.array(accuracies).reshape(2, 2, 2), ("a", "b"), ("s", "t")).sort_index()


SMALL = [0.5, 0.75, 0.25, 0.25, 0.5, 0.5, 0.0, 0.75]


def test_the_fitted_values_and_the_baselines() -> None:
    found = regression(small(SMALL), ["b", "s", 1])
    assert found["fitted"].iloc[0, :3].tolist() == ["b", "s", 1]
    assert found["regression"][["factor", "level"]].to_numpy().tolist() == [
        ["intercept", None],
        ["model", "a"],
        ["scenario", "t"],
        ["class_index", 0],
    ]
    # means: all .4375; a .4375, b .4375; s .5625, t .3125; 0 .3125, 1 .5625
    assert found["regression"]["estimate"].tolist() == pytest.approx([0.6875, 0.0, -0.25, -0.25])
    rows = found["fitted"].set_index(["model", "scenario", "class_index"])
    assert rows.loc[("a", "t", 0), "fitted"] == pytest.approx(0.1875)
    assert rows.loc[("a", "t", 0), "accuracy"] == 0.25
    assert rows.loc[("b", "s", 1), "fitted"] == pytest.approx(0.6875)


@pytest.mark.parametrize("accuracy", [0.7, 2 / 3, 1.0])
def test_cells_that_are_all_equal_have_no_test(accuracy: float) -> None:
    found = regression(small([accuracy] * 8), ["a", "s", 0])
    assert found["regression"]["p"].iloc[1:].isna().all()
    assert found["anova"]["p"].isna().all()


@pytest.mark.slow
@pytest.mark.parametrize("oracle", [False, True])
def test_an_exact_fit_has_no_residual(oracle: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if oracle:
        monkeypatch.setattr(module, "in_closed_form", by_statsmodels)
    found = regression(small([0.1, 0.2, 0.4, 0.5, 0.3, 0.4, 0.6, 0.7]), ["a", "s", 0])
    assert found["regression"]["estimate"].tolist() == pytest.approx([0.1, 0.2, 0.3, 0.1])
    assert found["regression"]["standard_error"].tolist() == [0, 0, 0, 0]
    assert found["regression"]["p"].tolist() == [sys.float_info.min] * 4
    assert np.isinf(found["anova"]["f"][:4]).all()


def test_missing_and_repeated_cells_are_reported() -> None:
    cells = small(SMALL)
    with pytest.raises(
        CleansetError, match="regression: 2 of 8 cells are missing: model a scenario s class_index 1, model b scen"
    ):
        regression(cells.drop(index=[1, 6]), ["a", "s", 0])
    with pytest.raises(CleansetError, match="1 of 8 cells are there more than once: model a scenario t class_index 0"):
        regression(pd.concat([cells, cells.loc[[2]]]), ["a", "s", 0])


def test_what_cannot_be_fitted_is_refused() -> None:
    with pytest.raises(CleansetError, match="unknown baseline 'c' of model; expected one of a, b; change"):
        regression(small(SMALL), ["c", "s", 0])
    cells = small(SMALL)
    cells.loc[3, "accuracy"] = np.nan
    with pytest.raises(CleansetError, match="the accuracy of model a scenario t class_index 1 is not a number"):
        regression(cells, ["a", "s", 0])
    few = small(SMALL).query("model == 'a' and scenario == 's'")
    with pytest.raises(CleansetError, match="found 2 cells for 2 coefficients; expected more cells"):
        regression(few, ["a", "s", 0])


@pytest.mark.parametrize(
    ("base", "names"),
    [
        (Baselines(), ["first", "unchanged", "great white shark"]),
        (Baselines(model="b", scenario="blur_object", class_index=1), ["b", "blur_object", "goldfish"]),
    ],
)
def test_the_names_of_the_baselines(base: Baselines, names: list[str]) -> None:
    assert _baseline_names(base, "first", pd.DataFrame({"class_index": [7, 2]}), imagenet()) == names
