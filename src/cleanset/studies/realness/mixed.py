"""A linear mixed model of ratings with crossed random effects of person and image, fitted by REML.

The model is rating = intercept + effect * modified + person + image + residual, where every image is either real or
modified. In R, with `image` distinct for the two types:

    intercepts   rating ~ type + (1 | person) + (1 | image)
    slopes       rating ~ type + (1 + type | person) + (0 + real | image) + (0 + modified | image)

`slopes` lets people differ in how they rate modified images, and the images of the two types differ in how much they
vary. (1 + type | image) is the same if no image has both types: the correlation then has no effect.

The criterion is profiled over the ratios of standard deviations to the residual's, as in lme4 (Bates et al., "Fitting
Linear Mixed-Effects Models Using lme4", JSS 2015, section 3). Images are eliminated first: each has one random effect,
so that its part of the inverse is a number, and a system as large as the number of people remains. Degrees of freedom
are Satterthwaite's, as in lmerTest (Kuznetsova et al., JSS 2017), or infinite (`normal`).

A published study's 5,000 to 7,400 ratings take under a second on one core. statsmodels' MixedLM, for which crossed
effects are one dense group, takes longer than a minute for 2,000.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.optimize import Bounds, minimize
from scipy.sparse import csr_array
from scipy.stats import t

from cleanset.errors import CleansetError
from cleanset.statistics.basics import Flags, Floats, Ints

STARTS: tuple[float, ...] = (0.5, 0.02, 0.1, 2.0)
"""Ratios to the residual's standard deviation from which searches start; the lowest criterion found counts."""
AT_ZERO = 1e-3
"""Ratio below which a search counts as having ended at 0."""

BESIDE_ZERO = 0.2
"""Ratio from which a search that ended at 0 starts again."""

MAX_RATIO = 1e4
"""Ratio above which the ratings do not determine a variance."""

EFFECTS = np.array([[1.0, 0.0], [-1.0, 1.0]])
"""Matrix that turns the means of real and modified images into the intercept and the effect, modified minus real."""
DERIVATIVE_STEP = 3e-4
"""Step of the numerical derivatives: their error grows with its square, rounding error with the inverse square."""


class RemlSolution(NamedTuple):
    """The solution for given ratios; V is relative to the residual variance.

    `beta`: the means of real and of modified images; `inverse`: of X'V^-1X; `squares`: y'V^-1(y - X beta);
    `log_determinant`: log |V| + log |X'V^-1X|.
    """

    beta: Floats
    inverse: Floats
    squares: float
    log_determinant: float


