"""The effects of model, scenario and class on accuracy, with images as what varies.

All cells of a class are of the same images: one hard image lowers the accuracy of its class for every model in every
scenario. The regression of the paper takes the cells as independent, and finds classes different that are equal. Here
each image is one unit: models and scenarios are compared within images, classes between them. That is the analysis of
variance of a split-plot design, a mixed model with a random effect of images and of their interactions with model and
scenario, in closed form. Models and scenarios differ from one another in how much they vary together, so their F has
degrees of freedom times Greenhouse and Geisser's epsilon ("On Methods in the Analysis of Profile Data", Psychometrika
24, 1959). bench/estimators.py simulates the share of false findings. Classes are taken as fixed.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd

from cleanset.statistics.basics import LEVEL, Flags, Floats, Ints, positive_p
from cleanset.statistics.differences import holm
from cleanset.studies.robustness.scenarios.regression import is_rounding

TERM_COLUMNS = ("factor", "level", "estimate", "standard_error", "low", "high", "t", "df", "p", "p_holm")
ANOVA_COLUMNS = ("source", "df", "residual_df", "epsilon", "f", "p")
NAN = float("nan")


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A level of a factor compared with its baseline; NaN if images do not determine it."""

    factor: str
    """`model`, `scenario` or `class_index`."""
    level: object
    """The level."""
    estimate: float
    """The difference of its accuracy from the baseline's, -1 to 1."""
    standard_error: float
    """The standard error of the estimate over images."""
    low: float
    """The lower end of the 95 % interval, by t."""
    high: float
    """The upper end of the 95 % interval, by t."""
    t: float
    """The estimate by its standard error."""
    df: float
    """The degrees of freedom."""
    p: float
    """The two-sided p-value of t."""
    p_holm: float = NAN
    """The p-value after Holm's correction over the levels of the factor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The F test of a factor; NaN if images do not determine it."""

    source: str
    """`model`, `scenario` or `class_index`."""
    df: float
    """The degrees of freedom of the factor, before epsilon."""
    residual_df: float
    """Those of the variation of images against which it is tested, before epsilon."""
    epsilon: float
    """Greenhouse and Geisser's, 1 / df to 1, which both degrees of freedom are multiplied by; 1 between images."""
    f: float
    """The mean square by that of the images."""
    p: float
    """The p-value of F."""


def by_image(
    correct: Flags, classes: Ints, levels: Sequence[Sequence[object]], factors: Sequence[str]
) -> dict[str, pd.DataFrame]:
    """The terms and the F tests, as `by_image` and `by_image_anova`.

    `correct`: images x models x scenarios. `classes`: the class of each image. `levels`: the models, scenarios and
    classes, the baseline first, in the order of the axes; `factors`: their names. A factor with one level has no rows.
    """
    values = correct.astype(np.float64)
    # within images: the means over the other factor
    within = {factors[0]: values.mean(axis=2), factors[1]: values.mean(axis=1)}
    terms: list[Term] = []
    sources: list[Source] = []
    for factor, names in zip(factors[:2], levels[:2], strict=True):
        if len(names) > 1:
            terms += _with_holm(_within_terms(factor, names, within[factor]))
            sources.append(within_test(factor, within[factor]))
    if len(levels[2]) > 1:
        means = values.mean(axis=(1, 2))
        terms += _with_holm(_between_terms(factors[2], levels[2], means, classes))
        sources.append(between_test(factors[2], means, classes))
    return {
        "by_image": pd.DataFrame([asdict(each) for each in terms], columns=TERM_COLUMNS),
        "by_image_anova": pd.DataFrame([asdict(each) for each in sources], columns=ANOVA_COLUMNS),
    }


