"""The regression of XIMAGENET-12, as published: accuracy ~ model + scenario + class, by least squares, in closed form.

Estimates, intervals, p-values and analysis of variance. As in tables 1, 4 and 6: treatment coding against a baseline
level of each factor, no interactions, one observation for each cell, every cell there. In so balanced a design the sums
of squares do not depend on the order of the factors, and everything has a closed form in the means of the levels; H.
Scheffé, "The Analysis of Variance" (1959). With 1,000 classes a general solver such as statsmodels' takes 14 seconds
and 1.4 GB; the closed form takes neither. It takes the cells as independent though they are of the same images, so its
p-values mean nothing; `by_image` has tests that hold.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from cleanset.errors import CleansetError
from cleanset.plumbing.validation import shown
from cleanset.statistics.basics import LEVEL, Floats, positive_p
from cleanset.studies.robustness.answer_arrays import cube

FACTORS = ("model", "scenario", "class_index")
OBSERVED = "accuracy"
ROUNDING = 1e-24
"""Sum of squared differences, as a share of the sum of squares of the values, below which it is rounding alone."""


def is_rounding(squared_differences: float, values: Floats) -> bool:
    """Whether a sum of squared differences of values is what rounding leaves of 0."""
    return squared_differences <= ROUNDING * float((values**2).sum())


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """The balanced design of the regression: one accuracy for each model, scenario and class."""

    levels: tuple[tuple[object, ...], ...]
    """The levels of each of FACTORS, the baseline first."""
    observed: Floats
    """The accuracies, 0 to 1, of shape models x scenarios x classes."""

    @property
    def terms(self) -> int:
        """The number of coefficients."""
        return 1 + sum(len(levels) - 1 for levels in self.levels)

    @property
    def residual_df(self) -> int:
        """The residual degrees of freedom."""
        return self.observed.size - self.terms


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """The least-squares fit of a design."""

    coefficients: Floats
    """The coefficients: the intercept first, and then by factor and level."""
    standard_errors: Floats
    """The standard error of each coefficient."""
    factor_ss: Floats
    """The sum of squares of each factor."""
    residual_ss: float
    """The residual sum of squares."""


def regression(cells: pd.DataFrame, baselines: Sequence[object]) -> dict[str, pd.DataFrame]:
    """The regression of cells with model, scenario, class_index and accuracy; `baselines` has a level of each factor.

    By the end of the stem of their CSV file: `regression` has a row for the intercept (factor `intercept`, level None)
    and for each level but the baselines: factor, level, estimate, standard_error, low, high, t, p. `anova` has
    the rows regression, the factors, residual and total: source, ss, df, ms, f, p. `fitted` has the cells in the
    design's order, observed and fitted.

    Raises CleansetError, with their names, for cells missing or there twice, for an unknown baseline, for an
    accuracy that is not a number, and for a design without residual degrees of freedom.
    """
    design = design_of(cells, baselines)
    return _regression(design, in_closed_form(design))


def design_of(cells: pd.DataFrame, baselines: Sequence[object]) -> Design:
    """The cells as an array, levels sorted but for the baselines, which are first."""
    levels = tuple(_levels(cells, factor, base) for factor, base in zip(FACTORS, baselines, strict=True))
    accuracies = cells[OBSERVED].to_numpy(np.float64)
    observed = cube(cells, dict(zip(FACTORS, levels, strict=True)), accuracies, "regression")
    if not np.isfinite(observed).all():
        place = np.argwhere(~np.isfinite(observed))[0]
        names = " ".join(f"{f} {v[i]}" for f, v, i in zip(FACTORS, levels, place, strict=True))
        raise CleansetError(f"regression: the accuracy of {names} is not a number; expected a number in every cell")
    design = Design(levels, observed)
    if design.residual_df < 1:
        raise CleansetError(
            f"regression: found {observed.size} cells for {design.terms} coefficients; expected more cells; "
            "add a model, a scenario or a class"
        )
    return design


def in_closed_form(design: Design) -> Fit:
    """The fit from the means of each level, which the balanced design allows."""
    observed = design.observed
    grand = observed.mean()
    effects = [
        observed.mean(axis=tuple(other for other in range(observed.ndim) if other != axis)) - grand
        for axis in range(observed.ndim)
    ]
    residuals = observed - grand - sum(_along(effect, axis) for axis, effect in enumerate(effects))
    residual_ss = float((residuals**2).sum())
    variance = residual_ss / design.residual_df
    coefficients = [np.array([grand + sum(effect[0] for effect in effects)])]
    errors = [np.array([np.sqrt(variance * design.terms / observed.size)])]
    for effect in effects:
        coefficients.append(effect[1:] - effect[0])
        # the variance of a difference of two level means, each over size / levels cells
        errors.append(np.full(len(effect) - 1, np.sqrt(2 * variance * len(effect) / observed.size)))
    # in a balanced design the sums of squares of the factors are orthogonal, so that their order does not matter
    factor_ss = [observed.size / len(effect) * (effect**2).sum() for effect in effects]
    return Fit(np.concatenate(coefficients), np.concatenate(errors), np.array(factor_ss), residual_ss)


def _regression(design: Design, fit: Fit) -> dict[str, pd.DataFrame]:
    """The tables of a fit."""
    # takes half a second, which attacks on the changes of scenarios do without
    from scipy import stats

    df = design.residual_df
    # what rounding leaves of 0 would make t and p arbitrary numbers
    fit = _without_rounding(fit, design.observed)
    exact = fit.residual_ss == 0
    errors = np.zeros_like(fit.standard_errors) if exact else fit.standard_errors
    with np.errstate(divide="ignore", invalid="ignore"):
        t = fit.coefficients / errors
    p = [positive_p(2 * each) for each in stats.t.sf(np.abs(t), df)]
    half = stats.t.ppf((1 + LEVEL) / 2, df) * errors
    names: list[tuple[str, object]] = [("intercept", None)]
    names += [(f, each) for f, levels in zip(FACTORS, design.levels, strict=True) for each in levels[1:]]
    estimates = pd.DataFrame(
        {
            "factor": [factor for factor, _ in names],
            "level": pd.Series([each for _, each in names], dtype=object),
            "estimate": fit.coefficients,
            "standard_error": errors,
            "low": fit.coefficients - half,
            "high": fit.coefficients + half,
            "t": t,
            "p": p,
        }
    )
    cells = pd.MultiIndex.from_product(design.levels, names=FACTORS).to_frame(index=False)
    values = {OBSERVED: design.observed.ravel(), "fitted": _fitted(design, fit.coefficients).ravel()}
    fitted = cells.astype(object).assign(**values)
    anova = _anova(design, fit, fit.residual_ss)
    return {"regression": estimates, "anova": anova, "fitted": fitted}


def _without_rounding(fit: Fit, observed: Floats) -> Fit:
    """The fit with 0 for coefficients and sums of squares that are rounding alone."""
    smallest = math.sqrt(ROUNDING) * float(np.abs(observed).max())
    return Fit(
        coefficients=np.where(np.abs(fit.coefficients) <= smallest, 0.0, fit.coefficients),
        standard_errors=fit.standard_errors,
        factor_ss=np.array([0.0 if is_rounding(each, observed) else each for each in fit.factor_ss]),
        residual_ss=0.0 if is_rounding(fit.residual_ss, observed) else fit.residual_ss,
    )


def _anova(design: Design, fit: Fit, residual_ss: float) -> pd.DataFrame:
    """The analysis of variance: source, ss, df, ms, f, p; NaN if a row has none."""
    from scipy import stats

    factor_df = [len(levels) - 1 for levels in design.levels]
    ss = np.array([fit.factor_ss.sum(), *fit.factor_ss, residual_ss, fit.factor_ss.sum() + residual_ss])
    df = np.array([sum(factor_df), *factor_df, design.residual_df, design.observed.size - 1])
    with np.errstate(divide="ignore", invalid="ignore"):
        ms = ss / df
        f = ms / ms[-2]
    # a total has no mean square, and neither it nor the residual an F
    ms[-1] = np.nan
    f[-2:] = np.nan
    p = [positive_p(each) for each in np.asarray(stats.f.sf(f, df, design.residual_df))]
    source = ["regression", *FACTORS, "residual", "total"]
    return pd.DataFrame({"source": source, "ss": ss, "df": df, "ms": ms, "f": f, "p": p})


def _levels(cells: pd.DataFrame, factor: str, baseline: object) -> tuple[object, ...]:
    """The levels of a factor, sorted, the baseline first."""
    return baseline_first(sorted(cells[factor].unique().tolist()), factor, baseline)


def baseline_first(found: Sequence[object], factor: str, baseline: object) -> tuple[object, ...]:
    """The levels in their order, but the baseline first. Raises CleansetError for an unknown baseline."""
    if baseline not in found:
        # of a thousand classes the first
        known = ", ".join(map(str, found[:20]))
        raise CleansetError(
            f"regression: unknown baseline {shown(baseline)} of {factor}; expected one of {known}; change the baseline"
        )
    return (baseline, *(each for each in found if each != baseline))


def _fitted(design: Design, coefficients: Floats) -> Floats:
    """The fitted accuracies, models x scenarios x classes."""
    fitted = np.full(design.observed.shape, coefficients[0])
    start = 1
    for axis, levels in enumerate(design.levels):
        effect = np.concatenate([[0.0], coefficients[start : start + len(levels) - 1]])
        fitted += _along(effect, axis)
        start += len(levels) - 1
    return fitted


def _along(effect: Floats, axis: int) -> Floats:
    """The effects of an axis's levels, so shaped that they add to an array of the three factors."""
    shape = [1, 1, 1]
    shape[axis] = -1
    return effect.reshape(shape)