class _Type:
    """The ratings of the images of one type: products of the columns, and the images' part of them.

    There is a column for each person, one for the mean, and one of the ratings. To eliminate an image of n ratings, the
    product of its sums is subtracted, times a weight that depends on n and the ratio only; so the products are summed
    over all images of the same n.
    """

    def __init__(self, y: Floats, person: Ints, people: int, image: Ints) -> None:
        rows = np.arange(len(y))
        one = np.ones(len(y))
        values = [one, one, y]
        columns = [person, np.full(len(y), people), np.full(len(y), people + 1)]
        at = (np.tile(rows, 3), np.concatenate(columns))
        wide = csr_array((np.concatenate(values), at), shape=(len(y), people + 2))
        numbers = np.unique(image, return_inverse=True)[1]
        by_image = csr_array((one, (numbers, rows)), shape=(int(numbers.max()) + 1, len(y)))
        sums = csr_array(by_image @ wide)
        counts = np.bincount(numbers)
        self.counts, self.images = np.unique(counts, return_counts=True)
        self.products = (wide.T @ wide).toarray()
        self._of_image = counts.astype(np.float64)
        self._sums = sums[:, :people]
        chosen = [csr_array(sums[np.flatnonzero(counts == each)]) for each in self.counts]
        self.of_images = np.stack([(each.T @ each).toarray() for each in chosen])
        self.reduced_products = lru_cache(maxsize=4)(self._reduced_products)  # a search changes one ratio at a time

    def _reduced_products(self, ratio: float) -> Floats:
        """The products with the images eliminated (Woodbury's formula), for the images' ratio to the residual."""
        return np.asarray(self.products - np.tensordot(ratio**2 / (1 + self.counts * ratio**2), self.of_images, axes=1))

    def log_determinant(self, ratio: float) -> float:
        """The images' part of log |V|."""
        return float(self.images @ np.log1p(self.counts * ratio**2))

    def design(self) -> tuple[Floats, Floats]:
        """The design of random effects, less what the mean explains: people's products, and the information matrix.

        The information on the variances of people, images and residual is half of the matrix if all ratings are
        independent: its entries are tr(P Q P Q'), Q the part of V that a variance multiplies, P the projection off the
        mean.
        """
        images = self._of_image
        count = self._of_image.sum()
        by_person = np.asarray(self._sums.sum(axis=0)).ravel()
        people = np.diag(by_person) - np.outer(by_person, by_person) / count
        across = (self._sums.multiply(self._sums)).sum() - 2 / count * (images @ (self._sums @ by_person))
        across += (images @ images) * (by_person @ by_person) / count**2
        of_images = images @ images - 2 / count * (images**3).sum() + (images @ images / count) ** 2
        traces = np.trace(people), count - images @ images / count
        information = [[(people**2).sum(), across, traces[0]], [across, of_images, traces[1]], [*traces, count - 1]]
        return people, np.array(information)


