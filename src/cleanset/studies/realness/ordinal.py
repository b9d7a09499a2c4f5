"""A cumulative link model of ratings, which checks the linear one: that takes the steps of the scale as equal.

The model is logit P(rating <= k) = threshold_k - effect * modified (McCullagh, "Regression Models for Ordinal Data",
JRSS B 1980), fitted by statsmodels' OrderedModel. It has no random effects: the standard error allows for correlated
ratings of one person (clusters of people), not for correlated ratings of one image.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cleanset.errors import CleansetError, install_command
from cleanset.statistics.basics import Floats, Ints
from cleanset.studies.realness.mixed import Effect

MIN_CLUSTERED = 1e-3
"""Standard error by people, relative to the one for independent ratings, below which it counts as 0."""

_NOT_FITTED = (
    "the ratings: no ordinal model can be fitted to them; expected several people, and ratings of real and of modified "
    "images that overlap: leave out --ordinal"
)


@dataclass(frozen=True, slots=True)
class OrdinalFit:
    """The effect of modified images in log-odds of a higher rating, its standard error, and the thresholds.

    `difference`: mean rating of modified minus real images that the model implies, in steps of the scale.
    `odds_ratio`: odds of a rating above any threshold, modified images to real ones. `interval`: the normal one of the
    effect, 95 %.
    """

    effect: float
    standard_error: float
    thresholds: tuple[float, ...]
    difference: float
    odds_ratio: float
    interval: tuple[float, float]


def fit_ordinal(ratings: Sequence[int], people: Sequence[str], modified: Sequence[bool]) -> OrdinalFit:
    """Fit the model to ratings, each with its person and the type of its image.

    Raises CleansetError without statsmodels, for a single person, for ratings of the two types that do not overlap, and
    if the fit does not converge.
    """
    try:
        from statsmodels.miscmodels.ordinal_model import OrderedModel
    except ImportError as error:
        raise CleansetError(
            f"--ordinal: statsmodels cannot be imported ({error}); {install_command('study')}"
        ) from None

    steps, codes = np.unique(np.asarray(ratings), return_inverse=True)
    types = np.asarray(modified, np.float64)
    groups = np.unique(np.asarray(people, object).astype(str), return_inverse=True)[1]
    real = codes[types == 0]
    changed = codes[types == 1]
    if len(set(groups.tolist())) < 2 or not len(real) or not len(changed):
        raise CleansetError(_NOT_FITTED)
    # without overlap the likelihood grows with the effect, without end
    if changed.max() <= real.min() or real.max() <= changed.min():
        raise CleansetError(_NOT_FITTED)
    model = OrderedModel(codes, types[:, None], distr="logit")
    with warnings.catch_warnings():
        # what they say is checked below
        warnings.simplefilter("ignore")
        found = model.fit(method="bfgs", disp=0, maxiter=500, cov_type="cluster", cov_kwds={"groups": groups})
    effect = float(found.params[0])
    deviation = float(found.bse[0])
    # the first and the last are infinite
    thresholds = model.transform_threshold_params(found.params)[1:-1]
    if not found.mle_retvals["converged"] or not np.isfinite([effect, deviation, *thresholds]).all():
        raise CleansetError(_NOT_FITTED)
    # the parts of people whose ratings are alike cancel, up to the search's tolerance
    if deviation < MIN_CLUSTERED * math.sqrt(found.normalized_cov_params[0, 0]):
        raise CleansetError(
            "the ratings: the ordinal model's standard error by people is 0, as people do not differ, and its interval "
            "would have no width; expected several people who rate differently: leave out --ordinal"
        )
    difference = _mean(steps, thresholds - effect) - _mean(steps, thresholds)
    return OrdinalFit(
        effect=effect,
        standard_error=deviation,
        thresholds=tuple(map(float, thresholds)),
        difference=difference,
        odds_ratio=math.exp(effect),
        interval=Effect(effect, deviation, math.inf).interval(0.95),
    )


def _mean(steps: Ints, logits: Floats) -> float:
    """The mean rating for logits of P(rating <= k), k all steps but the last."""
    cumulative = np.concatenate([[0.0], 1 / (1 + np.exp(-logits)), [1.0]])
    return float(steps @ np.diff(cumulative))
