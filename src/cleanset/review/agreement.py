"""Agreement of reviewers: observed agreement and Fleiss' kappa, overall, by verdict, and by pairs of reviewers.

Verdicts are compared, not reasons or boxes. The unit is an image in a class with two or more reviews; the
board, which decides on others' reviews, does not count as a reviewer.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from cleanset.images.boxes import known_box
from cleanset.review.store import BOARD, Votes
from cleanset.review.verdicts import Review
from cleanset.statistics import raters
from cleanset.statistics.basics import Ints
from cleanset.statistics.formats import in_percent, rounded
from cleanset.vocabulary import VERDICTS

VerdictCounts = Ints
"""Number of reviewers who gave each verdict: a row for each image, a column for each verdict."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Observed agreement of reviewers, and beyond chance."""

    images: int
    """Number of images with two or more reviews."""

    agreement: float | None
    """Mean share of equal pairs of verdicts, 0 to 1; None without an image."""

    kappa: float | None
    """Fleiss' kappa: at most 1, 0 for agreement by chance; None from fewer than MIN_RATED images, and where only one
    verdict was ever given."""

    kappa_interval: tuple[float, float] | None = None
    """The ends of its 95 % interval, by bootstrap over images; None as kappa."""

    ac1: float | None = None
    """Gwet's AC1, which rare verdicts do not lower as they do kappa; None from fewer than MIN_RATED images."""

    ac1_interval: tuple[float, float] | None = None
    """The ends of its 95 % interval; None as AC1."""


@dataclass(frozen=True, slots=True)
class VerdictAgreement:
    """The agreement on one verdict, over the images that two or more reviewed.

    As in Fleiss 1971, who has the same number of reviewers for every image.
    """

    given: int
    """How often the verdict was given."""

    agreement: float | None
    """The probability that a second reviewer gives it where a first one did, 0 to 1; None if it was never given."""

    kappa: float | None
    """Fleiss' kappa with all other verdicts merged into one; None as in Agreement."""

    kappa_interval: tuple[float, float] | None = None
    """The ends of its 95 % interval; None as kappa."""


@dataclass(frozen=True, slots=True)
class Difference:
    """An image on which reviewers differ in verdict or box: the review of each, and the board's."""

    class_index: int
    image_id: str
    reviews: Mapping[str, Review]
    board: Review | None


def overall(counts: VerdictCounts) -> Agreement:
    """Agreement and kappa of the images with two or more verdicts."""
    several = counts[counts.sum(axis=1) >= 2]
    of_kappa = raters.kappa(several)
    of_ac1 = raters.ac1(several)
    return Agreement(
        images=len(several),
        agreement=observed_agreement(several),
        kappa=None if of_kappa is None else of_kappa.value,
        kappa_interval=None if of_kappa is None else of_kappa.interval,
        ac1=None if of_ac1 is None else of_ac1.value,
        ac1_interval=None if of_ac1 is None else of_ac1.interval,
    )


def verdict_agreement(counts: VerdictCounts, column: int) -> VerdictAgreement:
    """Agreement and kappa of one verdict, given by its column."""
    several = counts[counts.sum(axis=1) >= 2]
    given = several[:, column]
    others = several.sum(axis=1) - 1
    total = int(given.sum())
    agreement = float((given * (given - 1) / others).sum()) / total if total else None
    found = raters.kappa(np.stack([given, several.sum(axis=1) - given], axis=1))
    return VerdictAgreement(
        given=total,
        agreement=agreement,
        kappa=None if found is None else found.value,
        kappa_interval=None if found is None else found.interval,
    )


def verdict_agreements(counts: VerdictCounts) -> dict[str, VerdictAgreement]:
    """Agreement and kappa of each verdict, by its name."""
    return {verdict: verdict_agreement(counts, column) for column, verdict in enumerate(VERDICTS)}


def observed_agreement(counts: VerdictCounts) -> float | None:
    """Over the images with two or more verdicts, the mean share of pairs of verdicts that are the same."""
    several = counts[counts.sum(axis=1) >= 2]
    if not len(several):
        return None
    given = several.sum(axis=1)
    return float(((several * (several - 1)).sum(axis=1) / (given * (given - 1))).mean())


def verdict_counts(reviews: Iterable[Mapping[str, Review]]) -> VerdictCounts:
    """A row of counts for each image, from its reviews by reviewer."""
    rows = [[review.verdict.kind for review in by_reviewer.values()] for by_reviewer in reviews]
    counts = [[row.count(verdict) for verdict in VERDICTS] for row in rows]
    return np.array(counts, dtype=np.int64).reshape(-1, len(VERDICTS))


def without_board(votes: Votes) -> dict[tuple[int, str], dict[str, Review]]:
    """The reviews of everyone but the board, by class index and image id, then by reviewer; all sorted."""
    return {
        key: {name: vote.review for name, vote in sorted(by_reviewer.items()) if name != BOARD}
        for key, by_reviewer in sorted(votes.items())
    }


def pairs(reviews: Iterable[Mapping[str, Review]]) -> dict[tuple[str, str], Agreement]:
    """The agreement of every two reviewers who have reviewed an image in common, by their names."""
    shared: dict[tuple[str, str], list[dict[str, Review]]] = {}
    for by_reviewer in reviews:
        for a, b in combinations(sorted(by_reviewer), 2):
            shared.setdefault((a, b), []).append({a: by_reviewer[a], b: by_reviewer[b]})
    return {pair: overall(verdict_counts(shared[pair])) for pair in sorted(shared)}


def differences(votes: Votes) -> list[Difference]:
    """The images on which reviewers differ in verdict or box, by class and image id."""
    found = []
    for (class_index, image_id), reviews in without_board(votes).items():
        verdicts = {review.verdict.kind for review in reviews.values()}
        boxes = {known_box(review.box) for review in reviews.values()} - {None}
        if len(verdicts) > 1 or len(boxes) > 1:
            board = votes[class_index, image_id].get(BOARD)
            found.append(Difference(class_index, image_id, reviews, board.review if board else None))
    return found


def agreement_of_reviewers(votes: Votes, candidates: Collection[tuple[int, str]]) -> dict[str, float | int]:
    """Numbers for a model's metrics, over its candidates with several reviewers: images, differences, agreement, kappa.

    Agreement is in percent, rounded to two decimals, kappa to four; each is left out where it is undefined.
    """
    of_model = {key: by_reviewer for key, by_reviewer in votes.items() if key in candidates}
    found = overall(verdict_counts(without_board(of_model).values()))
    numbers: dict[str, float | int] = {
        "reviewed_by_several": found.images,
        "reviewers_differ": len(differences(of_model)),
    }
    if found.agreement is not None:
        numbers["reviewers_agreement"] = in_percent(found.agreement)
    if found.kappa is not None:
        numbers["reviewers_kappa"] = rounded(found.kappa, 4)
    return numbers