class RemlProblem:
    """The data, and the criterion as a function of the ratios `theta`.

    theta, with `slopes`: the lower triangle of the Cholesky factor of the covariance of a person's mean ratings of real
    and of modified images, then the ratios of real and of modified images. With `intercepts`: people's, and images'.
    """

    def __init__(
        self, y: Floats, people: Sequence[str], images: Sequence[str], modified: Flags, *, slopes: bool
    ) -> None:
        _check(y, people, images, modified, slopes=slopes)
        self.slopes = slopes
        self.ratings = len(y)
        # the places in theta that are bounded by 0
        self._bounded = (0, 2, 3, 4) if slopes else (0, 1)
        person = np.unique(np.asarray(people, object).astype(str), return_inverse=True)[1].astype(np.int64)
        image = np.unique(np.asarray(images, object).astype(str), return_inverse=True)[1].astype(np.int64)
        self.people = int(person.max()) + 1
        self.types = [_Type(y[of], person[of], self.people, image[of]) for of in (~modified, modified)]
        self.images = sum(int(each.images.sum()) for each in self.types)
        # with one rating for each person or image, its effect and the residual cannot be told apart
        if len(y) <= max(self.people, self.images):
            raise CleansetError(
                f"the ratings: {len(y)} of {self.people} people and {self.images} images; expected more ratings than "
                f"people and than images: have images rated several times"
            )
        # less the two means, of real and of modified images
        self.freedom = len(y) - 2
        if flat := self._flat_direction():
            raise CleansetError(
                f"the ratings do not determine {' and '.join(flat)}: the REML criterion is flat there, and estimates "
                "would depend on where the search starts; expected images that several people rate, and people who "
                f"rate several images{' of both types, or random=intercepts' if slopes else ''}"
            )

    def _flat_direction(self) -> list[str]:
        """The variances along which the criterion is flat for any ratings of these images by these people."""
        (real_people, real), (modified_people, modified) = (each.design() for each in self.types)
        if not self.slopes:
            names = ["the variance of people", "the variance of images", "the residual variance"]
            information = real + modified
            information[0, 0] = ((real_people + modified_people) ** 2).sum()
        else:
            names = [
                *("the variance of people's ratings of real images", "the variance of real images"),
                *("the residual variance", "the variance of people's ratings of modified images"),
                *("the variance of modified images", "the covariance of people's ratings of both types"),
            ]
            information = np.zeros((6, 6))
            information[:3, :3] = real
            information[np.ix_([3, 4, 2], [3, 4, 2])] += modified
            information[5, 5] = 2 * (real_people * modified_people).sum()
        scale = np.sqrt(np.diag(information).clip(min=0))
        scale[scale**2 < MIN_EIGENVALUE * self.ratings] = 1
        values, vectors = np.linalg.eigh(information / np.outer(scale, scale))
        if values[0] > MIN_EIGENVALUE:
            return []
        return [name for name, part in zip(names, vectors[:, 0], strict=True) if abs(part) > 0.01]

    def ratios(self, theta: Floats) -> tuple[float, float]:
        """The images' ratios, of real and of modified."""
        return (float(theta[-2]), float(theta[-1])) if self.slopes else (float(theta[-1]), float(theta[-1]))

    def solve(self, theta: Floats) -> RemlSolution:
        """The estimates for given ratios. Raises LinAlgError if the ratings do not determine them."""
        ratios = self.ratios(theta)
        count = self.people
        real, modified = (each.reduced_products(ratio) for each, ratio in zip(self.types, ratios, strict=True))
        block, side = self._people(theta, real[:count], modified[:count])
        # real, modified, ratings
        rest = np.zeros((3, 3))
        for place, each in enumerate((real, modified)):
            rest[np.ix_([place, 2], [place, 2])] += each[count:, count:]
        # lme4's system: the identity keeps it positive definite even where a variance is 0
        lower = cholesky(block + np.eye(len(block)), lower=True)
        across = solve_triangular(lower, side, lower=True)
        rest -= across.T @ across
        fixed = cholesky(rest[:2, :2], lower=True)
        half = solve_triangular(fixed, np.eye(2), lower=True)
        inverse = half.T @ half
        beta = inverse @ rest[:2, 2]
        logs = sum(each.log_determinant(ratio) for each, ratio in zip(self.types, ratios, strict=True))
        logs += 2 * float(np.log(np.diag(lower)).sum() + np.log(np.diag(fixed)).sum())
        return RemlSolution(beta, inverse, float(rest[2, 2] - beta @ rest[:2, 2]), logs)

    def _people(self, theta: Floats, real: Floats, modified: Floats) -> tuple[Floats, Floats]:
        """The people's block and their products with means and ratings, scaled by the factor of their covariance."""
        count = self.people
        nothing = np.zeros(self.people)
        on_real = np.column_stack([real[:, count], nothing, real[:, count + 1]])
        on_modified = np.column_stack([nothing, modified[:, count], modified[:, count + 1]])
        real = real[:, :count]
        modified = modified[:, :count]
        if not self.slopes:
            ratio = theta[0]
            return ratio**2 * (real + modified), ratio * (on_real + on_modified)
        a, b, c = theta[:3]
        across = b * c * modified
        block = np.block([[a * a * real + b * b * modified, across], [across, c * c * modified]])
        return block, np.vstack([a * on_real + b * on_modified, c * on_modified])

    def profiled_criterion(self, theta: Floats) -> float:
        """The REML criterion, -2 log likelihood, at the best residual variance for these ratios."""
        found = self.solve(theta)
        residual = found.squares / self.freedom
        return found.log_determinant + self.freedom * (1 + math.log(2 * math.pi * residual))

    def criterion(self, parameters: Floats) -> float:
        """The REML criterion; `parameters` are the ratios and the residual's standard deviation."""
        found = self.solve(parameters[:-1])
        variance = parameters[-1] ** 2
        logs = found.log_determinant + self.freedom * math.log(2 * math.pi * variance)
        return float(logs + found.squares / variance)

    def covariance(self, parameters: Floats) -> Floats:
        """The variances of the two effects for these parameters."""
        return np.asarray(np.diag(EFFECTS @ self.solve(parameters[:-1]).inverse @ EFFECTS.T) * parameters[-1] ** 2)

    def minimize(self) -> Floats:
        """The ratios that minimize the criterion. Raises CleansetError if the search fails."""
        try:
            shape = np.array([1.0, 0.0, 1.0, 1.0, 1.0]) if self.slopes else np.ones(2)
            best, least = min((self._minimum(start * shape) for start in STARTS), key=lambda found: found[1])
            # the criterion is even in a ratio, so 0 is stationary: a search that ends there starts again beside it
            for place in self._bounded:
                if best[place] < AT_ZERO:
                    found, value = self._minimum(np.where(np.arange(len(best)) == place, BESIDE_ZERO, best))
                    best, least = (found, value) if value < least else (best, least)
        except (LinAlgError, ValueError):
            raise CleansetError(_UNIDENTIFIED) from None
        if not np.isfinite(least) or np.abs(best).max() > MAX_RATIO:
            raise CleansetError(_UNIDENTIFIED)
        return best

    def _minimum(self, start: Floats) -> tuple[Floats, float]:
        bounds = Bounds(np.array([0.0 if place in self._bounded else -np.inf for place in range(len(start))]))
        # central differences; those that scipy takes by default are one-sided, and less exact
        gradient = partial(derivatives, self.profiled_criterion)
        found = minimize(
            self.profiled_criterion, start, method="L-BFGS-B", jac=gradient, bounds=bounds,
            options={"maxiter": 500, "ftol": 1e-14, "gtol": 1e-6},
        )  # fmt: skip
        return np.asarray(found.x, np.float64), float(found.fun)


