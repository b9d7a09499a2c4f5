"""Coverage of the audits' bounds in simulated sets, and the sequential test of reviewers on real raters.

Each line has 10,000 simulated sets of the size of the published one; flawed images are drawn as in an audit. The raters
are the 78 whose golden answers are public; their arrays are in `reassessed/` of the folder of real photographs.
"""

from bisect import bisect_left
from collections.abc import Callable
from functools import cache
from math import comb

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from cleanset.review.calibration import ALARM, evidence_of_misses
from cleanset.statistics.finite import Draws, fixed_bound, open_bound
from cleanset.statistics.shares import lower_limit, lower_limit_at_any_time
from measuring import REAL, print_machine, print_table

SETS = 10_000
IMAGES = 2_966
DRAWN = 281
FLAWED = (0, 6, 30, 89, 297)
"""0, .2, 1, 3 and 10 % of the images."""
GOLDS = 60
SENSITIVITIES = (0.95, 0.66)
LOOKS = (100, 200, 281)
"""The numbers of draws after which an open audit with imperfect auditors may stop."""
GOLDS_SEEN = (50, 200)
"""The numbers of gold items up to which the limits of the sensitivity are looked at."""
GOLDS_TESTED = (20, 50, 100, 160, 200, 300)
"""The numbers of gold items within which the sequential test may alarm."""
MAX_DRAWN = 600
"""Draws of an open audit."""
SEED = 20_25
REPETITIONS = 2_000

Ints = NDArray[np.int64]


def main() -> None:
    print_machine()
    print_fixed()
    print_open()
    print_imperfect()
    print_limits()
    print_test()
    if (REAL / "reassessed").is_dir():
        print_raters()
    else:
        print("\nNo raters: set CLEANSET_REAL to the folder that holds reassessed/.")


def row(name: str, flawed: Ints, bounds: Ints) -> tuple[str, ...]:
    covered = float((bounds >= flawed).mean())
    shown = sorted({int(flawed.min()), int(flawed.max())})
    return name, " to ".join(map(str, shown)), f"{100 * covered:.2f}", f"{100 * bounds.mean() / IMAGES:.2f}"


def exact_coverage(flawed: int) -> float:
    """The probability that the bound of a fixed size holds, without simulation, in whole numbers."""
    total = comb(IMAGES, DRAWN)
    return sum(
        comb(flawed, found) * comb(IMAGES - flawed, DRAWN - found) / total
        for found in range(min(flawed, DRAWN) + 1)
        if fixed_bound(Draws(IMAGES, DRAWN, found)) >= flawed
    )


def print_coverage(title: str, rows: list[tuple[str, ...]]) -> None:
    print_table(title, ("kind", "flawed", "covered, %", "mean bound, %"), rows)


def numbers_of_flawed(rng: np.random.Generator) -> list[Ints]:
    """The number of flawed images of each set: the same in all, or up to the largest of these, each as likely."""
    return [*(np.full(SETS, flawed) for flawed in FLAWED), rng.integers(0, max(FLAWED) + 1, SETS)]


def print_fixed() -> None:
    rng = np.random.default_rng(SEED)
    rows = []
    for flawed in numbers_of_flawed(rng):
        found = rng.hypergeometric(flawed, IMAGES - flawed, DRAWN)
        rows.append(row("fixed", flawed, looked_up(lambda k: fixed_bound(Draws(IMAGES, DRAWN, k)), found)))
    exact = ", ".join(f"{flawed}: {100 * exact_coverage(flawed):.2f}" for flawed in FLAWED)
    print_coverage(f"Fixed size: {DRAWN} of {IMAGES:,} images (exact coverage in percent: {exact})", rows)


def looked_up(bound: Callable[[int], int], found: Ints) -> Ints:
    """The bound for each number of flawed images found, computed once for each number."""
    numbers, places = np.unique(found, return_inverse=True)
    return np.array([bound(int(number)) for number in numbers])[places]


