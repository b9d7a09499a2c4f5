"""How far reviewers agree: observed agreement and Fleiss' kappa, in all, by verdict, and by pairs.

What is compared is the verdict. The unit is a picture in a class, as two or more reviewers saw it; the
board, which decides what others have seen, does not count as one of them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from cleanset.review.folder import BOARD, Votes
from cleanset.review.verdicts import Review, Verdict

VERDICTS: tuple[str, ...] = get_args(Verdict)

Counts = NDArray[np.int64]
"""How many reviewers gave each verdict: a row for each picture, a column for each verdict."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Of `pictures` that two or more saw: the mean share of pairs of verdicts that are the same, and kappa.

    None where nothing can be said: no picture; for kappa, also where only one verdict was ever given.
    """

    pictures: int
    agreement: float | None
    kappa: float | None


@dataclass(frozen=True, slots=True)
class OfVerdict:
    """Of one verdict on the pictures that two or more saw.

    `agreement`: where one reviewer gives it, the chance that another does. `kappa`: with the other
    verdicts taken for one (both Fleiss 1971, where all pictures have as many reviewers).
    """

    given: int
    agreement: float | None
    kappa: float | None


@dataclass(frozen=True, slots=True)
class Difference:
    """A picture on which reviewers differ in verdict or box; what each said, and the board."""

    class_index: int
    image_id: str
    said: Mapping[str, Review]
    board: Review | None


def overall(counts: Counts) -> Agreement:
    """Agreement and kappa of the pictures with two or more verdicts."""
    several = counts[counts.sum(axis=1) >= 2]
    return Agreement(len(several), observed_agreement(several), fleiss_kappa(several))


def of_verdict(counts: Counts, column: int) -> OfVerdict:
    """The same of one verdict."""
    several = counts[counts.sum(axis=1) >= 2]
    given, others = several[:, column], several.sum(axis=1) - 1
    total = int(given.sum())
    agreement = float((given * (given - 1) / others).sum()) / total if total else None
    return OfVerdict(total, agreement, fleiss_kappa(np.stack([given, several.sum(axis=1) - given], axis=1)))


def of_verdicts(counts: Counts) -> dict[str, OfVerdict]:
    """The same of each verdict, by its name."""
    return {verdict: of_verdict(counts, column) for column, verdict in enumerate(VERDICTS)}


def observed_agreement(counts: Counts) -> float | None:
    """Over the pictures with two or more verdicts, the mean share of pairs of verdicts that are the same."""
    several = counts[counts.sum(axis=1) >= 2]
    if not len(several):
        return None
    raters = several.sum(axis=1)
    return float(((several * (several - 1)).sum(axis=1) / (raters * (raters - 1))).mean())


def fleiss_kappa(counts: Counts) -> float | None:
    """Fleiss' kappa (1971), also where pictures have different numbers of verdicts.

    That generalisation is Gwet's (Handbook of Inter-Rater Reliability, 4th ed. 2014, chapter 2): chance
    agreement is that of the mean, over all rows, of each row's shares of the verdicts; a row of one
    verdict counts in it, but not in the observed agreement. For two reviewers it is Scott's pi. None
    if no row has two verdicts, or only one verdict was ever given.
    """
    counts = counts[counts.any(axis=1)]
    observed = observed_agreement(counts)
    if observed is None or counts.any(axis=0).sum() < 2:
        return None
    by_chance = float(((counts / counts.sum(axis=1, keepdims=True)).mean(axis=0) ** 2).sum())
    return (observed - by_chance) / (1 - by_chance)


def verdict_counts(said: Iterable[Mapping[str, Review]]) -> Counts:
    """A row for each picture, from what each reviewer said of it."""
    rows = [[review.verdict for review in by_reviewer.values()] for by_reviewer in said]
    counts = [[row.count(verdict) for verdict in VERDICTS] for row in rows]  # type: ignore[arg-type]
    return np.array(counts, dtype=np.int64).reshape(-1, len(VERDICTS))


def without_board(votes: Votes) -> dict[tuple[int, str], dict[str, Review]]:
    """What each reviewer but the board said, by class index and image id, both and reviewers sorted."""
    return {
        key: {name: vote.review for name, vote in sorted(by_reviewer.items()) if name != BOARD}
        for key, by_reviewer in sorted(votes.items())
    }


def pairs(said: Iterable[Mapping[str, Review]]) -> dict[tuple[str, str], Agreement]:
    """The agreement of every two reviewers who saw a picture in common, by their names."""
    shared: dict[tuple[str, str], list[dict[str, Review]]] = {}
    for by_reviewer in said:
        for a, b in combinations(sorted(by_reviewer), 2):
            shared.setdefault((a, b), []).append({a: by_reviewer[a], b: by_reviewer[b]})
    return {pair: overall(verdict_counts(shared[pair])) for pair in sorted(shared)}


def differences(votes: Votes) -> list[Difference]:
    """The pictures on which reviewers differ in verdict or box, by class and image id."""
    found = []
    for (class_index, image_id), said in without_board(votes).items():
        if len({(review.verdict, review.box) for review in said.values()}) > 1:
            board = votes[class_index, image_id].get(BOARD)
            found.append(Difference(class_index, image_id, said, board.review if board else None))
    return found
