"""A linear mixed model of ratings with crossed random effects of person and image, fitted by REML.

The model is rating = intercept + effect * modified + person + image + residual, where every image is either real or
modified. In R, with `image` distinct for the two types:

    intercepts   rating ~ type + (1 | person) + (1 | image)
    slopes       rating ~ type + (1 + type | person) + (0 + real | image) + (0 + modified | image)

`slopes` lets people differ in how they rate modified images, and the images of the two types differ in how much they
vary. (1 + type | image) is the same if no image has both types: the correlation then has no effect.

The criterion is profiled over the ratios of standard deviations to the residual's, as in lme4 (Bates et al., "Fitting
Linear Mixed-Effects Models Using lme4", JSS 2015, section 3). Either images or people are eliminated first, whichever
have more random effects: an image has one, a person one or two, so that their part of the inverse is a number or of
2 x 2, and a dense system as large as the number of the others remains. A sparse factor would not be smaller: people's
lists are drawn from all images, and elimination joins any two that have a person in common. So the time grows linearly
with the people once they have more effects than there are images. Degrees of freedom are Satterthwaite's, as in
lmerTest (Kuznetsova et al., JSS 2017), or infinite (`normal`).

A published study's 5,000 to 7,400 ratings take under a second on one core. statsmodels' MixedLM, for which crossed
effects are one dense group, takes longer than a minute for 2,000.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
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

MAX_GROUPS = 32
"""Different numbers of ratings of a person up to which products are summed once; more would need too much memory."""

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
        self._wide = wide
        self._sums = csr_array(by_image @ wide)
        self._of_image = np.bincount(numbers)
        self.by_person = np.bincount(person, minlength=people).astype(np.float64)
        self.counts, self.images = np.unique(self._of_image, return_counts=True)
        self.reduced_products = lru_cache(maxsize=4)(self._reduced_products)  # a search changes one ratio at a time

    @cached_property
    def products(self) -> Floats:
        """The products of the columns."""
        return np.asarray((self._wide.T @ self._wide).toarray())

    @cached_property
    def of_images(self) -> Floats:
        """The products of the images' sums, of all images of each of `counts`."""
        chosen = [csr_array(self._sums[np.flatnonzero(self._of_image == each)]) for each in self.counts]
        return np.stack([(each.T @ each).toarray() for each in chosen])

    def _reduced_products(self, ratio: float) -> Floats:
        """The products with the images eliminated (Woodbury's formula), for the images' ratio to the residual."""
        return np.asarray(self.products - np.tensordot(ratio**2 / (1 + self.counts * ratio**2), self.of_images, axes=1))

    def log_determinant(self, ratio: float) -> float:
        """The images' part of log |V|."""
        return float(self.images @ np.log1p(self.counts * ratio**2))

    def design(self) -> Floats:
        """The information matrix of the random effects' design, less what the mean explains.

        The information on the variances of people, images and residual is half of the matrix if all ratings are
        independent: its entries are tr(P Q P Q'), Q the part of V that a variance multiplies, P the projection off the
        mean.
        """
        images = self._of_image.astype(np.float64)
        people = self.by_person
        count = images.sum()
        sums = self._sums[:, : len(people)]
        across = (sums.multiply(sums)).sum() - 2 / count * (images @ (sums @ people))
        across += (images @ images) * (people @ people) / count**2
        traces = [count - each @ each / count for each in (people, images)]
        information = [
            [_centred(people, people), across, traces[0]],
            [across, _centred(images, images), traces[1]],
            [*traces, count - 1],
        ]
        return np.array(information)


def _centred(one: Floats, other: Floats) -> float:
    """The sum of products of two matrices diag(n) - n n' / sum(n), for two vectors n of counts."""
    a, b = (each / (each.sum() or 1) for each in (one, other))
    return float(one @ other - (one * other) @ a - (one * other) @ b + (one @ other) * (a @ b))


