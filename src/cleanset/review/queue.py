"""The queue of images still to be reviewed, and the status of each class that follows from it.

Images are asked for class by class, for all models together. Always reviewing the first question asks for no more
images than any other order would. For one model, let L be the last image that it keeps in the end. Every image that
would go before L if it were clean has to be reviewed, because it might replace L; no other has to. If the class is not
full at the end, every candidate has to be reviewed. The first question is always such an image for one of the models at
least: all that could go before it are decided.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from cleanset.review.consensus import asking_for_box, consensus
from cleanset.review.store import BOARD, is_accepted
from cleanset.review.verdicts import Review
from cleanset.selection.crop_check import Predictions, after_crop
from cleanset.selection.fill import Decision
from cleanset.selection.rule import ImagesPerClass, least_images, most_images
from cleanset.vocabulary import BASES, BOX_UNKNOWN, TIER_ORDER

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
    """One of TIER_ORDER."""

    rank: int
    confidence: float


ByRole = Mapping[str, Sequence[Candidate]]
"""The candidates of one class, by role of the model, each in any order."""


@dataclass(frozen=True, slots=True)
class Question:
    """An image to be reviewed and, by role, the models that may need it.

    `certain`: it must be reviewed whatever the other verdicts will be. `only_box`: the image is to be cropped, and only
    its box is asked for.
    """

    image_id: str
    serves: Mapping[str, Candidate]
    certain: bool
    only_box: bool = False


@dataclass(frozen=True, slots=True)
class ClassStatus:
    """The review status of a class for one model: images kept so far, and image ids still to be reviewed.

    `certain` must be reviewed even if all verdicts to come are clean: the minimum. `open` must be if all are reject:
    the maximum, which includes `certain`. `boxes`: the images of `open` that lack only a crop box.
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


def questions(
    by_role: ByRole,
    decided: Mapping[str, DecideInClass],
    images_per_class: ImagesPerClass,
    *,
    crops_in_rank: bool = False,
) -> list[Question]:
    """Every open image of a class, once.

    Certain ones come first, and of these the ones that lack only a box; then by tier and rank with the models that need
    them.
    """
    serves: dict[str, dict[str, Candidate]] = {}
    certain = set[str]()
    boxes = set[str]()
    for role, candidates in by_role.items():
        decisions = _decisions(candidates, decided[role])
        for candidate, is_certain in _reachable(candidates, decisions, images_per_class, crops_in_rank=crops_in_rank):
            serves.setdefault(candidate.image_id, {})[role] = candidate
            if is_certain:
                certain.add(candidate.image_id)
            if decisions[candidate.image_id].reason == BOX_UNKNOWN:
                boxes.add(candidate.image_id)

    def order(asked: Question) -> tuple[bool, bool, tuple[int, int], int, str]:
        return not asked.certain, not asked.only_box, *_order_in_class(asked.serves.values()), asked.image_id

    found = (
        Question(image_id, models, certain=image_id in certain, only_box=image_id in boxes)
        for image_id, models in serves.items()
    )
    return sorted(found, key=order)


def by_image(by_role: ByRole) -> dict[str, dict[str, Candidate]]:
    """Every candidate of a class by image id, with the models that may use it, the most likely first."""
    models: dict[str, dict[str, Candidate]] = {}
    for role, candidates in by_role.items():
        for candidate in candidates:
            models.setdefault(candidate.image_id, {})[role] = candidate
    return dict(sorted(models.items(), key=lambda item: (*_order_in_class(item[1].values()), item[0])))


def _order_in_class(candidates: Collection[Candidate]) -> tuple[tuple[int, int], int]:
    """The sort key of an image in its class: best tier and rank with any model, then most models first."""
    return min(map(_order, candidates)), -len(candidates)


