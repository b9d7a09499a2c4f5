"""The commands `cleanset contest …`. Each imports what it needs only when it runs."""

import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from cleanset.edition.options import HERE, LOOPBACK, Browser, Host, Json, Port, PublicUrl, show
from cleanset.edition.paths import use_classes_of
from cleanset.vocabulary import require_imagenet

app = typer.Typer(no_args_is_help=True, help="Run a contest of models that abstain, judged by people.")


def _of_imagenet(contest: Path) -> Path:
    use_classes_of(contest / ".." / "..")
    require_imagenet("a contest", "one in an edition of them")
    return contest


Folder = Annotated[
    Path,
    typer.Option("--contest", help="Folder of the contest.", show_default="the current one", callback=_of_imagenet),
]
DAY = "A day such as 2026-11-27, in UTC."


def _day(text: str) -> datetime.date:
    from cleanset.errors import CleansetError
    from cleanset.studies.contest.rules import parse_day
    from cleanset.validation import shown

    try:
        return parse_day(text)
    except ValueError:
        raise CleansetError(f"--on {shown(text)}; expected a day such as 2026-11-27") from None


def _on(more: str = "", **options: Any) -> Any:
    """The option --on."""
    return typer.Option("--on", help=DAY + more, parser=_day, metavar="<str>", **options)


On = Annotated[datetime.date, _on()]


@app.command()
def check(
    path: Annotated[
        Path | None, typer.Argument(help="A submission, a defence, or an unpublished list.", show_default="everything")
    ] = None,
    on: Annotated[datetime.date | None, _on(" Later dates are errors.")] = None,
    contest: Folder = HERE,
) -> None:
    """Check a submission, a defence, an unpublished list, or the whole contest.

    Decodes images and compares them with the clean set, files with their
    SHA-256, and all files with each other. For an unpublished list, a folder
    with one of images for each group, prints the line of contest.yaml that
    names it: it decides who is eligible, and the line tells nothing of it.
    """
    from cleanset.studies.contest import checking

    typer.echo(checking.run(contest, path, on))


@app.command()
def manifest(
    target: Annotated[str, typer.Option("--target", help="The defence that the images are aimed at, team/name.")],
    at: Annotated[str, typer.Option("--at", help="Time of submission in UTC, such as 2026-11-27T12:00:00Z.")],
    images: Annotated[list[Path], typer.Argument(help="PNG or JPEG files.")],
) -> None:
    """Print the manifest.yaml of a submission of these images.

    It has their sizes and SHA-256; a damaged image is refused. Run check to
    find out whether the contest accepts the submission.
    """
    from cleanset.studies.contest.checking import manifest_yaml

    typer.echo(manifest_yaml(target, at, images), nl=False)


@app.command()
def stake(
    defences: Annotated[list[str], typer.Argument(help="team/name of each.")],
    batch: Annotated[str, typer.Option("--batch", help="A name that no other stake has.")],
    on: Annotated[datetime.date, _on(" The date of the stake.")],
    by: Annotated[str, typer.Option("--by", help="board, or the defences' own team.")] = "board",
    contest: Folder = HERE,
) -> None:
    """Print the entry of board/stakes.yaml that stakes defences.

    It has the digest of each defence and its files: none of them may change
    from then on.
    """
    from cleanset.studies.contest.defending import stake_yaml

    typer.echo(stake_yaml(contest, batch, on, by, defences), nl=False)