_UNIDENTIFIED = (
    "the ratings: no mixed model can be fitted to them (too few, or without variation); "
    "expected several people who rate several images of each type, differently"
)


def _check(y: Floats, people: Sequence[str], images: Sequence[str], modified: Flags, *, slopes: bool) -> None:
    if not modified.any() or modified.all():
        missing = "modified" if not modified.any() else "real"
        raise CleansetError(f"the ratings: none of {missing} images; expected ratings of real and of modified images")
    if len(set(people)) < 2 or np.ptp(y) == 0:
        raise CleansetError(_UNIDENTIFIED)
    for kind, of in (("real", ~modified), ("modified", modified)):
        if len(set(np.asarray(images, object)[of])) < 2:
            raise CleansetError(
                f"the ratings: found 1 {kind} image, from which no variance of {kind} images can be estimated; "
                "expected at least two"
            )
        if slopes and len(set(np.asarray(people, object)[of])) < 2:
            raise CleansetError(
                f"the ratings: found 1 person who rates {kind} images, from whom no variance of people can be "
                "estimated; expected at least two, or random=intercepts"
            )


def derivatives(function: Callable[[Floats], Floats | float], point: Floats) -> Floats:
    """Numerical derivatives, of second order: a row for each value of the function, a column for each parameter."""
    steps = np.eye(len(point)) * DERIVATIVE_STEP
    differences = [function(point + step) - function(point - step) for step in steps]
    return np.asarray(differences, np.float64).T / (2 * DERIVATIVE_STEP)


def second_derivatives(function: Callable[[Floats], float], point: Floats) -> Floats:
    """The second derivatives of a function."""
    steps = np.eye(len(point)) * DERIVATIVE_STEP
    middle = function(point)
    ends = [function(point + step) + function(point - step) - 2 * middle for step in steps]
    hessian = np.diag(ends)
    for row, column in combinations(range(len(point)), 2):
        both = steps[row] + steps[column]
        mixed = function(point + both) + function(point - both) - 2 * middle
        hessian[row, column] = hessian[column, row] = (mixed - ends[row] - ends[column]) / 2
    return np.asarray(hessian / DERIVATIVE_STEP**2)


RandomTerms = Literal["slopes", "intercepts"]
Degrees = Literal["satterthwaite", "normal"]

MIN_EIGENVALUE = 1e-8
"""Smallest eigenvalue of the criterion's Hessian, relative to the largest; flatter directions are left out."""


class Effect(NamedTuple):
    """An estimate with its standard error and degrees of freedom (infinite: normal)."""

    estimate: float
    standard_error: float
    degrees: float

    def interval(self, level: float) -> tuple[float, float]:
        """The confidence interval."""
        # with infinite degrees of freedom, scipy's t is the normal distribution
        half = float(t.ppf((1 + level) / 2, self.degrees)) * self.standard_error
        return self.estimate - half, self.estimate + half


