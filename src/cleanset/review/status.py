"""The progress of the reviews, for each model and for all together, for people or as JSON."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from rich.console import Group, RenderableType

from cleanset.classes import ClassTable
from cleanset.edition.params import Params, read_params
from cleanset.edition.paths import Edition
from cleanset.plumbing.files import is_there
from cleanset.plumbing.validation import first_names
from cleanset.plumbing.waiting import announced
from cleanset.review.decided import candidates_of, checked_votes, decide_all
from cleanset.review.queue import ByRole, ClassStatus, Decisions, State, class_status, combined_state
from cleanset.review.store import Votes
from cleanset.review.terminal import grid
from cleanset.selection.crop_check import predictions_of_crops
from cleanset.selection.fill import UNREVIEWED
from cleanset.selection.rule import ImagesPerClass
from cleanset.tables import CROP_SCORES, INDEX, read_table

STATES: tuple[State, ...] = get_args(State)
ALL_MODELS = "all models"
MAX_CLASSES_NAMED = 12


@dataclass(frozen=True, slots=True)
class ReviewProgress:
    """The classes of each state, and bounds on the images still to be reviewed, for one model or all together.

    `boxes`: how many of `at_most` lack only a crop box. An image counts once in a class. For all models
    together, the state of a class is the first of open, conflict and short that it has for any of them, else settled.
    """

    by_state: Mapping[State, Sequence[int]]
    at_least: int
    at_most: int
    boxes: int


@dataclass(frozen=True, slots=True)
class ReviewStatus:
    """Progress by role and, under `all models`, for all together, as `cleanset review status` prints it."""

    classes: ClassTable
    progress: Mapping[str, ReviewProgress]
    images_per_class: ImagesPerClass
    unreviewed_are_clean: bool
    asked: ReviewProgress
    """For all models together, as the review page asks: an image without a verdict is open in any case."""


@announced("counting the images left to review")
def run(edition: Edition) -> ReviewStatus:
    """Read candidates and reviews of an edition, and count the images still to be reviewed."""
    params = read_params(edition.folder)
    classes = edition.read_classes()
    votes = checked_votes(edition, params, read_table(edition.index, INDEX, classes), classes)
    decided = read_decisions(edition, params, votes, classes)
    return status_of(candidates_of(edition, params, classes), decided, params, classes)


def read_decisions(edition: Edition, params: Params, votes: Votes, classes: ClassTable) -> Decisions:
    """The decisions that follow from `votes`. A crop that is not scored yet counts as correct."""
    predictions = {
        role: predictions_of_crops(read_table(edition.crop_scores(role), CROP_SCORES, classes))
        # missing until stage score_crops has run once; reviews come before it
        if is_there(edition.crop_scores(role))
        else {}
        for role in params.models
    }
    return decide_all(params.review, votes, predictions)


def status_of(
    candidates: Mapping[int, ByRole], decided: Decisions, params: Params, classes: ClassTable
) -> ReviewStatus:
    """The progress of the reviews of candidates, by class index, with these decisions."""
    return ReviewStatus(
        classes=classes,
        progress=_progress_by_role(candidates, decided, params),
        images_per_class=params.export.images_per_class,
        unreviewed_are_clean=params.review.unreviewed == "clean",
        asked=_progress_by_role(candidates, replace(decided, unreviewed=UNREVIEWED), params)[ALL_MODELS],
    )


def _progress_by_role(
    candidates: Mapping[int, ByRole], decided: Decisions, params: Params
) -> dict[str, ReviewProgress]:
    images_per_class = params.export.images_per_class
    statuses: dict[int, dict[str, ClassStatus]] = {}
    for class_index, by_role in candidates.items():
        decide = decided.for_class(class_index)
        statuses[class_index] = {
            role: class_status(of_role, decide[role], images_per_class, crops_in_rank=params.review.crops == "in_rank")
            for role, of_role in by_role.items()
        }
    progress = {
        role: _progress({index: [by_role[role]] for index, by_role in statuses.items()}) for role in params.models
    }
    progress[ALL_MODELS] = _progress({index: list(by_role.values()) for index, by_role in statuses.items()})
    return progress


def _progress(statuses: Mapping[int, Sequence[ClassStatus]]) -> ReviewProgress:
    by_state: dict[State, list[int]] = {state: [] for state in STATES}
    for class_index, of_models in statuses.items():
        by_state[combined_state(each.state for each in of_models)].append(class_index)
    return ReviewProgress(
        by_state=by_state,
        at_least=sum(len({name for each in of_models for name in each.certain}) for of_models in statuses.values()),
        at_most=sum(len({name for each in of_models for name in each.open}) for of_models in statuses.values()),
        boxes=sum(len({name for each in of_models for name in each.boxes}) for of_models in statuses.values()),
    )


def as_json(
    status: ReviewStatus, reviewers: Mapping[str, object] | None = None, *, outdated: Sequence[str] = ()
) -> str:
    """The classes of each state as wnids, and the numbers of images, for each model and for all together.

    `reviewers`: the progress of each of a team; `outdated`: a line for each set that these reviews do not give.
    """
    each = {
        role: {
            **{state: [status.classes.keys[index] for index in progress.by_state[state]] for state in STATES},
            "at_least": progress.at_least,
            "at_most": progress.at_most,
            "boxes": progress.boxes,
        }
        for role, progress in status.progress.items()
    }
    together = each.pop(ALL_MODELS)
    content = {"images_per_class": status.images_per_class, "all_models": together, "models": each}
    others = {"reviewers": reviewers, "outdated": list(outdated)}
    return json.dumps(content | {name: value for name, value in others.items() if value}, indent=2)


def as_table(status: ReviewStatus) -> Group:
    """A table for the terminal, with the classes that wait for the board."""
    progress = {role: each for role, each in status.progress.items() if role != ALL_MODELS}
    rows = [(role, *_counts(each)) for role, each in progress.items()]
    footer = (ALL_MODELS, *_counts(status.progress[ALL_MODELS]))
    table = grid(("classes", *STATES, "at least", "at most"), rows, footer)
    parts: list[RenderableType] = [table, *_notes(status)]
    return Group(*parts)


def _counts(progress: ReviewProgress) -> list[int]:
    return [*(len(progress.by_state[state]) for state in STATES), progress.at_least, progress.at_most]


def _notes(status: ReviewStatus) -> Iterator[str]:
    together = status.progress[ALL_MODELS]
    if together.at_most and status.images_per_class == "all":
        yield "At least and at most: images still to be reviewed, every candidate (export.images_per_class: all)."
    elif together.at_most:
        yield "At least and at most: images still to be reviewed, if all are clean and if none can be used."
    elif status.asked.at_most:
        yield (
            f"Nothing has to be reviewed, but the review page asks for images of "
            f"{len(status.asked.by_state['open']):,} classes: at least {status.asked.at_least:,}, at most "
            f"{status.asked.at_most:,}."
        )
    else:
        yield "Nothing is left to be reviewed."
    if together.boxes:
        boxes = ", ".join(
            f"{role} {each.boxes}" for role, each in status.progress.items() if role != ALL_MODELS and each.boxes
        )
        yield f"{together.boxes} of these only lack a crop box: {boxes}."
    if together.by_state["short"]:
        candidates = "no candidate is left" if status.unreviewed_are_clean else "all candidates are reviewed"
        used = "none" if status.images_per_class == "all" else f"fewer than {status.images_per_class}"
        yield f"Short: {candidates}, but {used} can be used."
    waiting = [status.classes.keys[index] for index in together.by_state["conflict"]]
    if waiting:
        yield f"Conflict, for the board: {first_names(waiting, MAX_CLASSES_NAMED)}."
    if status.unreviewed_are_clean:
        yield "In params.yaml review.unreviewed is clean: images without a verdict count as clean here."