def print_open() -> None:
    """The lowest bound of each set over all numbers of draws: whoever stops there, or anywhere else, is covered."""
    rng = np.random.default_rng(SEED + 1)
    bound = cache(lambda drawn, found: open_bound(Draws(IMAGES, drawn, found)))
    rows = []
    for flawed in numbers_of_flawed(rng):
        lowest = np.full(SETS, IMAGES)
        found = np.zeros(SETS, np.int64)
        left = flawed
        for drawn in range(1, MAX_DRAWN + 1):
            is_flawed = rng.random(SETS) < left / (IMAGES - drawn + 1)
            found = found + is_flawed
            left = left - is_flawed
            lowest = np.minimum(lowest, looked_up(lambda k, drawn=drawn: bound(drawn, k), found))  # type: ignore[misc]
        rows.append(row("open", flawed, lowest))
    print_coverage(f"Open, stopped where the bound is lowest of 1 to {MAX_DRAWN} draws", rows)


def print_imperfect() -> None:
    rng = np.random.default_rng(SEED + 2)
    rows = []
    fixed = cache(
        lambda found, golds: fixed_bound(Draws(IMAGES, DRAWN, found), 0.975, lower_limit(golds, GOLDS, 0.975))
    )
    # a single auditor of an open audit, which others may join, has half of the risk
    some = cache(
        lambda drawn, found, golds, of: open_bound(
            Draws(IMAGES, drawn, found), 0.975, lower_limit_at_any_time(golds, of, 0.9875)
        )
    )
    for sensitivity in SENSITIVITIES:
        for flawed in (np.full(SETS, 30), np.full(SETS, 89), rng.integers(0, 90, SETS)):
            golds = np.zeros(SETS, np.int64)
            golds_before = 0
            # which of the flawed images that are drawn are found is decided for each once
            drawn_before = np.zeros(SETS, np.int64)
            found = np.zeros(SETS, np.int64)
            lowest = np.full(SETS, IMAGES)
            before = 0
            for drawn in LOOKS:
                new = rng.hypergeometric(
                    flawed - drawn_before, IMAGES - before - (flawed - drawn_before), drawn - before
                )
                found = found + rng.binomial(new, sensitivity)
                drawn_before = drawn_before + new
                before = drawn
                of = GOLDS * drawn // DRAWN
                golds = golds + rng.binomial(of - golds_before, sensitivity, SETS)
                golds_before = of
                each = pairs(lambda k, g, drawn=drawn, of=of: some(drawn, k, g, of), found, golds)  # type: ignore[misc]
                lowest = np.minimum(lowest, each)
            name = f"{100 * sensitivity:.0f} % found"
            rows.append(row(f"fixed, {name}", flawed, pairs(fixed, found, golds)))
            rows.append(row(f"open, {name}", flawed, lowest))
            uncorrected = looked_up(lambda k: fixed_bound(Draws(IMAGES, DRAWN, k)), found)
            rows.append(row(f"fixed, {name}, uncorrected", flawed, uncorrected))
    looks = ", ".join(map(str, LOOKS))
    print_coverage(f"Imperfect auditors, {GOLDS} gold items each; open: stopped at the lowest of {looks} draws", rows)


def pairs(bound: Callable[[int, int], int], found: Ints, golds: Ints) -> Ints:
    numbers, places = np.unique(np.stack([found, golds]), axis=1, return_inverse=True)
    return np.array([bound(int(k), int(g)) for k, g in numbers.T])[places.ravel()]


def print_limits() -> None:
    """The probability that a limit of the sensitivity is ever above the true one, exactly."""
    rows = [
        (
            f"{100 * sensitivity:.0f} %",
            str(golds),
            *(f"{100 * ever_above(limit, sensitivity, golds):.1f}" for limit in (lower_limit, lower_limit_at_any_time)),
        )
        for sensitivity in (0.66, 0.8, 0.9, 0.95)
        for golds in GOLDS_SEEN
    ]
    head = ("flaws found", "looked at after each gold item up to", "limit of a fixed number, %", "at any time, %")
    print_table("Limits of the sensitivity that are ever too high; 2.5 % is promised", head, rows)


def first_above(limit: Callable[[int, int, float], float], sensitivity: float, golds: int) -> int:
    """The smallest number of gold items found with a limit above the sensitivity, or one more than all."""
    return bisect_left(range(golds + 1), True, key=lambda found: limit(found, golds, 0.975) > sensitivity)