@dataclass(frozen=True, slots=True)
class Variances:
    """The variance components, in squared steps of the scale.

    `person`: of people's intercepts. `slope`: of people's additions to the effect; `covariance`: of the two. `real` and
    `modified`: of the images of a type. With `intercepts`, slope and covariance are 0, and real equals modified.
    """

    person: float
    slope: float
    covariance: float
    real: float
    modified: float
    residual: float


@dataclass(frozen=True, slots=True)
class MixedFit:
    """A fitted model: mean rating of real images, modified minus real, variances, and the REML criterion."""

    intercept: Effect
    modified: Effect
    variances: Variances
    criterion: float
    ratings: int
    people: int
    images: int


def fit(
    ratings: npt.ArrayLike,
    people: Sequence[str],
    images: Sequence[str],
    modified: Sequence[bool],
    random: RandomTerms = "slopes",
    degrees: Degrees = "satterthwaite",
) -> MixedFit:
    """Fit the model to ratings, each with its person, its image, and the type of the image.

    Images of the two types with the same name are different images. Raises CleansetError if one of the types has no
    ratings, or if people, images or ratings are too few to tell the variances apart.
    """
    problem = RemlProblem(
        np.asarray(ratings, np.float64), people, images, np.asarray(modified, bool), slopes=random == "slopes"
    )
    theta = problem.minimize()
    solution = problem.solve(theta)
    residual = solution.squares / problem.freedom
    parameters = np.append(theta, math.sqrt(residual))
    freedom = _satterthwaite(problem, parameters) if degrees == "satterthwaite" else (math.inf, math.inf)
    errors = np.sqrt(problem.covariance(parameters))
    intercept, effect = (
        Effect(float(estimate), float(error), df)
        for estimate, error, df in zip(EFFECTS @ solution.beta, errors, freedom, strict=True)
    )
    variances = _variances(problem, theta, residual)
    criterion = problem.profiled_criterion(theta)
    return MixedFit(
        intercept=intercept,
        modified=effect,
        variances=variances,
        criterion=criterion,
        ratings=problem.ratings,
        people=problem.people,
        images=problem.images,
    )


def _variances(problem: RemlProblem, theta: Floats, residual: float) -> Variances:
    """The variance components for these ratios and the residual variance."""
    real, modified = (residual * ratio**2 for ratio in problem.ratios(theta))
    # without slopes, a person's means of the two types of images are one
    factor = np.array([[theta[0], 0.0], theta[1:3] if problem.slopes else [theta[0], 0.0]])
    people = EFFECTS @ factor @ factor.T @ EFFECTS.T * residual
    return Variances(
        person=float(people[0, 0]),
        slope=float(people[1, 1]),
        covariance=float(people[0, 1]),
        real=real,
        modified=modified,
        residual=residual,
    )


def _satterthwaite(problem: RemlProblem, parameters: Floats) -> tuple[float, float]:
    """Degrees of freedom of the two effects: 2 v^2 / (g' A g), v the variance of an estimate, g its gradient.

    A is the covariance of the parameters, twice the inverse of the criterion's Hessian. Directions in which the
    criterion does not curve, for example because a variance is 0, are left out, as in lmerTest.
    """
    gradients = derivatives(problem.covariance, parameters)
    hessian = second_derivatives(problem.criterion, parameters)
    values, vectors = np.linalg.eigh(hessian)
    # the inverse of a smaller eigenvalue would consist of rounding errors
    kept = values > MIN_EIGENVALUE * values.max()
    spread = vectors[:, kept] / np.sqrt(values[kept] / 2)
    variances = problem.covariance(parameters)
    below = ((gradients @ spread) ** 2).sum(axis=1)
    first, second = (float(2 * v**2 / each) if each > 0 else math.inf for v, each in zip(variances, below, strict=True))
    return first, second
