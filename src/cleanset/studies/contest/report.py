"""The standing as JSON and as a table, notices to defenders, and the files in results/."""

import json
from collections.abc import Iterator
from dataclasses import asdict, fields
from pathlib import Path

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from cleanset.plumbing.files import replacing, write_text
from cleanset.statistics.formats import decimal
from cleanset.studies.contest.entries import team_of
from cleanset.studies.contest.files import ContestFiles, counted, submitted_images
from cleanset.studies.contest.image_course import ImageState
from cleanset.studies.contest.objects import refuse_link
from cleanset.studies.contest.rules import ABSTAIN
from cleanset.studies.contest.standing import Standing


def as_json(standing: Standing) -> str:
    """The standing as JSON; shares are fractions such as "1/3"."""
    content = {
        "on": standing.on,
        "defences": {
            each.name: {field.name: getattr(each, field.name) for field in fields(each) if field.name != "name"}
            for each in standing.defences
        },
        "attackers": standing.attackers,
        "defenders": standing.defenders,
        "images": {sha256: _image(state) for sha256, state in standing.images.items()},
        "judges_left_out": standing.left_out,
        "notes": standing.notes,
        "contest": standing.contest,
        "head": standing.head,
        "checkpoints": [asdict(each) for each in standing.checkpoints],
    }
    return json.dumps(content, indent=1, default=str) + "\n"


def _image(state: ImageState) -> dict[str, object]:
    verdict = state.verdict
    return {
        "stage": state.stage,
        "group": verdict and verdict.group,
        "reason": verdict and verdict.reason,
        "by": "board" if state.by_board else "judges",
        "judges": state.judges,
        "final_on": state.final_on,
        "confirmed": state.confirmed,
    }


HEADS = ("defence", "status", "dates", "shares", "over-fitting")


def as_text(standing: Standing) -> Group:
    """The standing as a table, and below it notes as wide as the terminal.

    They give the reasons why defences are not eligible or still pending, the shares of the defenders, disqualified
    judges, and the limits of the contest's checks.
    """
    parts: list[Table | Text] = [as_table(standing), *map(Text, notes_below(standing))]
    return Group(*parts)


def as_table(standing: Standing) -> Table:
    """The defences of a standing, a line each; a column that would be empty is left out.

    Over-fitting: accuracy on the eligibility list minus accuracy on the unpublished one.
    """
    rows = []
    for each in standing.defences:
        shares = "\n".join(f"{team} {share}" for team, share in sorted(each.shares.items()))
        overfit = "" if each.overfitting is None else f"{decimal(float(each.overfitting), 1, 100, signed=True)} %"
        since = (("staked", each.staked_on), ("broken", each.broken_in))
        dates = "\n".join(f"{what} {date}" for what, date in since if date)
        rows.append((each.name, each.status, dates, f"{shares}\n{each.unsettled}".strip(), overfit))
    filled = [number for number in range(len(HEADS)) if number < 2 or any(row[number] for row in rows)]
    table = Table(*(HEADS[number] for number in filled), title=f"Standing on {standing.on}", box=box.SIMPLE_HEAD)
    for column in table.columns[:3]:
        column.no_wrap = True
    for row in rows:
        table.add_row(*(row[number] for number in filled))
    return table


def notes_below(standing: Standing) -> Iterator[str]:
    """The sentences below the table."""
    for each in standing.defences:
        if each.reasons:
            yield f"{each.name} is not eligible: {', '.join(each.reasons).replace('_', ' ')}."
        if each.waits_for:
            yield f"{each.name} waits for {', '.join(each.waits_for).replace('_', ' ')}."
    if standing.defenders:
        yield f"Defenders' shares: {', '.join(f'{team} {share}' for team, share in standing.defenders.items())}."
    for judge, problem in standing.left_out.items():
        yield f"Judge {judge} is left out: {problem}."
    yield from standing.notes
    for last in standing.checkpoints[-1:]:
        yield (
            f"The checkpoint of {last.day}, of {last.size} lines, has the root hash {last.root}; number of teams that "
            f"have cosigned it: {len(last.teams)}."
        )
    if standing.head:
        yield f"The first line of the log has the digest {standing.contest}: it is this contest."
        yield f"The last line of the log has the digest {standing.head}."


def notices(files: ContestFiles, standing: Standing) -> dict[str, str]:
    """The notices to defenders by the name of the file, `<week>/<team>.txt`.

    A line for each image that is judged unambiguous and that a defence of the team gives the other group: the defence,
    the groups, and the last day for appeals.
    """
    lines: dict[str, set[str]] = {}
    weeks = {image.sha256: each.week for each, image in submitted_images(counted(files.submissions))}
    for run in files.runs:
        for sha256, given in run.answers.items():
            state = standing.images.get(sha256)
            group = state and state.verdict and state.verdict.group
            if state is None or group is None or given in (group, ABSTAIN):
                continue
            name = f"{weeks[sha256]}/{team_of(run.defence)}.txt"
            lines.setdefault(name, set()).add(f"{sha256}: {run.defence} gives {given}, judged {group}; {_until(state)}")
    return {name: "".join(f"{line}\n" for line in sorted(lines[name])) for name in sorted(lines)}


def _until(state: ImageState) -> str:
    if state.stage == "final":
        return f"final since {state.final_on}"
    if state.stage == "open":
        return "more judges are to answer"
    return "appealed" if state.stage == "appealed" else f"appeals until {state.appeals_until}"


def write_standing(folder: Path, files: ContestFiles, standing: Standing) -> None:
    """Write a standing and the notices to defenders, in place of those that are there."""
    results = folder / "results"
    refuse_link(results)
    write_text(results / "standing.json", as_json(standing))
    # the whole folder: notices that no longer apply have to go
    with replacing(results / "notices") as partial:
        partial.mkdir()
        for name, text in notices(files, standing).items():
            write_text(partial / name, text)
