"""The progress of each reviewer of a team: the classes asked for, those left to review, and the verdicts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType

from cleanset.edition.paths import Edition
from cleanset.plumbing.validation import first_names
from cleanset.review.page.library import open_library
from cleanset.review.page.server import open_session
from cleanset.review.terminal import grid

MAX_NAMED_IN_TEAM = 8


@dataclass(frozen=True, slots=True)
class ReviewerProgress:
    """A reviewer's classes and verdicts."""

    asked: Sequence[str]
    """The keys of the classes that the reviewer is asked for, by class index."""

    to_review: Sequence[str]
    """Those with something left to review."""

    verdicts: int
    """Number of the reviewer's verdicts."""


def progress_of_team(edition: Edition, team: Sequence[str]) -> dict[str, ReviewerProgress]:
    """The progress of each reviewer, as the page would ask them now."""
    library = open_library(edition)
    found = {}
    for name in team:
        session = open_session(edition, library, name, team=team if len(team) > 1 else ())
        session.hints.close()
        verdicts = sum(len(status.own) for status in session.statuses.values())
        keys = library.classes.keys
        found[name] = ReviewerProgress(
            asked=[keys[index] for index in sorted(session.share.classes)],
            to_review=[keys[index] for index in sorted(session.unsettled())],
            verdicts=verdicts,
        )
    return found


def as_table(progress: Mapping[str, ReviewerProgress]) -> Group:
    """A table for the terminal, with the first classes that each reviewer still has to review."""
    rows = [(name, len(each.asked), len(each.to_review), each.verdicts) for name, each in progress.items()]
    lines = []
    for name, each in progress.items():
        if each.to_review:
            lines.append(f"{name} has to review {first_names(each.to_review, MAX_NAMED_IN_TEAM)}.")
    table = grid(("reviewer", "classes", "to review", "verdicts"), rows)
    parts: list[RenderableType] = [table, *lines]
    return Group(*parts)


def as_json(progress: Mapping[str, ReviewerProgress]) -> dict[str, object]:
    """The class keys of each reviewer, and the number of verdicts."""
    return {
        name: {
            "classes": each.asked,
            "to_review": each.to_review,
            "verdicts": each.verdicts,
        }
        for name, each in progress.items()
    }
