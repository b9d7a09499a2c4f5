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


def _in_utc(at: datetime.datetime | None) -> datetime.datetime | None:
    return None if at is None else at.replace(tzinfo=datetime.UTC)


On = Annotated[datetime.datetime, typer.Option("--on", help="A day such as 2026-11-27, in UTC.", formats=["%Y-%m-%d"])]
At = Annotated[
    datetime.datetime | None,
    typer.Option(
        "--at",
        help="The instant, for a contest that is made up.",
        formats=["%Y-%m-%dT%H:%M:%SZ"],
        callback=_in_utc,
        show_default="now",
    ),
]


@app.command()
def check(
    path: Annotated[
        Path | None,
        typer.Argument(help="An entry that is to be entered, or an unpublished list.", show_default="the whole log"),
    ] = None,
    runs: Annotated[bool, typer.Option("--runs", help="Compute the answers of models in all runs again.")] = False,
    at: At = None,
    contest: ContestFolder = HERE,
) -> None:
    """Check the whole log, or new entries without writing them.

    Follows the chain, applies every rule, decodes images and compares them
    with the clean set and with earlier ones. For an unpublished list, a
    folder with one of images for each group, prints the line of contest.yaml
    that names it.
    """
    from cleanset.studies.contest import entering

    for line in entering.check(contest, path, at, runs=runs):
        typer.echo(line)


@app.command()
def enter(
    paths: Annotated[list[Path] | None, typer.Argument(help="Files, and folders of submissions and defences.")] = None,
    publish: Annotated[bool, typer.Option("--publish", help="End the week: its images are published.")] = False,
    at: At = None,
    contest: ContestFolder = HERE,
) -> None:
    """Check new mail, and add it to the log.

    An entry is contest.yaml, a folder with manifest.yaml or defence.yaml, or
    a file that has its kind as the only key, such as decision or stake.
    """
    from cleanset.studies.contest import entering

    for line in entering.enter(contest, paths or [], publish=publish, at=at):
        typer.echo(line)


@app.command()
def log(contest: ContestFolder = HERE) -> None:
    """List the lines of the log, with their digests: keep one, and publish it."""
    from cleanset.studies.contest.log import read

    found = read(contest)
    for line in found.lines:
        void = f" void by {found.void[line.n]}" if line.n in found.void else ""
        typer.echo(f"{line.n} {line.at:%FT%TZ} {line.kind} {line.digest}{void}")


@app.command()
def defend(
    defence: Annotated[
        list[str] | None, typer.Option("--defence", help="team/name; may be repeated.", show_default="all")
    ] = None,
    enter: Annotated[bool, typer.Option("--enter", help="Add the runs to the log; else they are printed.")] = False,
    unpublished: Annotated[
        Path | None,
        typer.Option(
            help="The list that contest.yaml names as unpublished.", show_default="unpublished/ of the contest"
        ),
    ] = None,
    at: At = None,
    contest: ContestFolder = HERE,
) -> None:
    """Run defences over every published image and the eligibility list.

    No other command of the contest runs a defence's program, and only check --runs also runs a model.
    """
    from cleanset.studies.contest.entering import enter_runs

    for line in enter_runs(contest, defence, unpublished=unpublished, at=at, write=enter):
        typer.echo(line)


@app.command()
def threshold(
    model: Annotated[str, typer.Option("--model", help="A role of the edition.")],
    confidence: Annotated[str, typer.Option(help="max_logit, softmax, margin or energy.")] = "softmax",
    coverage: Annotated[float, typer.Option(help="The share of the eligibility list to answer.")] = 0.8,
    contest: ContestFolder = HERE,
) -> None:
    """Find the threshold below which a model of the edition has to abstain.

    Prints the threshold, and the accuracy on the images that are answered.
    """
    from cleanset.studies.contest.models import find_threshold

    typer.echo(find_threshold(contest, model, kind=confidence, coverage=coverage))  # type: ignore[arg-type]


@app.command()
def standing(
    on: On,
    as_json: Json = False,
    write: Annotated[bool, typer.Option("--write", help="Write results/standing.json and results/notices/.")] = False,
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
    from cleanset.studies.contest.page import write_page

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

    day = on or datetime.datetime.now(datetime.UTC)
    server.run(contest, judge, day.date(), host=host, port=port, browser=browser, public_url=public_url)


@app.command()
def judges(contest: ContestFolder = HERE) -> None:
    """Show how each judge answers the control images. For organizers, not for judges."""
    from cleanset.studies.contest.judges import score_table
    from cleanset.studies.contest.log import read
    from cleanset.studies.contest.standing import replay

    state = replay(read(contest))
    show(score_table(state.judges, state.roster))
