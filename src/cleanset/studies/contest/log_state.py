"""From the lines of a log to all that counts on a day: void lines left out, weeks published, controls drawn.

A decision of the board counts if a quorum of its members has signed it, and a line that it voids is left out from then
on.
"""

import base64
import datetime
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cleanset.errors import CleansetError
from cleanset.images.codec import decode
from cleanset.plumbing.machine import without_garbage_collection
from cleanset.studies.contest import entries
from cleanset.studies.contest.entries import short, team_of
from cleanset.studies.contest.files import Checkpoint, ContestFiles, Submission, Withdrawal, submitted_images
from cleanset.studies.contest.judge_tasks import check_drawn
from cleanset.studies.contest.judging import JudgeAnswer
from cleanset.studies.contest.log_lines import COSIGN, ENTRIES, PUBLISH, Line, entered_twice
from cleanset.studies.contest.rules import (
    BoardMember,
    ContestRules,
    after,
    week_of_day,
)
from cleanset.studies.contest.signers import keys_of, may_void, voided, voided_by


@without_garbage_collection()
def state(lines: Sequence[Line], on: datetime.date | None = None) -> ContestFiles:
    """All that counts at the end of a day, from the lines up to it; at the end of the log without one.

    Raises CleansetError for lines that contradict each other.
    """
    lines = [each for each in lines if on is None or each.day <= on or each.n == 0]
    void = voided(lines)
    rules = lines[0].entry
    counting = [each for each in lines if each.n not in void]
    of: dict[str, list[Any]] = {kind: [] for kind in ENTRIES}
    for each in counting:
        of[each.kind].append(each.entry)
    _check_distinct(counting)
    every, draws = _submissions_and_draws(lines, void)
    submissions = [each for each in every if each.number not in void]
    controls = {sha: one for each in of["controls"] for sha, one in each.controls.items()}
    # what was answered or decided about an image that is void counts no more than the image
    gone = {image.sha256 for _, image in submitted_images(every)} | {
        sha for each in lines if each.kind == "controls" for sha in each.entry.controls
    }
    gone -= {image.sha256 for _, image in submitted_images(submissions)} | controls.keys()
    teams = {**rules.teams, **{each.name: each.key for each in of["team"]}}
    keys = keys_of(lines, void)
    by_number = {each.n: each for each in lines}
    board = {name: _with_own_teams(each, keys.get(name), teams, keys) for name, each in rules.board.items()}
    rules = rules.model_copy(update={"teams": teams, "board": board})
    found = ContestFiles(
        rules=rules,
        defences={each.name: each for each in of["defence"]},
        submissions=submissions,
        roster=frozenset(judge for each in of["roster"] for judge in each.roster),
        controls=controls,
        answers=_answers([each for each in counting if each.kind == "answers"], gone),
        decisions=[each for each in of["decision"] if each.image not in gone],
        appeals=[each for each in of["appeal"] if each.image not in gone],
        stakes=of["stake"],
        accepted=of["accept"],
        runs=[
            each.model_copy(update={"answers": {sha: one for sha, one in each.answers.items() if sha not in gone}})
            for each in of["run"]
        ],
        masks={sha: mask_of(each.mask) for sha, each in controls.items() if each.mask is not None},
        examples={sha: one for each in of["examples"] for sha, one in each.examples.items()},
        draws=draws,
        conflicts=[(each.day, each.entry.member, each.entry.team) for each in counting if each.kind == "conflict"],
        withdrawals=[_withdrawal(lines, each, by_number) for each in counting if may_void(each)],
        checkpoints=_checkpoints(counting, rules),
        contest=lines[0].digest,
        head=lines[-1].digest,
    )
    check_drawn(found)
    return found


def _with_own_teams(member: BoardMember, key: str | None, teams: Iterable[str], keys: Mapping[str, str]) -> BoardMember:
    """A member, with each team that has the member's own key."""
    own = [] if key is None else [each for each in teams if each in keys and keys[each].split()[1] == key.split()[1]]
    return member.model_copy(update={"teams": [*member.teams, *own]})


def _withdrawal(lines: Sequence[Line], line: Line, by_number: Mapping[int, Line]) -> Withdrawal:
    images: set[str] = set()
    teams: set[str] = set()
    for entry in (by_number[n].entry for n in voided_by(lines, line) if n in by_number):
        named = [getattr(entry, key, None) for key in ("team", "target", "defence", "name")]
        teams |= {team_of(each) for each in (*named, *getattr(entry, "defences", ())) if each}
        images |= {*getattr(entry, "answers", ()), getattr(entry, "image", None)} - {None}
    members = line.signatures.keys()
    return Withdrawal(
        line=str(line),
        date=line.day,
        members=frozenset(members),
        images=frozenset(images),
        teams=frozenset(teams),
    )


