"""The commands `cleanset review …`. Each imports its code when it runs, so that `cleanset --help` is fast."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from cleanset.edition.options import HERE, LOOPBACK, Browser, Folder, Host, Port, PublicUrl, show
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError

app = typer.Typer(
    invoke_without_command=True, help="Review images in the browser, or show the progress of the reviews."
)


@app.callback()
def review(
    context: typer.Context,
    status: Annotated[
        bool, typer.Option("--status", help="Show what is settled and what is still to be reviewed.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --status: print JSON.")] = False,
    reviewer: Annotated[
        list[str] | None,
        typer.Option(
            help="Your name; your verdicts are saved in reviews/<name>/. Repeat it for each reviewer of a team, who "
            "get a link each; with --status: their progress."
        ),
    ] = None,
    look_again: Annotated[
        Path | None, typer.Option(help="look_again.csv of a study: its images are shown among the conflicts.")
    ] = None,
    share: Annotated[str | None, typer.Option(help="Your part of the classes, such as 1/3.")] = None,
    audit: Annotated[
        int | None, typer.Option(min=1, help="Look again at images of a finished set: how many are drawn at random.")
    ] = None,
    kind: Annotated[
        bool | None,
        typer.Option("--open/--fixed", help="With --audit: whether more may be drawn later.", show_default="fixed"),
    ] = None,
    model: Annotated[str | None, typer.Option(help="With --audit: the model of the set, such as standard.")] = None,
    seed: Annotated[
        str | None, typer.Option(help="With --audit: seed of the order of drawing.", show_default="1")
    ] = None,
    calibration: Annotated[
        bool, typer.Option("--calibration", help="Show how reviewers judge gold items; --json prints JSON.")
    ] = False,
    host: Host = LOOPBACK,
    port: Port = None,
    browser: Browser = True,
    public_url: PublicUrl = None,
    edition: Folder = HERE,
) -> None:
    """Review images in the browser, or show the progress of the reviews."""
    if context.invoked_subcommand is not None:
        return
    if calibration:
        show_calibration(Edition(edition), as_json)
        return
    check_audit_options(
        audit,
        {"--open or --fixed": kind, "--model": model, "--seed": seed},
        {"--look-again": look_again, "--share": share},
    )
    team = reviewer or []
    check_team(team, {"--audit": audit, "--share": share})
    plan = None
    if audit is not None:
        from cleanset.review import reports

        plan, is_new = reports.draw(
            Edition(edition), model, audit, None if kind is None else "open" if kind else "fixed", seed, *team
        )
        if is_new or not team:
            typer.echo(reports.outlook(plan))
    if team and not status:
        from cleanset.review.page import server

        server.run(Edition(edition), team, host, port, browser, look_again, plan, share, public_url)
    if (team and not status) or plan is not None:
        return
    if status:
        show_status(Edition(edition), team, as_json)
    else:
        typer.echo(context.get_help())


def show_status(edition: Edition, team: Sequence[str], as_json: bool) -> None:
    """Print the progress of the reviews, and of each reviewer of a team."""
    from cleanset.review import status as review_status

    found = review_status.run(edition)
    if team:
        from cleanset.review.page import team as progress

        of_team = progress.progress_of_team(edition, team)
    if as_json:
        print(review_status.as_json(found, progress.as_json(of_team) if team else None))
        return
    show(review_status.as_table(found))
    if team:
        show(progress.as_table(of_team))


def check_team(team: Sequence[str], alone: Mapping[str, object]) -> None:
    """Raise CleansetError for a reviewer who is named twice, and for an option that only one reviewer has."""
    for place, name in enumerate(team):
        if name in team[:place]:
            raise CleansetError(f"--reviewer {name}: given twice; expected each reviewer once")
    for option, value in alone.items():
        if value is not None and len(team) > 1:
            raise CleansetError(f"{option}: with {len(team)} reviewers; expected one: start a server for each")


def check_audit_options(audit: int | None, with_audit: Mapping[str, object], without: Mapping[str, object]) -> None:
    """Raise CleansetError for an option of an audit without one, or for one that an audit does not have."""
    if audit is None:
        refused, rule = with_audit, "only with --audit, such as --audit 100"
    else:
        refused, rule = without, "not with --audit, which draws from the whole set"
    for option, value in refused.items():
        if value is not None:
            raise CleansetError(f"{option}: {rule}")


def show_calibration(edition: Edition, as_json: bool) -> None:
    """Print how reviewers judge gold items."""
    from cleanset.review import reports

    found = reports.run_calibration(edition)
    show(reports.calibration_as_json(found) if as_json else reports.calibration_table(found))


@app.command()
def gold(
    folder: Annotated[Path, typer.Argument(help="Folder for the images in the edition, such as data/gold.")],
    planted: Annotated[int, typer.Option(min=0, help="Images into which a flaw is drawn.")] = 0,
    published: Annotated[int, typer.Option(min=0, help="Flawed images with a published verdict.")] = 0,
    settled: Annotated[int, typer.Option(min=0, help="Flawed images on which three reviewers agree.")] = 0,
    clean: Annotated[int, typer.Option(min=0, help="Clean images, published or settled by three.")] = 0,
    edition: Folder = HERE,
) -> None:
    """Make gold items: images with a known verdict, to be mixed into the reviews unseen."""
    from cleanset.review import gold_images

    counts = {"planted": planted, "published": published, "settled": settled}
    typer.echo(gold_images.make(Edition(edition), folder, counts, clean))


@app.command()
def bind(
    reviewer: Annotated[str | None, typer.Option(help="Only the reviews of this reviewer.")] = None,
    edition: Folder = HERE,
) -> None:
    """Write the SHA-256 of the images into reviews that name them by their ids in the official archive.

    Then the reviews hold in any edition with the same images, whatever their layout.
    """
    from cleanset.review.save import bind_reviews

    typer.echo(f"{bind_reviews(Edition(edition), reviewer)} reviews now have the SHA-256 of their images")


@app.command()
def guidelines(edition: Folder = HERE) -> None:
    """Write the usual review guidelines into reviews/GUIDELINES.md, to be edited.

    The review page shows them (h), and finished sets have a copy of the file.
    """
    from cleanset.review.store import write_guidelines

    typer.echo(f"{write_guidelines(Edition(edition).reviews)}: edit it; the review page shows it with h")