class _Images:
    """The system of the images, from which people are eliminated.

    A person has two effects, on the ratings of real and of modified images, whose part of the inverse is of 2 x 2 and
    depends on the person's numbers of ratings alone: so the products of the sums of all people of the same numbers are
    summed once. There is a column for each image, the real ones first, one for the mean of each type, and one of the
    ratings.
    """

    def __init__(self, y: Floats, person: Ints, people: int, image: Ints, modified: Flags) -> None:
        self.real, self.modified = (len(np.unique(image[of])) for of in (~modified, modified))
        numbers = np.unique(np.column_stack([modified, image]), axis=0, return_inverse=True)[1].ravel()
        self.count = self.real + self.modified
        rows = np.arange(len(y))
        one = np.ones(len(y))
        columns = [numbers, self.count + modified, np.full(len(y), self.count + 2)]
        at = (np.tile(rows, 3), np.concatenate(columns))
        wide = csr_array((np.concatenate([one, one, y]), at), shape=(len(y), self.count + 3))
        self.products = np.asarray((wide.T @ wide).toarray())
        types = [np.flatnonzero(of) for of in (~modified, modified)]
        self._sums = [
            csr_array(csr_array((np.ones(len(of)), (person[of], of)), shape=(people, len(y))) @ wide) for of in types
        ]
        by_person = np.column_stack([np.bincount(person[of], minlength=people) for of in types])
        self.numbers, group, self.people = np.unique(by_person, axis=0, return_inverse=True, return_counts=True)
        self._group = group.ravel()

    @cached_property
    def of_people(self) -> Floats:
        """The products of people's sums of real and of modified images, for all people of each of `numbers`."""
        found = []
        for place in range(len(self.numbers)):
            real, modified = (each[np.flatnonzero(self._group == place)] for each in self._sums)
            across = (real.T @ modified).toarray()
            found.append([(real.T @ real).toarray(), across + across.T, (modified.T @ modified).toarray()])
        return np.array(found)

    def reduced(self, factor: Floats, ratios: tuple[float, float]) -> tuple[Floats, Floats, Floats, float]:
        """The images' block, their products with means and ratings, these by themselves, and the people's log |V|.

        `factor`: of the covariance of a person's two effects, of shape (2, 2), and `ratios` of the images, to the
        residual.
        """
        inner = np.eye(2) + factor.T @ (self.numbers[:, :, np.newaxis] * factor)
        weights = factor @ np.linalg.solve(inner, np.broadcast_to(factor.T, inner.shape))
        if len(self.numbers) <= MAX_GROUPS:
            weights = np.stack([weights[:, 0, 0], weights[:, 0, 1], weights[:, 1, 1]], axis=1)
            products = self.products - np.tensordot(weights, self.of_people, axes=2)
        else:
            each = weights[self._group]
            real, modified = (sums.toarray() for sums in self._sums)
            of_real = each[:, 0, 0, np.newaxis] * real + each[:, 0, 1, np.newaxis] * modified
            of_modified = each[:, 1, 0, np.newaxis] * real + each[:, 1, 1, np.newaxis] * modified
            products = self.products - (real.T @ of_real + modified.T @ of_modified)
        count = self.count
        scale = np.repeat(ratios, [self.real, self.modified])
        block = scale[:, np.newaxis] * products[:count, :count] * scale
        side = scale[:, np.newaxis] * products[:count, count:]
        logs = float(self.people @ np.linalg.slogdet(inner)[1])
        return block, side, products[count:, count:], logs


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
        self._images = _Images(y, person, self.people, image, modified)
        self.types = [_Type(y[of], person[of], self.people, image[of]) for of in (~modified, modified)]
        self.images = sum(int(each.images.sum()) for each in self.types)
        # with one rating for each person or image, its effect and the residual cannot be separated
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
        real, modified = (each.design() for each in self.types)
        by_person = [each.by_person for each in self.types]
        if not self.slopes:
            names = ["the variance of people", "the variance of images", "the residual variance"]
            information = real + modified
            information[0, 0] += 2 * _centred(*by_person)
        else:
            names = [
                *("the variance of people's ratings of real images", "the variance of real images"),
                *("the residual variance", "the variance of people's ratings of modified images"),
                *("the variance of modified images", "the covariance of people's ratings of both types"),
            ]
            information = np.zeros((6, 6))
            information[:3, :3] = real
            information[np.ix_([3, 4, 2], [3, 4, 2])] += modified
            information[5, 5] = 2 * _centred(*by_person)
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
        # dense systems of people's effects, or of images'
        if self.people * (2 if self.slopes else 1) > self.images:
            block, side, rest, logs = self._images.reduced(self.factor(theta), self.ratios(theta))
        else:
            block, side, rest, logs = self._people_reduced(theta)
        # lme4's system: the identity keeps it positive definite even where a variance is 0
        lower = cholesky(block + np.eye(len(block)), lower=True)
        across = solve_triangular(lower, side, lower=True)
        rest -= across.T @ across
        fixed = cholesky(rest[:2, :2], lower=True)
        half = solve_triangular(fixed, np.eye(2), lower=True)
        inverse = half.T @ half
        beta = inverse @ rest[:2, 2]
        logs += 2 * float(np.log(np.diag(lower)).sum() + np.log(np.diag(fixed)).sum())
        return RemlSolution(beta, inverse, float(rest[2, 2] - beta @ rest[:2, 2]), logs)

    def factor(self, theta: Floats) -> Floats:
        """The factor of the covariance of a person's effects on ratings of real and of modified images."""
        # without slopes they are one
        return np.array([[theta[0], 0.0], theta[1:3] if self.slopes else [theta[0], 0.0]])

    def _people_reduced(self, theta: Floats) -> tuple[Floats, Floats, Floats, float]:
        """The people's block, their products with means and ratings, these by themselves, and the images' log |V|."""
        ratios = self.ratios(theta)
        count = self.people
        real, modified = (each.reduced_products(ratio) for each, ratio in zip(self.types, ratios, strict=True))
        # real, modified, ratings
        rest = np.zeros((3, 3))
        for place, each in enumerate((real, modified)):
            rest[np.ix_([place, 2], [place, 2])] += each[count:, count:]
        logs = sum(each.log_determinant(ratio) for each, ratio in zip(self.types, ratios, strict=True))
        return *self._people(theta, real[:count], modified[:count]), rest, logs

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
            # the criterion is even in a ratio, so 0 is stationary: a search that ends there starts again next to it
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

    `person`: people's intercepts. `slope`: people's additions to the effect; `covariance`: between the two. `real` and
    `modified`: the images of a type. With `intercepts`, slope and covariance are 0, and real equals modified.
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
    ratings, or if people, images or ratings are too few to separate the variances.
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
    factor = problem.factor(theta)
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
