"""The cumulative link model against its likelihood, written again, and against what is known in closed form."""

import json
import math
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import minimize

from cleanset.errors import CleansetError
from cleanset.studies.realness.ordinal import fit_ordinal
from tests.studies.realness.conftest import arguments, command, path_of, published


def test_two_ratings_in_closed_form() -> None:
    """30 of 50 real and 10 of 40 modified images get 1, each by another person: the log of the odds ratio."""
    ratings = [1] * 30 + [-1] * 20 + [1] * 10 + [-1] * 30
    modified = [False] * 50 + [True] * 40
    found = fit_ordinal(ratings, [str(number) for number in range(90)], modified)
    assert found.effect == pytest.approx(math.log((10 / 30) / (30 / 20)), abs=1e-4)
    assert found.odds_ratio == pytest.approx(2 / 9, abs=1e-4)
    assert found.standard_error == pytest.approx(math.sqrt(1 / 30 + 1 / 20 + 1 / 10 + 1 / 30), rel=0.02)
    assert found.thresholds == pytest.approx([math.log(20 / 30)], abs=1e-4)
    assert found.difference == pytest.approx(2 * (10 / 40 - 30 / 50), abs=1e-4)
    low, high = found.interval
    assert (low + high) / 2 == pytest.approx(found.effect)
    assert high - low == pytest.approx(2 * 1.959964 * found.standard_error)


def test_ratings_of_one_person_are_alike() -> None:
    """Each answer four times by the same person says no more than once."""
    ratings = [1, 2, -1, 0, 2, -2, 1, 0, -1, -2, 0, 1] * 4
    modified = [number % 3 == 0 for number in range(48)]
    people = [str(number) for number in range(48)]
    once, often = fit_ordinal(ratings, people, modified), fit_ordinal(ratings * 4, people * 4, modified * 4)
    assert often.effect == pytest.approx(once.effect, abs=1e-4)
    assert often.standard_error == pytest.approx(once.standard_error, rel=0.05)
    apart = fit_ordinal(ratings * 4, [str(number) for number in range(192)], modified * 4)
    assert apart.standard_error == pytest.approx(once.standard_error / 2, rel=0.05)


def test_people_who_do_not_differ_leave_no_error() -> None:
    """The clustered standard error is 0, but for rounding, and the interval had no width."""
    ratings = [1, 2, -1, 0, 2, -2, 1, 0, -1, -2, 0, 1] * 3
    people = [str(number // 12) for number in range(36)]
    with pytest.raises(CleansetError, match=r"standard error by people is 0, as people do not differ, .* leave out --"):
        fit_ordinal(ratings, people, [number % 3 == 0 for number in range(36)])


def test_a_published_study(repository: Path) -> None:
    """The likelihood of the 2 x 5 counts, maximized here; the implied difference is near that of the means."""
    values, people, _, modified = arguments(published(repository, "advpp"))
    found = fit_ordinal(values, people, modified)
    counts = Counter(zip(modified, values, strict=True))

    def deviance(parameters: npt.NDArray[np.float64]) -> float:
        effect, first, *steps = parameters
        limits = first + np.concatenate([[0], np.cumsum(np.exp(steps))])
        total = 0.0
        for kind in (False, True):
            shares = np.diff(np.concatenate([[0], 1 / (1 + np.exp(effect * kind - limits)), [1]]))
            total -= sum(counts[kind, rating] * math.log(shares[rating + 2]) for rating in range(-2, 3))
        return total

    best = minimize(deviance, [0.0, -1, 0, 0, 0], method="BFGS").x
    assert found.effect == pytest.approx(best[0], abs=1e-3)
    assert found.effect == pytest.approx(-1.4248, abs=1e-3)
    assert found.difference == pytest.approx(-0.519 - 0.587, abs=0.02)


@pytest.mark.parametrize(
    ("ratings", "modified", "people"),
    [
        ([1, 1, 1, 1], [0, 0, 1, 1], "abab"),
        ([-2, -2, 2, 2], [1, 1, 0, 0], "abab"),
        ([-2, 0, 0, 2], [1, 1, 0, 0], "abab"),
        ([-2, 0, 1, 2], [0, 0, 0, 0], "abab"),
        ([-2, 2, -2, 2], [1, 1, 0, 0], "aaaa"),
    ],
)
def test_no_ordinal_model(ratings: list[int], modified: list[int], people: str) -> None:
    with pytest.raises(CleansetError, match="no ordinal model can be fitted to them; expected several people"):
        fit_ordinal(ratings, list(people), [bool(each) for each in modified])


@pytest.mark.long
def test_by_the_command(repository: Path) -> None:
    options = (path_of(repository, "advpp"), "--settings", "random=intercepts")
    assert "ordinal model" not in command("analyse", *options)
    assert "ordinal" not in json.loads(command("analyse", *options, "--json"))
    text = command("analyse", *options, "--ordinal")
    assert "ordinal model, log-odds: -1.425 (95 % -1.661 to -1.188)" in text
    assert "odds ratio 0.241; mean difference that it implies: -1.112" in text
    found = json.loads(command("analyse", *options, "--ordinal", "--json"))["ordinal"]
    assert (found["effect"], found["odds_ratio"], len(found["thresholds"])) == (-1.4248, 0.2405, 4)


def test_without_statsmodels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "statsmodels.miscmodels.ordinal_model", None)
    with pytest.raises(CleansetError, match=r"--ordinal: statsmodels cannot be imported .* pip install .*study"):
        fit_ordinal([1, -1], ["a", "b"], [True, False])
