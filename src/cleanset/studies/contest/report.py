"""The standing as JSON and as a table."""

import json
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from cleanset.plumbing.files import check_no_links, write_text
from cleanset.studies.contest.image_course import ImageCourse
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
    """The defences of a standing, a line each."""
    table = Table("defence", "status", "dates", "shares", title=f"Standing on {standing.on}", box=box.SIMPLE_HEAD)
    for each in standing.defences:
        dates = {"staked": each.staked_on, "broken": each.broken_in}
        shares = [f"{team} {share}" for team, share in each.shares.items()]
        if each.open_until:
            shares.append(f"open: {each.open_until}")
        table.add_row(
            each.name,
            each.status,
            "\n".join(f"{what} {date}" for what, date in dates.items() if date),
            "\n".join(shares),
        )
    for column in table.columns[:3]:
        column.no_wrap = True
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


def write_standing(folder: Path, standing: Standing) -> None:
    """Write results/standing.json."""
    path = folder / "results" / "standing.json"
    check_no_links(folder, path)
    write_text(path, as_json(standing))
