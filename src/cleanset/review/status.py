"""How far the reviews are: for each model and for all together, for people or as JSON."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table

from cleanset.edition import Edition
from cleanset.ilsvrc import wnids
from cleanset.params import Params, read_params
from cleanset.review.folder import checked_reviews
from cleanset.review.queue import ByRole, Standing, State, by_class, standing, together
from cleanset.review.standing_decisions import Decided, read_decided
from cleanset.tables import CANDIDATES, INDEX, read_table

STATES: tuple[State, ...] = get_args(State)
ALL = "all models"


@dataclass(frozen=True, slots=True)
class Progress:
    """For one model, or all: the classes of each state, and the fewest and most pictures still to be reviewed.

    Each picture of a class counts once. For all models together a class is what the first of open,
    conflict, short that holds for any of them says, else settled.
    """

    classes: Mapping[State, Sequence[int]]
    at_least: int
    at_most: int


@dataclass(frozen=True, slots=True)
class Status:
    """What `cleanset review --status` shows: the progress by role and, under `all models`, of all together."""

    progress: Mapping[str, Progress]
    images_per_class: int
    unreviewed_are_clean: bool


def run(edition: Edition) -> Status:
    """Read candidates and reviews of an edition and say how far the reviews are."""
    params = read_params(edition.folder)
    tables = {role: read_table(edition.candidates(role), CANDIDATES) for role in params.models}
    votes = checked_reviews(edition.reviews, read_table(edition.index, INDEX))
    return status_of(by_class(tables, params.dataset.class_list()), read_decided(edition, params, votes), params)


def status_of(classes: Mapping[int, ByRole], decided: Decided, params: Params) -> Status:
    """How far the reviews of `classes` are, with these decisions."""
    images_per_class = params.export.images_per_class
    standings: dict[int, dict[str, Standing]] = {}
    for class_index, by_role in classes.items():
        decide = decided.of_class(class_index)
        standings[class_index] = {
            role: standing(candidates, decide[role], images_per_class) for role, candidates in by_role.items()
        }
    progress = {
        role: _progress({index: [by_role[role]] for index, by_role in standings.items()}) for role in params.models
    }
    progress[ALL] = _progress({index: list(by_role.values()) for index, by_role in standings.items()})
    return Status(progress, images_per_class, params.review.unreviewed == "clean")


def _progress(standings: Mapping[int, Sequence[Standing]]) -> Progress:
    classes: dict[State, list[int]] = {state: [] for state in STATES}
    for class_index, of_models in standings.items():
        classes[together(each.state for each in of_models)].append(class_index)
    return Progress(
        classes,
        sum(len({name for each in of_models for name in each.certain}) for of_models in standings.values()),
        sum(len({name for each in of_models for name in each.open}) for of_models in standings.values()),
    )


def as_json(status: Status) -> str:
    """The classes of each state as wnids, and the numbers of pictures, for each model and for all together."""
    each = {
        role: {
            **{state: [wnids()[index] for index in progress.classes[state]] for state in STATES},
            "at_least": progress.at_least,
            "at_most": progress.at_most,
        }
        for role, progress in status.progress.items()
    }
    together = each.pop(ALL)
    return json.dumps({"images_per_class": status.images_per_class, "all_models": together, "models": each}, indent=2)


def as_table(status: Status) -> Group:
    """The same for people, in numbers; names the classes that wait for the board."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_footer=True)
    table.add_column("classes", ALL, no_wrap=True)
    together = status.progress[ALL]
    for state in STATES:
        table.add_column(state, str(len(together.classes[state])), justify="right")
    table.add_column("at least", str(together.at_least), justify="right")
    table.add_column("at most", str(together.at_most), justify="right")
    for role, progress in status.progress.items():
        if role != ALL:
            counts = [len(progress.classes[state]) for state in STATES]
            table.add_row(role, *map(str, [*counts, progress.at_least, progress.at_most]))
    return Group(table, *_notes(status))


def _notes(status: Status) -> Iterator[str]:
    together = status.progress[ALL]
    if together.at_most:
        yield "At least and at most: pictures still to be reviewed, if all are clean and if none can be used."
    else:
        yield "Nothing is left to be reviewed."
    if together.classes["short"]:
        yield f"Short: all candidates are reviewed, but fewer than {status.images_per_class} can be used."
    waiting = [wnids()[index] for index in together.classes["conflict"]]
    if waiting:
        more = f" and {len(waiting) - _MOST_NAMED} more" if len(waiting) > _MOST_NAMED else ""
        yield f"Conflict, for the board: {', '.join(waiting[:_MOST_NAMED])}{more}."
    if status.unreviewed_are_clean:
        yield "In params.yaml review.unreviewed is clean: pictures without a verdict count as clean here."


_MOST_NAMED = 12
