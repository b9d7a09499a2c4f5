"""The images still to be reviewed, class by class, for all models together, in the order of asking.

Always reviewing the first question asks for no more images than any other order would. For one model, let L
be the last image that it keeps in the end. Every image that would go before L if it were clean
has to be reviewed, because it might replace L; no other has to. Where the class is not
filled in the end, every candidate has to be reviewed. The first question is always such an image
for one of the models at least: all that could go before it are decided.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from cleanset.review.consensus import asking_for_box, consensus
from cleanset.review.store import BOARD
from cleanset.review.verdicts import Review
from cleanset.selection.decision import Decision
from cleanset.vocabulary import BOX_UNKNOWN, TIERS

State = Literal["settled", "open", "short", "conflict"]
"""The state of a class, for one model.

`settled`: full, and no image could still enter. `short`: no image could enter, but the class is not full.
`conflict`: it waits for the board, and reviewers are not asked before. `open`: reviewers are to be asked.
"""

DecideInClass = Callable[[str], Decision]
"""Maps an image id of a class to its decision. Models may differ: one may misclassify a crop."""

TO_BE_ASKED = ("unreviewed", "too_few_reviewers", BOX_UNKNOWN)
"""Reasons of undecided images that a further reviewer can decide."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An image that may be selected for a class, as one model ranks it there."""

    image_id: str
    tier: str
    rank: int
    confidence: float


ByRole = Mapping[str, Sequence[Candidate]]
"""The candidates of one class, by role of the model, each in any order."""


@dataclass(frozen=True, slots=True)
class Question:
    """An image to be reviewed and, by role, the models that may need it.

    `certain`: it must be reviewed whatever the other verdicts will be. `box_unknown`: the image is to be cropped, and
    only the box is asked for.
    """

    image_id: str
    serves: Mapping[str, Candidate]
    certain: bool
    box_unknown: bool = False


@dataclass(frozen=True, slots=True)
class ClassStatus:
    """The review status of a class for one model: images kept so far, and image ids still to be reviewed.

    `certain` must be reviewed even if all verdicts to come are clean: the minimum. `open` must be if all are reject:
    the maximum, which includes `certain`. `boxes` are those of `open` that lack only a crop box.
    """

    state: State
    kept: int
    certain: tuple[str, ...]
    open: tuple[str, ...]
    boxes: tuple[str, ...] = ()


def candidates_by_class(
    tables: Mapping[str, pd.DataFrame], classes: Collection[int]
) -> dict[int, dict[str, list[Candidate]]]:
    """The candidates of each of `classes` by role, from the candidates tables by role; in the order of asking."""
    found: dict[int, dict[str, list[Candidate]]] = {index: {role: [] for role in tables} for index in sorted(classes)}
    for role, table in tables.items():
        columns = (table[name].tolist() for name in ("class_index", "image_id", "tier", "rank", "confidence"))
        for class_index, *candidate in zip(*columns, strict=True):
            if class_index in found:
                found[class_index][role].append(Candidate(*candidate))
    for by_role in found.values():
        for candidates in by_role.values():
            candidates.sort(key=_order)
    return found


def open_images(
    candidates: Sequence[Candidate], decide: DecideInClass, images_per_class: int, crops_in_rank: bool = False
) -> list[Candidate]:
    """The undecided images that would be among the class's images if found clean; the most likely first.

    The same images as column `open` of `selection.fill`.
    """
    return [candidate for candidate, _ in _reachable(candidates, decide, images_per_class, crops_in_rank)]


def questions(
    by_role: ByRole, decided: Mapping[str, DecideInClass], images_per_class: int, crops_in_rank: bool = False
) -> list[Question]:
    """Every open image of a class, once.

    Certain ones come first, and of these the ones that lack only a box; then by tier and rank with the models that need
    them.
    """
    serves: dict[str, dict[str, Candidate]] = {}
    certain: set[str] = set()
    boxes: set[str] = set()
    for role, candidates in by_role.items():
        for candidate, is_certain in _reachable(candidates, decided[role], images_per_class, crops_in_rank):
            serves.setdefault(candidate.image_id, {})[role] = candidate
            if is_certain:
                certain.add(candidate.image_id)
            if decided[role](candidate.image_id).reason == BOX_UNKNOWN:
                boxes.add(candidate.image_id)

    def order(image_id: str) -> tuple[bool, bool, tuple[int, int], int, str]:
        return image_id not in certain, image_id not in boxes, *order_in_class(serves[image_id].values()), image_id

    return [
        Question(image_id, serves[image_id], image_id in certain, image_id in boxes)
        for image_id in sorted(serves, key=order)
    ]


