"""The mixed model against R's lme4 and lmerTest, and against what is known in closed form."""

import math
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from cleanset.errors import CleansetError
from cleanset.studies.realness import mixed as crossed
from cleanset.studies.realness.mixed import RandomTerms, fit
from cleanset.studies.realness.planning import PUBLISHED_FIT
from tests.studies.realness.conftest import DIFFERENT_PEOPLE, arguments, path_of, published

R_FOUND = """
advpp intercepts 0.5820167 -1.1119096 0.0541605 743.8957 0.1418625 0 0.3958436 0.3958436 1.3481797 16737.2380
advpp slopes 0.5826692 -1.1149635 0.0929310 76.7338 0.2233577 0.2822790 0.3498678 0.4233296 1.2914808 16593.8546
aca intercepts 0.7188044 -1.8715588 0.0386932 2035.4615 0.1483528 0 0.2563108 0.2563108 1.2978746 16435.0095
aca slopes 0.7219882 -1.8765203 0.0990891 51.8203 0.1891344 0.4228158 0.5609503 0.0669674 1.1359994 16090.4911
semanticadv slopes 0.9265250 -1.9885647 0.0748792 138.8929 0.1787166 0.2481083 0.4041086 0.6137177 1.0091532 23219.4586
cadv intercepts 0.9234560 -2.5942726 0.0324131 1762.1976 0.0328354 0 0.2821817 0.2821817 0.8027563 17564.0235
"""
"""Study and random effects; intercept; effect, standard error, df; variances of person, slope, real, modified images,
and residual; REML criterion."""
FORMULAS: dict[RandomTerms, str] = {
    "intercepts": "rating ~ type + (1 | pid) + (1 | image)",
    "slopes": "rating ~ type + (1 + type | pid) + (0 + r | image) + (0 + m | image)",
}
R_CODE = """
suppressMessages(library(lmerTest))
d <- read.csv("FILE"); d <- d[d$pid <= 20, ]
d$type <- factor(d$image_type, levels = c("real", "modified")); d$pid <- factor(d$pid)
d$image <- factor(paste(d$image_type, d$image_id))
d$r <- as.numeric(d$type == "real"); d$m <- 1 - d$r
model <- lmer(FORMULA, data = d, REML = TRUE)
cat(format(c(t(summary(model)$coefficients[, 1:3])), digits = 12), format(REMLcrit(model), digits = 12))
"""


