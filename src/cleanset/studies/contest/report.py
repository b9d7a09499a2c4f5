"""The standing as JSON, as a table, and as a page with people's decisions on each image, and thumbnails."""

import datetime
import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from cleanset.classes import imagenet
from cleanset.images.outlines import doubled_area
from cleanset.plumbing.files import check_no_links, replacing, write_text
from cleanset.report.pages import page_environment
from cleanset.report.thumbnails import PageImage, thumbnail
from cleanset.studies.contest.courses import ImageCourse
from cleanset.studies.contest.judging import STATEMENTS, ImageVerdict
from cleanset.studies.contest.log import Log, Objects
from cleanset.studies.contest.rules import ABSTAIN
from cleanset.studies.contest.standing import Standing, standing


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
    verdict = image.verdict or ImageVerdict(None)
    found = {name: getattr(image, name) for name in ("stage", "by_board", "final_on", "confirmed")}
    return {**verdict._asdict(), **found, "judges": len(image.settling)}


def as_text(standing: Standing) -> Group:
    """The defences as a table, a line each, and below it notes as wide as the terminal."""
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
    for column in table.columns[1:3]:
        column.no_wrap = True
    for column in (table.columns[0], table.columns[3]):
        column.overflow = "fold"
    return Group(table, *map(Text, notes_below(standing)))


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


TEMPLATES = Path(__file__).parent / "templates"
THUMBNAILS = "page_images"


def contest_page(current: Standing, images: Mapping[str, PageImage]) -> str:
    """The page at the end of a day; `images`: each published image by its SHA-256."""
    contest = current.contest
    context: dict[str, object] = {
        "standing": current,
        "courses": contest.defences,
        "cards": contest.images,
        "images": images,
        "groups": contest.rules.groups().names,
        "rules": contest.rules,
        "statements": STATEMENTS,
        "abstain": ABSTAIN,
        "doubled_area": doubled_area,
    }
    return page_environment(imagenet(), TEMPLATES).get_template("contest.html").render(context)


def write_page(folder: Path, log: Log, on: datetime.date) -> Path:
    """Write results/page.html, the standing at the end of a day, and results/page_images/; the path of the page.

    Raises CleansetError as `standing` does, and for a published image that is missing or changed.
    """
    results = folder / "results"
    check_no_links(folder, results)
    objects = Objects(folder)
    current = standing(log, on)
    images = {}
    with replacing(results / THUMBNAILS) as partial:
        partial.mkdir()
        for digest in current.contest.images:
            small = thumbnail(objects.read(digest))
            (partial / f"{digest}.jpg").write_bytes(small.jpeg)
            images[digest] = PageImage(f"{THUMBNAILS}/{digest}.jpg", small.width, small.height)
    write_text(results / "page.html", contest_page(current, images))
    return results / "page.html"
