"""The commands `cleanset contest …`. Each imports its code when it runs."""

import datetime
from pathlib import Path
from typing import Annotated

import typer

from cleanset.edition.options import HERE, LOOPBACK, Browser, Host, Json, Port, PublicUrl, show
from cleanset.edition.paths import Edition

app = typer.Typer(no_args_is_help=True, help="Run a contest of models that abstain, judged by people.")


def _of_imagenet(contest: Path) -> Path:
    Edition(contest / ".." / "..").read_classes().require_imagenet("a contest", "one in an edition of them")
    return contest


ContestFolder = Annotated[
    Path,
    typer.Option("--contest", help="Folder of the contest.", show_default="the current one", callback=_of_imagenet),
]


On = Annotated[datetime.datetime, typer.Option("--on", help="A day such as 2026-11-27, in UTC.", formats=["%Y-%m-%d"])]
At = Annotated[
    datetime.datetime | None,
    typer.Option(
        "--at", help="A time to use instead of the clock.", formats=["%Y-%m-%dT%H:%M:%SZ"], show_default="now"
    ),
]


@app.command()
def check(
    runs: Annotated[bool, typer.Option("--runs", help="Compute the answers of models in all runs again.")] = False,
    contest: ContestFolder = HERE,
) -> None:
    """Check the whole log.

    Follows the chain, applies every rule, decodes images and compares them
    with the clean set and with earlier ones.
    """
    from cleanset.studies.contest import entering

    for line in entering.check(contest, runs=runs):
        typer.echo(line)


@app.command()
def enter(
    paths: Annotated[list[Path] | None, typer.Argument(help="Files, and folders of submissions and defences.")] = None,
    publish: Annotated[bool, typer.Option("--publish", help="End the week: its images are published.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Only check it: nothing is written.")] = False,
    at: At = None,
    contest: ContestFolder = HERE,
) -> None:
    """Check new mail, and add it to the log.

    An entry is contest.yaml, a folder with manifest.yaml or defence.yaml, or
    a file with its kind as the only key, such as decision or stake.
    """
    from cleanset.studies.contest import entering

    for line in entering.enter(contest, paths or [], publish=publish, at=at, write=not check):
        typer.echo(line)


@app.command()
def defend(
    defence: Annotated[
        list[str] | None, typer.Option("--defence", help="team/name; may be repeated.", show_default="all")
    ] = None,
    enter: Annotated[bool, typer.Option("--enter", help="Add the runs to the log; else they are printed.")] = False,
    at: At = None,
    contest: ContestFolder = HERE,
) -> None:
    """Run defences over every published image and the eligibility list.

    No other command of the contest runs a defence's program, and only check
    --runs also runs a model.
    """
    from cleanset.studies.contest.entering import enter_runs

    for line in enter_runs(contest, defence, at=at, write=enter):
        typer.echo(line)


@app.command()
def standing(
    on: On,
    as_json: Json = False,
    write: Annotated[bool, typer.Option("--write", help="Write results/standing.json.")] = False,
    contest: ContestFolder = HERE,
) -> None:
    """Show the standing at the end of a day, from the log alone."""
    from cleanset.studies.contest import report
    from cleanset.studies.contest.log import read
    from cleanset.studies.contest.standing import standing as standing_on

    found = standing_on(read(contest), on.date())
    if write:
        report.write_standing(contest, found)
    if as_json:
        typer.echo(report.as_json(found), nl=False)
    else:
        show(report.as_text(found))


@app.command()
def page(on: On, contest: ContestFolder = HERE) -> None:
    """Make the page of the contest at the end of a day.

    Writes results/page.html, which opens without a server or a network,
    and results/page_images/.
    """
    from cleanset.studies.contest.log import read
    from cleanset.studies.contest.report import write_page

    typer.echo(str(write_page(contest, read(contest), on.date())))


@app.command()
def judge(
    judge: Annotated[str, typer.Option("--judge", help="Your id in the roster.")],
    on: Annotated[
        datetime.datetime | None,
        typer.Option("--on", help="Images published by then.", formats=["%Y-%m-%d"], show_default="today"),
    ] = None,
    host: Host = LOOPBACK,
    port: Port = None,
    browser: Browser = True,
    public_url: PublicUrl = None,
    contest: ContestFolder = HERE,
) -> None:
    """Judge submitted images in the browser.

    Asks about the images of the weeks that are published, and saves each
    answer at once in answers/<id>/<week>.yaml, which the organizers enter.
    """
    from cleanset.studies.contest.judge_page import server
    from cleanset.web.pages import PageAddress

    day = on or datetime.datetime.now(datetime.UTC)
    server.run(contest, judge, day.date(), PageAddress(host, port, browser=browser, public_url=public_url))