def within_test(source: str, means: Floats) -> Source:
    """The F test of a factor whose levels every image was seen in; `means`: images x levels."""
    # takes half a second, which attacks on the changes of scenarios do without
    from scipy import stats

    images, count = means.shape
    df = count - 1
    centred = means - means.mean(axis=0) - means.mean(axis=1, keepdims=True) + means.mean()
    residual = float((centred**2).sum())
    between = images * float(((means.mean(axis=0) - means.mean()) ** 2).sum())
    # the covariance of the levels without the images' own means
    covariance = _products(centred)
    squares = float((covariance**2).sum())
    varies = not is_rounding(residual, means)
    epsilon = float(np.trace(covariance)) ** 2 / (df * squares) if varies else NAN
    residual_df = df * (images - 1)
    f = between / df / (residual / residual_df) if varies and residual_df else NAN
    p = positive_p(float(stats.f.sf(f, epsilon * df, epsilon * residual_df)))
    return Source(source=source, df=df, residual_df=residual_df, epsilon=epsilon, f=f, p=p)


def _products(centred: Floats) -> Floats:
    """The sum over rows of the products of every two columns, correctly rounded.

    A matrix product sums in an order of the processor's, and its last digits would differ between machines.
    """
    columns = list(centred.T)
    return np.array([[math.fsum(one * other) for other in columns] for one in columns])


def between_test(source: str, means: Floats, classes: Ints) -> Source:
    """The F test of a factor that differs between images, whose means are given; `classes`: the level of each."""
    from scipy import stats

    residual, residual_df = _within_classes(means, classes)
    groups = [means[classes == each] for each in np.unique(classes)]
    df = len(groups) - 1
    between = float(sum(len(group) * (group.mean() - means.mean()) ** 2 for group in groups))
    f = between / df / (residual / residual_df) if residual_df and not is_rounding(residual, means) else NAN
    p = positive_p(float(stats.f.sf(f, df, residual_df)))
    return Source(source=source, df=df, residual_df=residual_df, epsilon=1.0, f=f, p=p)


def _within_terms(factor: str, names: Sequence[object], means: Floats) -> Iterator[Term]:
    """Yield each level of a factor, compared with the first within images."""
    images = len(means)
    for place, name in enumerate(names[1:], start=1):
        differences = means[:, place] - means[:, 0]
        squares = float(((differences - differences.mean()) ** 2).sum())
        varies = images > 1 and not is_rounding(squares, means[:, [0, place]])
        error = float(differences.std(ddof=1) / np.sqrt(images)) if varies else NAN
        yield _term(factor, name, float(differences.mean()), error=error, df=images - 1)


def _between_terms(factor: str, names: Sequence[object], means: Floats, classes: Ints) -> Iterator[Term]:
    """Yield each level of a factor, compared with the first between images, whose variance all levels share."""
    residual, residual_df = _within_classes(means, classes)
    variance = residual / residual_df if residual_df and not is_rounding(residual, means) else NAN
    first = means[classes == names[0]]
    for name in names[1:]:
        group = means[classes == name]
        error = float(np.sqrt(variance * (1 / len(group) + 1 / len(first))))
        yield _term(factor, name, float(group.mean() - first.mean()), error=error, df=residual_df)


def _within_classes(means: Floats, classes: Ints) -> tuple[float, int]:
    """The sum of squares of images around the means of their classes, and its degrees of freedom."""
    groups = [means[classes == each] for each in np.unique(classes)]
    return float(sum(((group - group.mean()) ** 2).sum() for group in groups)), len(means) - len(groups)


def _term(factor: str, level: object, estimate: float, error: float, df: int) -> Term:
    """A term with its test; without one where the images do not vary."""
    from scipy import stats

    if not error > 0 or df < 1:
        return Term(
            factor=factor,
            level=level,
            estimate=estimate,
            standard_error=NAN,
            low=NAN,
            high=NAN,
            t=NAN,
            df=df,
            p=NAN,
        )
    half = float(stats.t.ppf((1 + LEVEL) / 2, df)) * error
    t = estimate / error
    return Term(
        factor=factor,
        level=level,
        estimate=estimate,
        standard_error=error,
        low=estimate - half,
        high=estimate + half,
        t=t,
        df=df,
        p=positive_p(float(2 * stats.t.sf(abs(t), df))),
    )


def _with_holm(terms: Iterator[Term]) -> list[Term]:
    """The terms of a factor with Holm's correction over those that have a p-value."""
    found = [asdict(each) for each in terms]
    corrected = iter(holm([each["p"] for each in found if np.isfinite(each["p"])]))
    return [Term(**each | {"p_holm": next(corrected) if np.isfinite(each["p"]) else NAN}) for each in found]