def order_in_class(candidates: Collection[Candidate]) -> tuple[tuple[int, int], int]:
    """The sort key of an image in its class: best tier and rank with any model, then most models first."""
    return min(map(_order, candidates)), -len(candidates)


def for_reviewer(
    reviewer: str, own_reviews: Mapping[str, Review], decide: DecideInClass, boxes_asked: bool = True
) -> DecideInClass:
    """The decisions on a class that determine what one reviewer is asked; `own_reviews` are theirs, by image id.

    `boxes_asked`: a crop without a known box is asked again.

    Images that others must decide count as clean for now, so that no review is asked for that may not be needed:
    conflicts for a reviewer, everything else for the board. An image that waits for further
    reviewers counts as this reviewer has judged it, so that they need not wait for the others.
    """

    def seen(image_id: str) -> Decision:
        decision = decide(image_id)
        if decision.verdict != "undecided":
            return decision
        if reviewer == BOARD:
            return decision if decision.reason == "conflict" else _CLEAN_FOR_NOW
        if decision.reason not in TO_BE_ASKED:
            return _CLEAN_FOR_NOW
        if image_id not in own_reviews:
            return decision
        # alone, under the plainest policy: what others say must not change what this reviewer is asked
        own = consensus([own_reviews[image_id]], None, "single", 1)
        return asking_for_box(own) if boxes_asked else own

    return seen


_CLEAN_FOR_NOW = Decision("clean")


def class_status(
    candidates: Sequence[Candidate], decide: DecideInClass, images_per_class: int, crops_in_rank: bool = False
) -> ClassStatus:
    """The review status of a class for one model."""
    reachable = list(_reachable(candidates, decide, images_per_class, crops_in_rank))
    accepted = sum(decide(candidate.image_id).verdict in ("clean", "crop") for candidate in candidates)
    certain = tuple(candidate.image_id for candidate, is_certain in reachable if is_certain)
    state: State
    if not reachable:
        state = "settled" if accepted >= images_per_class else "short"
    else:
        state = "open" if any(decide(image_id).reason in TO_BE_ASKED for image_id in certain) else "conflict"
    is_open = tuple(candidate.image_id for candidate, _ in reachable)
    boxes = tuple(image_id for image_id in is_open if decide(image_id).reason == BOX_UNKNOWN)
    return ClassStatus(state, min(accepted, images_per_class), certain, is_open, boxes)


def combined_state(states: Iterable[State]) -> State:
    """The state of a class for several models: the first of open, conflict, short that holds for any, else settled."""
    found = set(states)
    worst: tuple[State, ...] = ("open", "conflict", "short")
    return next((state for state in worst if state in found), "settled")


def _reachable(
    candidates: Sequence[Candidate], decide: DecideInClass, images_per_class: int, crops_in_rank: bool
) -> Iterator[tuple[Candidate, bool]]:
    """The open images in the order of asking, each with whether it is certain.

    Open: too few accepted images go before it if it is clean, or, where only its box is missing, cropped. Certain: also
    if all undecided ones before it are clean. A crop goes before the next tier, but after the clean ones of its own,
    unless `crops_in_rank`.
    """
    decisions = {candidate.image_id: decide(candidate.image_id) for candidate in candidates}

    def order(candidate: Candidate) -> tuple[int, bool, int]:
        decision = decisions[candidate.image_id]
        tier, rank = _order(candidate)
        return tier, (decision.verdict == "crop" or decision.reason == BOX_UNKNOWN) and not crops_in_rank, rank

    before = undecided = 0
    for candidate in sorted(candidates, key=order):
        if before >= images_per_class:
            return
        verdict = decisions[candidate.image_id].verdict
        if verdict == "undecided":
            yield candidate, before + undecided < images_per_class
            undecided += 1
        elif verdict in ("clean", "crop"):
            before += 1


def _order(candidate: Candidate) -> tuple[int, int]:
    return TIERS.index(candidate.tier), candidate.rank
