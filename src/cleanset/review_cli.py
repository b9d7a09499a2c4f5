"""The commands `cleanset review …`: what is left to review. Each imports what it needs only when it runs."""

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

    from cleanset import review_status

    found = review_status.run(Edition(edition))
    if as_json:
        print(review_status.as_json(found))
    else:
        Console().print(review_status.as_table(found), highlight=False)
