"""The commands `cleanset review …`: what is left to review. Each imports what it needs only when it runs."""

from pathlib import Path
from typing import Annotated

import typer

from cleanset.edition import Edition
from cleanset.options import HERE, Folder

app = typer.Typer(invoke_without_command=True, help="Review the pictures, or see how far the reviews are.")


@app.callback()
def review(
    context: typer.Context,
    status: Annotated[
        bool, typer.Option("--status", help="Say what is settled and what is still to be asked.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --status: print JSON.")] = False,
    reviewer: Annotated[str | None, typer.Option(help="Your name: reviews/<name>/ gets your verdicts.")] = None,
    host: Annotated[str, typer.Option(help="Where to listen; off this machine a token is needed.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any free one.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
    edition: Folder = HERE,
) -> None:
    """Review the pictures, or see how far the reviews are."""
    if context.invoked_subcommand is not None:
        return
    if reviewer is not None:
        from cleanset.reviewer import server

        server.run(Edition(edition), reviewer, host, port, browser)
        return
    if not status:
        typer.echo(context.get_help())
        return
    from rich.console import Console

    from cleanset.review import status as review_status

    found = review_status.run(Edition(edition))
    if as_json:
        print(review_status.as_json(found))
    else:
        Console().print(review_status.as_table(found), highlight=False)


@app.command("export")
def export_tasks(
    file: Annotated[Path, typer.Argument(help="Tasks for Label Studio, .json; an .xml and pictures go beside it.")],
    reviewer: Annotated[str | None, typer.Option(help="Leave out what this one has reviewed.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Also pictures needed only if others are not clean.")] = False,
    edition: Folder = HERE,
) -> None:
    """Write the pictures still to be reviewed as tasks for Label Studio."""
    from cleanset.review import exchange

    count = exchange.export_tasks(Edition(edition), file, reviewer, every)
    typer.echo(f"{file}: {count} tasks; configuration in {file.with_suffix('.xml')}")


@app.command("import")
def import_answers(
    file: Annotated[Path, typer.Argument(help="What Label Studio exported as JSON.")],
    reviewer: Annotated[str, typer.Option(help="Whose verdicts these are: a folder of reviews/.")],
    annotator: Annotated[str | None, typer.Option(help="Take only the answers of this number or address.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace verdicts that differ.")] = False,
    edition: Folder = HERE,
) -> None:
    """Save answers given in Label Studio as reviews: all of them, or none if one is wrong.

    If a review file cannot be changed or written, what was saved before stays: mend it and import again.
    """
    from cleanset.review import exchange

    found = exchange.import_answers(Edition(edition), file, reviewer, annotator, replace)
    typer.echo(f"{file}: {found.saved} reviews of {reviewer} saved, {found.there} were there already")