@app.command("unpublished", hidden=True, context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
def moved() -> None:
    """Say which command prints the line of an unpublished list today."""
    from cleanset.errors import CleansetError

    raise CleansetError("contest unpublished: a part of check today: cleanset contest check FOLDER")


@app.command()
def log(on: On, contest: Folder = HERE) -> None:
    """Add a line to board/log: a digest of all that is dated up to a day.

    Each line has the digest of the one before, so that whoever keeps one can
    see later whether anything was changed. Publish it.
    """
    from cleanset.studies.contest.history import append_log
    from cleanset.studies.contest.reading import read_contest

    typer.echo(append_log(contest, read_contest(contest), on))


@app.command()
def defend(
    on: Annotated[datetime.date, _on(" The date of the runs.")],
    defence: Annotated[
        list[str] | None, typer.Option("--defence", help="team/name; may be repeated.", show_default="all")
    ] = None,
    unpublished: Annotated[
        Path | None,
        typer.Option(
            help="The list that contest.yaml names as unpublished.", show_default="unpublished/ of the contest"
        ),
    ] = None,
    unconfined: Annotated[
        bool, typer.Option("--unconfined", help="Run a command even where it can read whatever this machine has.")
    ] = False,
    contest: Folder = HERE,
) -> None:
    """Run defences over every submitted image and the eligibility list.

    Writes results/runs/<team>/<name>/<date>.json. No other command of the
    contest runs a model or a defence's command.
    """
    from cleanset.studies.contest import defending
    from cleanset.studies.contest.files import until
    from cleanset.studies.contest.reading import read_contest

    files = until(read_contest(contest), on)
    for path in defending.defend(contest, files, defence or sorted(files.defences), on, unpublished, unconfined):
        typer.echo(str(path))


@app.command()
def threshold(
    model: Annotated[str, typer.Option("--model", help="A role of the edition.")],
    confidence: Annotated[str, typer.Option(help="max_logit, softmax, margin or energy.")] = "softmax",
    coverage: Annotated[float, typer.Option(help="The share of the eligibility list to answer.")] = 0.8,
    ranking: Annotated[str, typer.Option(help="plain, or as_published: the counting of the published kit.")] = "plain",
    contest: Folder = HERE,
) -> None:
    """Find the threshold below which a model of the edition has to abstain.

    Prints the threshold, the accuracy at that coverage and at full coverage,
    and the images that the model misclassifies above it.
    """
    from cleanset.studies.contest import defending as thresholds

    typer.echo(thresholds.run(contest, model, confidence, coverage, ranking))  # type: ignore[arg-type]


@app.command()
def standing(
    on: On,
    as_json: Json = False,
    write: Annotated[bool, typer.Option("--write", help="Write results/standing.json and results/notices/.")] = False,
    contest: Folder = HERE,
) -> None:
    """Show the standing at the end of a day, from the files alone."""
    from cleanset.studies.contest import report
    from cleanset.studies.contest.reading import read_contest
    from cleanset.studies.contest.standing import standing as standing_on

    files = read_contest(contest)
    found = standing_on(files, on)
    if write:
        report.write_standing(contest, files, found)
    if as_json:
        typer.echo(report.as_json(found), nl=False)
    else:
        show(report.as_text(found))


@app.command()
def page(on: On, contest: Folder = HERE) -> None:
    """Make the page of the contest at the end of a day.

    Writes results/page.html, which opens without a server or a network,
    and results/page_images/.
    """
    from cleanset.studies.contest.page import write_page
    from cleanset.studies.contest.reading import read_contest

    typer.echo(str(write_page(contest, read_contest(contest), on)))


@app.command()
def judge(
    judge: Annotated[str, typer.Option("--judge", help="Your id in judges/roster.yaml.")],
    on: Annotated[datetime.date | None, _on(" The date of the answers.", show_default="today")] = None,
    host: Host = LOOPBACK,
    port: Port = None,
    browser: Browser = True,
    public_url: PublicUrl = None,
    contest: Folder = HERE,
) -> None:
    """Judge submitted images in the browser.

    Asks about the images of the weeks that have ended, and saves each answer
    at once in answers/<id>/<week>.yaml.
    """
    from cleanset.studies.contest.judge_page import server

    server.run(contest, judge, on or datetime.datetime.now(datetime.UTC).date(), host, port, browser, public_url)


@app.command()
def judges(contest: Folder = HERE) -> None:
    """Show how each judge answers the control images. For organizers, not for judges."""
    from cleanset.studies.contest.judges import as_table, judge_scores
    from cleanset.studies.contest.reading import read_contest

    show(as_table(judge_scores(read_contest(contest))))
