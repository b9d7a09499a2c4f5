"""The command `cleanset reproduce`."""

from pathlib import Path
from typing import Annotated

import typer

from cleanset.edition.options import Form, show
from cleanset.plumbing.validation import check_known

commands = typer.Typer()


@commands.command()
def reproduce(
    paper: Annotated[
        str | None,
        typer.Argument(help="scooter, imagenet-c, ximagenet-12 or others.", show_default="list them"),
    ] = None,
    files: Annotated[
        Path | None,
        typer.Option(help="Folder of files that others published; without it, the last lines list what is missing."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Show all numbers, not only those that differ.")] = False,
    form: Form = None,
) -> None:
    """Compute the printed numbers of a paper from what was published with it.

    Prints each number next to the printed one, with their difference and its
    source; the last lines list what cannot be computed, and why. --format
    prints all numbers as a table for a paper's appendix. The exit code is 0
    even if numbers differ.
    """
    from rich.console import Console

    from cleanset.reproduce import papers

    if paper is None:
        for name, compute in papers.PAPERS.items():
            found = compute(files)
            Console().print(f"[bold]{name}[/]  {found.title}\n  {papers.summary_of(found)}", highlight=False)
        return
    check_known("paper", paper, papers.PAPERS)
    found = papers.PAPERS[paper](files)
    if form is not None:
        show(papers.table_of(found).in_form(form))
        return
    Console().print(papers.in_terminal(found, every=every), highlight=False)