def for_reviewer(
    reviewer: str, own_reviews: Mapping[str, Review], decide: DecideInClass, *, boxes_asked: bool = True
) -> DecideInClass:
    """The decisions on a class that determine the questions to one reviewer; `own_reviews` are theirs, by image id.

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
        own = consensus([own_reviews[image_id].verdict], None, "single", 1)
        return asking_for_box(own) if boxes_asked else own

    return seen


_CLEAN_FOR_NOW = Decision("clean")


def class_status(
    candidates: Sequence[Candidate],
    decide: DecideInClass,
    images_per_class: ImagesPerClass,
    *,
    crops_in_rank: bool = False,
) -> ClassStatus:
    """The review status of a class for one model."""
    decisions = _decisions(candidates, decide)
    reachable = list(_reachable(candidates, decisions, images_per_class, crops_in_rank=crops_in_rank))
    accepted = sum(each.verdict in ("clean", "crop") for each in decisions.values())
    certain = tuple(candidate.image_id for candidate, is_certain in reachable if is_certain)
    state: State
    if not reachable:
        state = "settled" if accepted >= least_images(images_per_class) else "short"
    else:
        state = "open" if any(decisions[image_id].reason in TO_BE_ASKED for image_id in certain) else "conflict"
    is_open = tuple(candidate.image_id for candidate, _ in reachable)
    boxes = tuple(image_id for image_id in is_open if decisions[image_id].reason == BOX_UNKNOWN)
    kept = accepted if images_per_class == "all" else min(accepted, images_per_class)
    return ClassStatus(state=state, kept=kept, certain=certain, open=is_open, boxes=boxes)


def combined_state(states: Iterable[State]) -> State:
    """The state of a class for several models: the first of open, conflict, short that holds for any, else settled."""
    found = set(states)
    worst: tuple[State, ...] = ("open", "conflict", "short")
    return next((state for state in worst if state in found), "settled")


def _decisions(candidates: Sequence[Candidate], decide: DecideInClass) -> dict[str, Decision]:
    return {candidate.image_id: decide(candidate.image_id) for candidate in candidates}


def _reachable(
    candidates: Sequence[Candidate],
    decisions: Mapping[str, Decision],
    images_per_class: ImagesPerClass,
    *,
    crops_in_rank: bool,
) -> Iterator[tuple[Candidate, bool]]:
    """The open images in the order of asking, each with whether it is certain.

    Open: too few accepted images go before it if it is clean, or, where only its box is missing, cropped. Certain: also
    if all undecided ones before it are clean. A crop goes before the next tier, but after the clean ones of its own,
    unless `crops_in_rank`.
    """

    def order(candidate: Candidate) -> tuple[int, bool, int]:
        decision = decisions[candidate.image_id]
        is_late = not crops_in_rank and (decision.verdict == "crop" or decision.reason == BOX_UNKNOWN)
        return TIER_ORDER.index(candidate.tier), is_late, candidate.rank

    most = most_images(images_per_class)
    before = undecided = 0
    for candidate in sorted(candidates, key=order):
        if before >= most:
            return
        verdict = decisions[candidate.image_id].verdict
        if verdict == "undecided":
            yield candidate, before + undecided < most
            undecided += 1
        elif verdict in ("clean", "crop"):
            before += 1


def _order(candidate: Candidate) -> tuple[int, int]:
    return TIER_ORDER.index(candidate.tier), candidate.rank


@dataclass(frozen=True, slots=True)
class Decisions:
    """The decisions on the images of each class, as they count for each model.

    `predictions`: by role, on crops; a crop that a model misclassifies is rejected for that model. `unreviewed`: the
    decision on an image without a vote. `boxes_asked`: a crop without a known box is undecided. `accept`: the bases of
    the votes that count.
    """

    decisions: Mapping[tuple[int, str], Decision]
    predictions: Mapping[str, Predictions]
    unreviewed: Decision
    boxes_asked: bool = True
    accept: Collection[str] = BASES

    def for_candidate(self, role: str, class_index: int, image_id: str) -> Decision:
        """The decision on one candidate of a model."""
        return self.for_class(class_index)[role](image_id)

    def for_class(self, class_index: int) -> dict[str, DecideInClass]:
        """By role, the decisions on one class, by image id."""
        return self._by_role(self._by_reviewers(class_index), class_index)

    def for_reviewer(
        self, reviewer: str, own_reviews: Mapping[str, Review], class_index: int
    ) -> dict[str, DecideInClass]:
        """As `for_class`, for choosing the questions to one reviewer with `own_reviews` in the class."""
        counted = {name: review for name, review in own_reviews.items() if is_accepted(review, self.accept)}
        decide = for_reviewer(reviewer, counted, self._by_reviewers(class_index), boxes_asked=self.boxes_asked)
        return self._by_role(decide, class_index)

    def _by_reviewers(self, class_index: int) -> DecideInClass:
        return lambda image_id: self.decisions.get((class_index, image_id), self.unreviewed)

    def _by_role(self, decide: DecideInClass, class_index: int) -> dict[str, DecideInClass]:
        def counted(predictions: Predictions) -> DecideInClass:
            return lambda image_id: after_crop(decide(image_id), image_id, class_index, predictions)

        return {role: counted(predictions) for role, predictions in self.predictions.items()}
