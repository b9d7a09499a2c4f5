"""The pages of the documentation, which the package holds, and `cleanset docs`, which shows them in the terminal."""

import re
from pathlib import Path
from typing import Annotated

import typer

from cleanset.errors import InputError

PAGES = Path(__file__).parent / "pages"
"""In a checkout a link to docs/; a wheel has the files."""

commands = typer.Typer()


@commands.command()
def docs(
    page: Annotated[
        str | None,
        typer.Argument(
            help="The name of a page, such as attacks, or of a section, attacks#any-model.", show_default="list all"
        ),
    ] = None,
) -> None:
    """Show a page of the documentation in the terminal."""
    from rich.console import Console
    from rich.markdown import Markdown

    if page is None:
        for name, title in page_titles().items():
            typer.echo(f"{name:32}{title}")
        return
    console = Console()
    with console.pager(styles=True):
        console.print(Markdown(page_text(page)))


def page_titles() -> dict[str, str]:
    """The title of each page, by its name; guides before the reference."""
    paths = sorted(PAGES.glob("**/*.md"), key=lambda path: (len(path.relative_to(PAGES).parts), path))
    return {name_of(path): re.findall(r"(?m)^# (.+)$", path.read_text("utf-8"))[0] for path in paths}


def name_of(path: Path) -> str:
    """The name of a page, such as reference/params."""
    return path.relative_to(PAGES).with_suffix("").as_posix()


def page_text(place: str) -> str:
    """The Markdown of a page, or of the section whose heading has the anchor behind `#`, as the site makes it.

    Raises InputError for a page or a section that is not there.
    """
    name, _, anchor = place.partition("#")
    known = [name_of(path) for path in PAGES.glob("**/*.md")]
    if name not in known:
        raise InputError(f"docs {place}: unknown page {name!r}; expected one of those that `cleanset docs` lists")
    text = re.sub(r"<!-- .*? -->\n*", "", (PAGES / f"{name}.md").read_text("utf-8"))
    return section_of(text, anchor, place) if anchor else text


def section_of(text: str, anchor: str, place: str) -> str:
    """The part of a page below the heading with that anchor, up to the next heading of its level or above."""
    headings = [found for found in re.finditer(r"(?ms)^```.*?^```$|^(#+) ([^\n]+)$", text) if found[1]]
    for heading, others in ((each, headings[number + 1 :]) for number, each in enumerate(headings)):
        if anchor_of(heading[2]) == anchor:
            end = next((each.start() for each in others if len(each[1]) <= len(heading[1])), len(text))
            return text[heading.start() : end]
    raise InputError(
        f"docs {place}: no section {anchor!r}; expected one of {', '.join(anchor_of(each[2]) for each in headings)}"
    )


def anchor_of(heading: str) -> str:
    """The anchor of a heading, as GitHub and MkDocs make it."""
    return re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower())
