"""The standing of a contest at the end of a day: its images and defences, shares of both sides, notes on its limits."""

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from cleanset.plumbing.machine import without_garbage_collection
from cleanset.studies.contest.cross_checks import check_files
from cleanset.studies.contest.defences_by_day import DefencesByDay, DefenceStanding, Shares
from cleanset.studies.contest.entries import team_of
from cleanset.studies.contest.files import Checkpoint, ContestFiles, counted, repeats
from cleanset.studies.contest.image_course import ImageState
from cleanset.studies.contest.judges import left_out
from cleanset.studies.contest.rules import MIN_COSIGNERS


@dataclass(frozen=True, slots=True)
class Standing:
    """The contest at the end of a day."""

    on: datetime.date
    images: Mapping[str, ImageState]
    """The state of every published image, by its SHA-256, in the order of submission."""

    defences: Sequence[DefenceStanding]
    attackers: Shares
    """The sum of each team's settled shares of the stakes of broken defences."""

    defenders: Shares
    """The sum of each team's shares of the batches that have won."""

    left_out: Mapping[str, str] = field(default_factory=dict)
    """The judges whose answers do not count, by id, each with the reason."""

    notes: tuple[str, ...] = ()
    """Sentences on the limits of this contest's checks."""

    contest: str = ""
    """The digest of the first line of the log, which is the contest's identity."""

    head: str = ""
    """The digest of the last line of the log."""

    checkpoints: tuple[Checkpoint, ...] = ()
    """One for each published week."""


@without_garbage_collection()
def standing(files: ContestFiles, on: datetime.date) -> Standing:
    """The standing at the end of a day, from the entries up to it; the order of files does not matter.

    Raises CleansetError for files that contradict each other or the rules.
    """
    check_files(files)
    said = notes(files)
    files = replace(files, submissions=counted(files.submissions))
    contest = DefencesByDay(files)
    contest.advance(on)
    defences = contest.defences()
    attackers, defenders = shares_of(files, defences)
    return Standing(
        on=on,
        images=contest.states,
        defences=defences,
        attackers=attackers,
        defenders=defenders,
        left_out=left_out(files, on),
        notes=said,
        contest=files.contest,
        head=files.head,
        checkpoints=tuple(files.checkpoints),
    )


def cosigned_by_few(checkpoints: Iterable[Checkpoint]) -> Iterator[str]:
    """A sentence for each checkpoint that fewer teams have cosigned than have to.

    Nothing is refused for it: otherwise teams could end a contest by saying nothing.
    """
    for each in checkpoints:
        if len(each.teams) < MIN_COSIGNERS:
            yield (
                f"The checkpoint of {each.day}, of {each.size} lines, is cosigned by "
                f"{', '.join(each.teams) or 'no team'}; expected at least {MIN_COSIGNERS} teams before the next one: "
                "only the organizers vouch that everybody was shown the same lines."
            )


def notes(files: ContestFiles) -> tuple[str, ...]:
    """The sentences on the limits of the contest's checks."""
    found = []
    if files.rules.unpublished is None:
        found.append(
            "No unpublished list decides who is eligible: a defence that knows the published images by heart is, too."
        )
    found += cosigned_by_few(files.checkpoints)
    if files.rules.made_up:
        found.append("This contest is made up: none of it has happened, and its dates were chosen.")
    unconfined = sorted({run.defence for run in files.runs if run.confined is False})
    if unconfined:
        found.append(f"Ran unconfined, so that it could read whatever the machine has: {', '.join(unconfined)}.")
    return (*found, *(f"Left out: {each}, which counts." for each in repeats(files.submissions)))


def shares_of(files: ContestFiles, defences: Sequence[DefenceStanding]) -> tuple[Shares, Shares]:
    """The shares of attackers and of defenders.

    Each batch is shared equally among its defences that have won, once no other can still win.
    """
    batches: dict[str | None, list[DefenceStanding]] = {}
    for each in defences:
        batches.setdefault(each.batch, []).append(each)
    found: list[Shares] = []
    for batch, members in batches.items():
        if batch is None or any(each.status in ("staked", "awaiting") for each in members):
            continue
        winners = [team_of(each.name) for each in members if each.status == "won"]
        sharing = [team for team in winners if team not in files.rules.without_shares()]
        found += [{team: Fraction(1, len(sharing))} for team in sharing]
    return _summed(each.shares for each in defences if each.settled), _summed(found)


def _summed(shares: Iterable[Shares]) -> Shares:
    total: dict[str, Fraction] = {}
    for each in shares:
        for team, share in each.items():
            total[team] = total.get(team, Fraction(0)) + share
    return dict(sorted(total.items()))