def ever_above(limit: Callable[[int, int, float], float], sensitivity: float, golds: int) -> float:
    waiting = np.array([1.0])
    for seen in range(1, golds + 1):
        found = np.concatenate([[0.0], waiting * sensitivity])
        waiting = np.concatenate([waiting * (1 - sensitivity), [0.0]]) + found
        waiting[first_above(limit, sensitivity, seen) :] = 0
    return max(0.0, 1 - float(waiting.sum()))


def print_test() -> None:
    """The probability of an alarm within a number of gold items, exactly: by all numbers of misses."""
    rows = [
        (
            str(golds),
            *(f"{100 * alarm_within(golds, share):.1f}" for share in (0.15, 0.30, 0.50)),
            f"{100 * best(golds):.1f}",
        )
        for golds in GOLDS_TESTED
    ]
    head = ("flawed gold items", "alarm at 15 % missed, %", "at 30 %, %", "at 50 %, %", "any test at 30 %, %")
    print_table(f"The sequential test with an alarm at evidence {ALARM:.0f}", head, rows)


def alarm_within(golds: int, share: float) -> float:
    """The probability that the evidence reaches ALARM at some number of gold items up to `golds`."""
    waiting = np.array([1.0])
    for seen in range(1, golds + 1):
        missed = np.concatenate([[0.0], waiting * share])
        waiting = np.concatenate([waiting * (1 - share), [0.0]]) + missed
        for count in range(seen + 1):
            if evidence_of_misses(count, seen) >= ALARM:
                waiting[count:] = 0
                break
    return 1 - float(waiting.sum())


def at_least(count: int, golds: int, share: float) -> float:
    """The probability of as many alarms or more."""
    return float(binom.sf(count - 1, golds, share))


def best(golds: int) -> float:
    """The largest share of alarms at 30 % of any test with at most 1 % at 15 % (J. Neyman and E. S. Pearson, 1933)."""
    threshold = next(count for count in range(golds + 2) if at_least(count, golds, 0.15) <= 0.01)
    below = at_least(threshold - 1, golds, 0.15) - at_least(threshold, golds, 0.15)
    chance = (0.01 - at_least(threshold, golds, 0.15)) / below
    power = at_least(threshold, golds, 0.3)
    return power + chance * (at_least(threshold - 1, golds, 0.3) - power)


def print_raters() -> None:
    """Golds drawn from the questions that all five experts answer with yes; any other answer than yes is a miss."""
    experts = np.load(REAL / "reassessed" / "golden.npz")["tensor"]
    raters = np.load(REAL / "reassessed" / "raters_golden.npz")["tensor"]
    clear = (experts[:, :, 2] == 1).all(axis=0)
    missed = raters[:, clear, 2] != 1
    shares = missed.mean(axis=1)
    title = f"{len(missed)} raters, {int(clear.sum())} clear positives; median share missed {np.median(shares):.2f}"
    rng = np.random.default_rng(SEED + 3)
    within = {golds: alarms(missed, golds, rng) for golds in (50, 100, int(clear.sum()))}
    rows = []
    for name, low, high in (("at most 15 %", 0, 0.15), ("15 to 30 %", 0.15, 0.30), ("30 to 40 %", 0.30, 0.40),
                            ("40 % and more", 0.40, 1.01), ("30 % and more", 0.30, 1.01)):  # fmt: skip
        group = (shares >= low) & (shares < high) if low else shares <= high
        found = (f"{100 * alarmed[group].mean():.1f}" for alarmed in within.values())
        rows.append((name, str(int(group.sum())), *found))
    print_table(title, ("missed", "raters", *(f"alarm within {golds}, %" for golds in within)), rows)


def alarms(missed: NDArray[np.bool_], golds: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """The share of alarms of each rater, over random orders of the questions."""
    limits = np.array(
        [next((m for m in range(n + 1) if evidence_of_misses(m, n) >= ALARM), n + 1) for n in range(1, golds + 1)]
    )
    found = np.zeros(len(missed))
    for place, answers in enumerate(missed):
        orders = rng.permuted(np.tile(answers, (REPETITIONS, 1)), axis=1)[:, :golds]
        found[place] = (np.cumsum(orders, axis=1) >= limits).any(axis=1).mean()
    return found


if __name__ == "__main__":
    main()
