"""The standing as JSON and as a table, notices to defenders, and the files in results/."""

import json
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from cleanset.plumbing.files import replacing, write_text
from cleanset.studies.contest.entries import team_of
from cleanset.studies.contest.image_course import ImageCourse
from cleanset.studies.contest.objects import refuse_link
from cleanset.studies.contest.rules import ABSTAIN
from cleanset.studies.contest.standing import Standing
from cleanset.studies.contest.state import Contest

HEADS = ("defence", "status", "dates", "shares")


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
        "images": {sha256: _image(image) for sha256, image in standing.contest.images.items()},
        "judges_left_out": standing.left_out,
        "notes": standing.notes,
        "head": standing.head,
    }
    return json.dumps(content, indent=1, default=str) + "\n"


def _image(image: ImageCourse) -> dict[str, object]:
    verdict = image.verdict
    return {
        "stage": image.stage,
        "group": verdict and verdict.group,
        "reason": verdict and verdict.reason,
        "by": "board" if image.by_board else "judges",
        "judges": len(image.settling),
        "final_on": image.final_on,
        "confirmed": image.confirmed,
    }


def as_text(standing: Standing) -> Group:
    """The standing as a table, and below it notes as wide as the terminal."""
    return Group(as_table(standing), *map(Text, notes_below(standing)))


def as_table(standing: Standing) -> Table:
    """The defences of a standing, a line each; a column that would be empty is left out."""
    rows = []
    for each in standing.defences:
        shares = "\n".join(f"{team} {share}" for team, share in sorted(each.shares.items()))
        since = (("staked", each.staked_on), ("broken", each.broken_in))
        dates = "\n".join(f"{what} {date}" for what, date in since if date)
        still = f"open: {each.open_until}" if each.open_until else ""
        rows.append((each.name, each.status, dates, f"{shares}\n{still}".strip()))
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
        if each.copy_of:
            yield f"{each.name} has the same answers to all images as {each.copy_of}: both count once."
    if standing.defenders:
        yield f"Defenders' shares: {', '.join(f'{team} {share}' for team, share in standing.defenders.items())}."
    for judge, problem in standing.left_out.items():
        yield f"Judge {judge} is left out: {problem}."
    yield from standing.notes
    yield f"The last line of the log has the digest {standing.head}."


def notices(contest: Contest) -> dict[str, str]:
    """The notices to defenders by the name of the file, `<week>/<team>.txt`.

    A line for each image that is judged unambiguous and that a defence of the team gives the other group: the defence,
    the groups, and the last day for appeals.
    """
    lines: dict[str, set[str]] = {}
    for name, defence in contest.defences.items():
        for sha256, given in ((sha, one) for past in defence.runs for sha, one in past.run.answers.items()):
            image = contest.images[sha256]
            group = image.verdict.group if image.verdict is not None else None
            if group is not None and given not in (group, ABSTAIN):
                file = f"{image.week}/{team_of(name)}.txt"
                text = f"{sha256}: {name} gives {given}, judged {group}; {_until(image)}"
                lines.setdefault(file, set()).add(text)
    return {file: "".join(f"{line}\n" for line in sorted(lines[file])) for file in sorted(lines)}


def _until(image: ImageCourse) -> str:
    if image.final_on is not None:
        return f"final since {image.final_on}"
    return "appealed" if image.stage == "appealed" else f"appeals until {image.appeals_until}"


def write_standing(folder: Path, standing: Standing) -> None:
    """Write a standing and the notices to defenders, in place of those that are there."""
    results = folder / "results"
    refuse_link(results)
    write_text(results / "standing.json", as_json(standing))
    # the whole folder: notices that no longer apply have to go
    with replacing(results / "notices") as partial:
        partial.mkdir()
        for name, text in notices(standing.contest).items():
            write_text(partial / name, text)
