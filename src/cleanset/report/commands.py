"""The commands `cleanset look` and `cleanset hints`. Each imports its libraries only when it runs."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cleanset.edition.options import HintsPlace, ReadText, show
from cleanset.plumbing.progress import print_notice

commands = typer.Typer()

HintsForm = StrEnum("HintsForm", ["csv"])


@commands.command()
def look(
    place: Annotated[
        str, typer.Argument(metavar="SET", help="The folder of a set or of an edition with one, or a tar.")
    ],
    out: Annotated[Path | None, typer.Option(help="A new or empty folder; without it SET-look.")] = None,
) -> None:
    """Write one page of a finished set: its images by class, tier, crop and review, with a search.

    It opens without a server. Every image is checked against the manifest.
    """
    from cleanset.report import look as tool

    typer.echo(tool.write(place, out))


@commands.command()
def hints(
    place: HintsPlace,
    out: Annotated[Path | None, typer.Option(help="Write one page with the images: a new .html file.")] = None,
    form: Annotated[HintsForm | None, typer.Option("--format", help="Print all hints as CSV.")] = None,
    most: Annotated[int, typer.Option(min=1, help="Number of images on the page, the most severe.")] = 500,
    text: ReadText = None,
    custom_hint: Annotated[
        list[str] | None,
        typer.Option(metavar="MODULE:NAME", help="A hint of yours, as docs/extending.md shows; repeat it for more."),
    ] = None,
) -> None:
    """Print the hints of the review page at any images: borders, text, blur, copies and others.

    Each with its measure and limit, the most severe first. A hint decides
    nothing.
    """
    from cleanset.report import hints as tool

    found = tool.write(place, out, most=most, text=text, custom=custom_hint or ())
    tool.print_notices(found)
    show(tool.as_csv(found) if form else tool.as_table(found))
    if out is not None:
        print_notice(f"{out}: open it in a browser")