@pytest.mark.parametrize("line", R_FOUND.strip().splitlines())
def test_what_r_finds(line: str, repository: Path) -> None:
    """lme4 1.1 and lmerTest 3.1-3 of Debian on all ratings of a study, each image by type and number.

    lmer(rating ~ type + (1 | pid) + (1 | image)), and lmer(rating ~ type + (1 + type | pid) + (0 + r | image) +
    (0 + m | image)), r and m being 1 for real and for modified; then summary(model)$coefficients, VarCorr(model) and
    REMLcrit(model).
    """
    study, random, *numbers = line.split()
    intercept, effect, error, df, person, slope, real, modified, residual, criterion = map(float, numbers)
    found = fit(*arguments(published(repository, study)), "slopes" if random == "slopes" else "intercepts")
    assert found.intercept.estimate == pytest.approx(intercept, abs=2e-6)
    assert found.modified.estimate == pytest.approx(effect, abs=2e-6)
    assert found.modified.standard_error == pytest.approx(error, abs=5e-6)
    assert found.modified.degrees == pytest.approx(df, rel=2e-4)
    assert found.criterion == pytest.approx(criterion, abs=2e-4)
    components = found.variances
    assert components.person == pytest.approx(person, abs=1e-4)
    assert components.slope == pytest.approx(slope, abs=1e-4)
    assert (components.real, components.modified) == pytest.approx((real, modified), abs=1e-4)
    assert components.residual == pytest.approx(residual, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("random", FORMULAS)
def test_r_now(random: RandomTerms, repository: Path, rscript: str) -> None:
    """Twenty people of diffattack, here and in the R that is installed."""
    code = R_CODE.replace("FILE", str(path_of(repository, "diffattack"))).replace("FORMULA", FORMULAS[random])
    done = subprocess.run([rscript, "-e", code], capture_output=True, text=True, check=True)
    numbers = [float(each) for each in done.stdout.split()]
    ratings = tuple(each for each in published(repository, "diffattack") if int(each.person) <= 20)
    found = fit(*arguments(ratings), random)
    effects = [
        number
        for each in (found.intercept, found.modified)
        for number in (each.estimate, each.standard_error, each.degrees)
    ]
    assert effects[::3] == pytest.approx(numbers[0:6:3], abs=1e-5)
    assert effects[1::3] == pytest.approx(numbers[1:6:3], abs=1e-4)
    assert effects[2::3] == pytest.approx(numbers[2:6:3], rel=1e-2)
    assert found.criterion == pytest.approx(numbers[6], abs=1e-3)


def test_no_variance_of_modified_images(repository: Path) -> None:
    """In ncf, where lme4 finds 0 too: the degrees of freedom are those of the other variances.

    R: effect -2.7201231, standard error 0.08154, REML criterion 15923.8061412.
    """
    found = fit(*arguments(published(repository, "ncf")))
    assert found.variances.modified == pytest.approx(0, abs=1e-6)
    assert found.modified.estimate == pytest.approx(-2.7201231, abs=1e-5)
    assert found.criterion == pytest.approx(15923.8061412, abs=1e-4)
    assert 60 < found.modified.degrees < 68


@pytest.mark.parametrize("random", FORMULAS)
def test_a_search_that_ends_at_0_starts_again(
    random: RandomTerms, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0 is stationary in each ratio, and not the best; a search that starts there would stay."""
    ratings = arguments(published(repository, "aca"))
    expected = fit(*ratings, random, "normal")
    monkeypatch.setattr(crossed, "STARTS", (0.0,))
    found = fit(*ratings, random, "normal")
    assert found.criterion == pytest.approx(expected.criterion, abs=1e-4)
    assert found.modified.estimate == pytest.approx(expected.modified.estimate, abs=1e-4)


@pytest.mark.long
def test_the_lowest_of_several_minima_counts() -> None:
    """A single search that starts at .5 ends in a higher one, with a standard error of .3737.

    The criterion is not lower anywhere on a grid of ratios of people and images to the residual.
    """
    rows = [[0, 1, 1, 0, -2, 0, 0], [0, -1, -1, 1, 1, 0, 0], [2, 0, 0, -2, -1, 2, -1], [-1, 1, -1, 1, 0, 1, 0],
            [1, -1, 1, -1, 1, 2, 0], [-1, -2, -2, 0, 0, 0, -1]]  # fmt: skip
    person, image = (each.ravel().tolist() for each in np.indices((6, 7)))
    y, modified = np.ravel(rows).astype(float), np.asarray(image) >= 2
    names = [f"p{each}" for each in person], [f"i{each}" for each in image]
    found = fit(y, *names, modified.tolist(), "intercepts")
    assert found.modified.standard_error == pytest.approx(0.3909, abs=1e-4)
    problem = crossed.RemlProblem(y, *names, modified, slopes=False)
    ratios = np.linspace(0, 3, 61)
    grid = min(problem.profiled_criterion(np.array([one, other])) for one in ratios for other in ratios)
    assert found.criterion <= grid + 1e-6
    assert found.criterion == pytest.approx(126.5466, abs=1e-4)


def drawn(people: int, images: int, seed: int) -> npt.NDArray[np.float64]:
    """Everybody rates everything: the first half of the images is real."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=(people, 1)) + 0.7 * rng.normal(size=(1, images)) + rng.normal(size=(people, images))
    y[:, images // 2 :] += 0.5
    return y


def test_a_balanced_design_is_an_analysis_of_variance() -> None:
    """If everybody rates everything, REML gives the estimates of mean squares (Searle et al., 1992, chapter 4)."""
    people, images = 12, 20
    y = drawn(people, images, 3)
    cells = [(f"p{person}", f"i{image}", image >= 10) for person in range(people) for image in range(images)]
    found = fit(y.ravel(), [p for p, _, _ in cells], [i for _, i, _ in cells], [m for _, _, m in cells], "intercepts")
    means = [y[:, :10].mean(), y[:, 10:].mean()]
    of_images, of_people = y.mean(axis=0), y.mean(axis=1)
    between = people * sum(((part - part.mean()) ** 2).sum() for part in (of_images[:10], of_images[10:]))
    rest = ((y - of_images - of_people[:, np.newaxis] + y.mean()) ** 2).sum() / ((people - 1) * (images - 1))
    ms_images = between / (images - 2)
    ms_people = images * ((of_people - y.mean()) ** 2).sum() / (people - 1)
    assert found.variances.residual == pytest.approx(rest, rel=1e-4)
    assert found.variances.real == found.variances.modified == pytest.approx((ms_images - rest) / people, rel=1e-4)
    assert found.variances.person == pytest.approx((ms_people - rest) / images, rel=1e-4)
    assert found.modified.estimate == pytest.approx(means[1] - means[0])
    # the effect's variance is that of image means alone: 2 MS / (people * images of a type), with images - 2 df
    assert found.modified.standard_error == pytest.approx(math.sqrt(2 * ms_images / (people * 10)), rel=1e-4)
    assert found.modified.degrees == pytest.approx(images - 2, rel=1e-2)


def test_normal_degrees_are_infinite_and_change_nothing_else(repository: Path) -> None:
    ratings = arguments(published(repository, "aca")[:2000])
    one, other = fit(*ratings, "intercepts", "normal"), fit(*ratings, "intercepts")
    assert math.isinf(one.modified.degrees)
    assert not math.isinf(other.modified.degrees)
    assert one.modified.standard_error == other.modified.standard_error


@pytest.mark.long
@pytest.mark.slow
def test_the_defaults_of_the_plan_are_the_medians_of_the_studies(repository: Path) -> None:
    found = [fit(*arguments(published(repository, study)), degrees="normal").variances for study in DIFFERENT_PEOPLE]
    for name in ("person", "slope", "covariance", "real", "modified", "residual"):
        assert getattr(PUBLISHED_FIT, name) == pytest.approx(
            np.median([getattr(each, name) for each in found]), abs=6e-4
        )


@pytest.mark.parametrize(
    ("values", "modified", "words"),
    [
        ([1, 2, 0, -1], [False] * 4, "none of modified images"),
        ([1, 2, 0, -1], [True] * 4, "none of real images"),
        ([1, 1, 1, 1], [True, False, True, False], "without variation"),
        ([1, 2, 0, -1], [True, False, True, False], "4 of 2 people and 4 images; expected more ratings"),
    ],
)
def test_too_little_to_fit(values: list[int], modified: list[bool], words: str) -> None:
    with pytest.raises(CleansetError, match=words):
        fit(values, ["a", "a", "b", "b"], ["1", "2", "3", "4"], modified)


Arguments = tuple[list[float], list[str], list[str], list[bool]]


def chosen_ratings(ratings: Arguments, places: list[int]) -> Arguments:
    y, people, images, modified = ratings
    return (
        [y[place] for place in places],
        [people[place] for place in places],
        [images[place] for place in places],
        [modified[place] for place in places],
    )


def sized(real: int, modified: int, people: int = 12) -> Arguments:
    """Everybody rates every image."""
    y = drawn(people, real + modified, 3)
    cells = [(f"p{person}", f"i{image}", image >= real) for person in range(people) for image in range(real + modified)]
    return y.ravel().tolist(), [p for p, _, _ in cells], [i for _, i, _ in cells], [m for _, _, m in cells]


@pytest.mark.parametrize("random", FORMULAS)
@pytest.mark.parametrize(("untouched", "modified", "kind"), [(1, 10, "real"), (10, 1, "modified"), (1, 1, "real")])
def test_one_image_of_a_type_tells_no_variance(untouched: int, modified: int, kind: str, random: RandomTerms) -> None:
    """The standard error was .395 to 2.225, depending on where the search began."""
    with pytest.raises(CleansetError, match=f"found 1 {kind} image, from which no variance of {kind} images can"):
        fit(*sized(untouched, modified), random)
    fit(*sized(2, 2), random)


def test_slopes_need_two_people_who_rate_a_type() -> None:
    every = _, people, _, modified = sized(5, 5)
    ratings = chosen_ratings(every, [at for at, name in enumerate(people) if not modified[at] or name == "p3"])
    with pytest.raises(CleansetError, match=r"found 1 person who rates modified images, .* or random=intercepts"):
        fit(*ratings)
    fit(*ratings, "intercepts")


@pytest.mark.parametrize(
    ("chosen", "random", "names"),
    [
        # people who rate either real or modified images
        (lambda p, i: (p < 6) == (i < 5), "slopes", "the covariance of people's ratings of both types"),
        # each modified image is rated by one person, who rates no other one
        (lambda p, i: i < 5 or i == p + 5, "slopes", "modified images and the variance of modified images"),
        # everybody rates an image of their own
        (lambda p, i: i == p, "intercepts", "the variance of people and the variance of images"),
    ],
)
def test_a_flat_criterion_is_refused(chosen: Callable[[int, int], bool], random: RandomTerms, names: str) -> None:
    # twice, or the number of ratings alone would refuse some
    ratings = chosen_ratings(sized(5, 7), [at for at in range(144) if chosen(at // 12, at % 12)] * 2)
    with pytest.raises(CleansetError, match=f"do not determine .*{names}: the REML criterion is flat there"):
        fit(*ratings, random)


def dense_criterion(ratings: Arguments, theta: npt.NDArray[np.float64]) -> float:
    """The REML criterion at the best residual variance, by its definition, from the covariance of all ratings."""
    y, people, images, modified = (np.asarray(each) for each in ratings)
    same_person, same_image = (each[:, None] == each for each in (people, images))
    both = np.ix_(modified.astype(int), modified.astype(int))
    if len(theta) == 5:
        factor = np.array([[theta[0], 0], [theta[1], theta[2]]])
        of_images = np.where(modified, theta[4], theta[3]) ** 2
    else:
        factor = np.array([[theta[0], 0], [theta[0], 0]])
        of_images = np.full(len(y), theta[1] ** 2)
    same_image = same_image & (modified[:, None] == modified)
    covariance = np.eye(len(y)) + (factor @ factor.T)[both] * same_person + of_images * same_image
    design = np.column_stack([~modified, modified]).astype(float)
    inverse = np.linalg.inv(covariance)
    information = design.T @ inverse @ design
    rest = y - design @ np.linalg.solve(information, design.T @ inverse @ y)
    freedom = len(y) - 2
    logs = np.linalg.slogdet(covariance)[1] + np.linalg.slogdet(information)[1]
    return float(logs + freedom * (1 + math.log(2 * math.pi * (rest @ inverse @ rest) / freedom)))


@pytest.mark.parametrize("random", FORMULAS)
@pytest.mark.parametrize(("people", "images"), [(40, 12), (12, 40)])
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_the_criterion_is_that_of_the_definition(
    random: RandomTerms, people: int, images: int, missing: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether people or images are eliminated, and whether or not people have the same numbers of ratings.

    The last image of each type has the name of one of the other type.
    """
    rng = np.random.default_rng(7)
    y, of_people, of_images, modified = sized(images // 2, images // 2, people)
    of_images = [f"i{int(name[1:]) % (images - 1)}" for name in of_images]
    chosen = np.flatnonzero(rng.random(len(y)) >= missing).tolist()
    ratings = chosen_ratings((y, of_people, of_images, modified), chosen)
    slopes = random == "slopes"
    problem = crossed.RemlProblem(np.array(ratings[0]), *ratings[1:3], np.array(ratings[3]), slopes=slopes)
    for theta in ([0.5, 0.2, 0.7, 0.4, 1.5], [0.0, -0.3, 0.0, 0.0, 0.9]) if slopes else ([0.5, 0.4], [0.0, 1.1]):
        expected = dense_criterion(ratings, np.array(theta))
        for groups in (32, 0):
            monkeypatch.setattr(crossed, "MAX_GROUPS", groups)
            assert problem.profiled_criterion(np.array(theta)) == pytest.approx(expected, abs=1e-8)