def _checkpoints(lines: Sequence[Line], rules: ContestRules) -> list[Checkpoint]:
    """The checkpoints among some lines, each with the teams that have cosigned it."""
    without = {*rules.without_shares(), *rules.signers}
    teams: dict[str, set[str]] = {each.digest: set() for each in lines if each.kind == PUBLISH}
    for entry in (each.entry for each in lines if each.kind == COSIGN):
        # not of a checkpoint that is void
        if entry.checkpoint in teams and entry.team not in without:
            teams[entry.checkpoint].add(entry.team)
    found = []
    for line in (each for each in lines if each.kind == PUBLISH):
        _, size, root, *_ = line.entry.checkpoint.split("\n")
        cosigned_by = tuple(sorted(teams[line.digest]))
        found.append(Checkpoint(day=line.day, size=int(size), root=root, teams=cosigned_by))
    return found


def _check_distinct(lines: Sequence[Line]) -> None:
    known = set[tuple[str, str]]()
    for line in lines:
        names = [line.entry.name] if line.kind == "defence" else getattr(line.entry, line.kind, ())
        for name in names if line.kind in ("defence", "controls", "examples") else ():
            if (line.kind, name) in known:
                raise entered_twice(line, name)
            known.add((line.kind, name))


def _submissions_and_draws(
    lines: Sequence[Line], void: Mapping[int, int]
) -> tuple[list[Submission], dict[datetime.date, tuple[frozenset[str], int]]]:
    """All submissions, also void ones, and the draw of each week.

    A draw is of what was there when the week was published: what is taken back later changes none.
    """
    waiting: list[Line] = []
    found: list[Submission] = []
    draws: dict[datetime.date, tuple[frozenset[str], int]] = {}
    pool: dict[str, int] = {}
    images: set[str] = set()
    published = datetime.date.min
    for line in lines:
        if line.kind == "submission":
            waiting.append(line)
        elif line.kind == "controls":
            pool |= dict.fromkeys(line.entry.controls, line.n)
        elif line.kind == PUBLISH and line.n not in void:
            ends = week_of_day(max(waiting[0].day, after(published, 1))) if waiting else None
            if ends is None or line.day < ends:
                expected = f"a day from {ends} on, the Friday that ends the week" if ends else "a submission before it"
                raise CleansetError(f"{line}: on {line.day}; expected {expected}")
            week = [Submission(each.n, each.day, line.day, each.entry) for each in waiting]
            images |= {image.sha256 for _, image in submitted_images(week)}
            there = [each for each in week if void.get(each.number, line.n) >= line.n]
            drawn = {sha for sha, n in pool.items() if void.get(n, line.n) >= line.n}
            draws[line.day] = frozenset(drawn - images), len(list(submitted_images(there)))
            found = [*found, *week]
            waiting = []
            published = line.day
    return [*found, *(Submission(each.n, each.day, datetime.date.max, each.entry) for each in waiting)], draws


def _answers(lines: Sequence[Line], gone: Collection[str]) -> list[entries.AnswerFile]:
    """The answers in some lines, each where it was entered first."""
    first: dict[tuple[str, str], JudgeAnswer] = {}
    found = []
    for line in lines:
        file = line.entry
        new: dict[str, JudgeAnswer] = {}
        for image, answer in file.answers.items():
            before = first.setdefault((file.judge, image), answer)
            if before is answer:
                new[image] = answer
            elif before.model_copy(update={"date": answer.date}) != answer:
                raise CleansetError(
                    f"{line}: {short(image)} was answered otherwise before; expected the same: it cannot be taken back"
                )
        if not new:
            raise CleansetError(f"{line}: no answer that was not entered before; expected new ones")
        kept = {sha: one for sha, one in new.items() if sha not in gone}
        # copied only where something is left out, which takes a third of the time of a standing
        found.append(file if len(kept) == len(file.answers) else file.model_copy(update={"answers": kept}))
    return found


def mask_of(text: str) -> NDArray[np.bool_]:
    """The pixels of a control's largest object, shape (height, width).

    Raises CleansetError unless the text is a PNG in base64 with some white in it.
    """
    try:
        # half of the range, since an edge may be soft
        mask = np.asarray(decode(base64.b64decode(text, validate=True), ("PNG",)).convert("L")) > 127
    except ValueError as error:
        raise CleansetError(f"mask of a control: {error}; expected a PNG, white where the object is") from None
    if not mask.any():
        raise CleansetError("mask of a control: nothing in it is white; expected white where the object is")
    return mask
