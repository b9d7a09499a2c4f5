"""The mixed model of realness studies in simulations: coverage by the number of images, and the search's start.

Everybody rates every image; ratings are normal, for coverage with the variances of the published studies. Modified
images differ by the bound, so that whatever is called equivalent is an error.
"""

import numpy as np

from cleanset.errors import CleansetError
from cleanset.studies.realness import mixed
from cleanset.studies.realness.equivalence import equivalence, interval
from cleanset.studies.realness.mixed import Variances, fit
from cleanset.studies.realness.planning import PUBLISHED_FIT
from measuring import print_machine, print_table

STUDIES = 350
PEOPLE = 20
IMAGES = ((2, 2), (2, 20), (5, 5), (10, 10), (20, 20))
"""Real and modified images."""
BOUND = 1.0
"""Larger than the 0.2 of the published studies, which so few images never show."""
SMALL_STUDIES = 400
OTHER_STARTS = ((0.5,), (1.0,), (5.0,))
"""Starts of a single search; 0.5 was the only one before."""
SMALL_VARIANCES = Variances(person=0.09, slope=0, covariance=0, real=0.09, modified=0.09, residual=1)
"""So small beside the residual one that the criterion may have several minima."""
SEED = 20_26


def main() -> None:
    print_machine()
    print_coverage()
    print_starts()


def study(
    rng: np.random.Generator, people: int, real: int, modified: int, found: Variances = PUBLISHED_FIT
) -> tuple[list[float], list[str], list[str], list[bool]]:
    """Ratings with their people, images and types."""
    images = real + modified
    is_modified = np.arange(images) >= real
    of_people = rng.multivariate_normal(
        [0, BOUND], [[found.person, found.covariance], [found.covariance, found.slope]], people
    )
    of_images = rng.normal(size=images) * np.sqrt(np.where(is_modified, found.modified, found.real))
    y = of_people[:, :1] + of_people[:, 1:] * is_modified + of_images
    y = y + rng.normal(scale=np.sqrt(found.residual), size=y.shape)
    person, image = np.indices(y.shape)
    names = [[str(each) for each in numbers.ravel()] for numbers in (person, image)]
    return y.ravel().tolist(), names[0], names[1], is_modified[image.ravel()].tolist()


def print_coverage() -> None:
    rng = np.random.default_rng(SEED)
    rows = []
    for real, modified in IMAGES:
        covered = []
        equivalent = []
        halves = []
        degrees = []
        for _ in range(STUDIES):
            effect = fit(*study(rng, PEOPLE, real, modified)).modified
            low, high = interval(effect, 0.95)
            covered.append(low <= BOUND <= high)
            halves.append((high - low) / 2)
            degrees.append(effect.degrees)
            equivalent.append(equivalence(effect, BOUND).equivalent)
        numbers = (f"{100 * np.mean(covered):.1f}", f"{100 * np.mean(equivalent):.1f}", f"{np.median(halves):.2f}")
        rows.append((str(real), str(modified), *numbers, f"{np.median(degrees):.1f}"))
    head = ("real images", "modified", "95 % interval covers, %", "called equivalent, %", "half width", "df")
    print_table(f"{STUDIES:,} studies of {PEOPLE} people each; medians of half width and df", head, rows)


def print_starts() -> None:
    """Print how often the standard error depends on the start of the search, in small studies."""
    rng = np.random.default_rng(SEED + 1)
    several = mixed.STARTS
    alone = sum(OTHER_STARTS, ())
    apart = dict.fromkeys((*OTHER_STARTS, several), 0)
    for _ in range(SMALL_STUDIES):
        data = study(rng, 4, 4, 4, SMALL_VARIANCES)
        errors = {}
        for start in (*apart, several + alone):
            mixed.STARTS = start
            try:
                errors[start] = fit(*data, "intercepts").modified.standard_error
            except CleansetError:
                errors[start] = np.nan
        mixed.STARTS = several
        best = errors.pop(several + alone)
        for start, error in errors.items():
            apart[start] += int(not np.isclose(error, best, rtol=0.01, equal_nan=True))
    rows = [(" ".join(map(str, start)), f"{100 * count / SMALL_STUDIES:.1f}") for start, count in apart.items()]
    title = f"{SMALL_STUDIES} studies of 4 people and 4 + 4 images, random=intercepts"
    print_table(title, ("starts of the search", "other standard error than from all starts, %"), rows)


if __name__ == "__main__":
    main()
