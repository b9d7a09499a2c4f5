"""The commands `cleanset contest …`. Each imports its code when it runs."""

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from typer.models import OptionInfo

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
_Time = TypeVar("_Time", datetime.date, datetime.datetime)
DAY = "A day such as 2026-11-27, in UTC."
INSTANT = "An instant such as 2026-11-27T12:00:00Z, of a contest that is made up."


def _day(text: str) -> datetime.date:
    from cleanset.studies.contest.rules import parse_day

    return _parsed(text, parse_day, "--on", "a day such as 2026-11-27")


def _instant(text: str) -> datetime.datetime:
    from cleanset.studies.contest.rules import parse_instant

    return _parsed(text, parse_instant, "--at", "an instant such as 2026-11-27T12:00:00Z")


def _parsed(text: str, parse: Callable[[str], _Time], option: str, expected: str) -> _Time:
    from cleanset.errors import CleansetError
    from cleanset.plumbing.validation import shown

    try:
        return parse(text)
    except ValueError:
        raise CleansetError(f"{option} {shown(text)}; expected {expected}") from None


def _on(more: str = "", *, show_default: bool | str = True) -> OptionInfo:
    """The option --on."""
    found: OptionInfo = typer.Option("--on", help=DAY + more, parser=_day, metavar="<str>", show_default=show_default)
    return found


On = Annotated[datetime.date, _on()]
At = Annotated[
    datetime.datetime | None,
    typer.Option("--at", help=INSTANT, parser=_instant, metavar="<str>", show_default="now"),
]
KeyFile = Annotated[Path, typer.Option("--key", help="Your SSH key, or the public one that an agent holds.")]
OWN_KEY = Path("~/.ssh/id_ed25519")


@app.command()
def check(
    path: Annotated[
        Path | None,
        typer.Argument(help="An entry that is to be entered, or an unpublished list.", show_default="the whole log"),
    ] = None,
    runs: Annotated[bool, typer.Option("--runs", help="Compute the answers of models in all runs again.")] = False,
    since: Annotated[
        str | None,
        typer.Option(
            "--since", help="What you have kept, and has to be there: a line's digest, or a checkpoint's file."
        ),
    ] = None,
    at: At = None,
    contest: ContestFolder = HERE,
) -> None:
    """Check the whole log, or new entries without writing them.

    Follows the chain, verifies the signatures, decodes images and compares
    them with the clean set and with earlier ones. For an unpublished list, a
    folder with one of images for each group, prints the line of contest.yaml
    that names it.
    """
    from cleanset.studies.contest import entering

    for line in entering.check(contest, path, at, runs=runs, since=since):
        typer.echo(line)


@app.command()
def enter(
    paths: Annotated[list[Path] | None, typer.Argument(help="Files, and folders of submissions and defences.")] = None,
    publish: Annotated[bool, typer.Option("--publish", help="End the week: its images are published.")] = False,
    key: KeyFile = OWN_KEY,
    at: At = None,
    contest: ContestFolder = HERE,
) -> None:
    """Check new mail, add it to the log, and sign the log.

    An entry is contest.yaml, a folder with manifest.yaml or defence.yaml, or
    a file that has its kind as the only key, such as decision or stake.
    """
    from cleanset.studies.contest import entering

    for line in entering.enter(contest, paths or [], publish=publish, key=key.expanduser(), at=at):
        typer.echo(line)


@app.command()
def sign(
    entries: Annotated[list[Path], typer.Argument(help="Files, and folders of submissions and defences, in order.")],
    name: Annotated[str, typer.Option("--name", help="Your team, your name on the board, or your id as a judge.")],
    key: KeyFile = OWN_KEY,
    contest: ContestFolder = HERE,
) -> None:
    """Sign what you say in a contest, in a file beside it: mail both.

    A signature is of one place in the log: entries count in the order in which
    they were signed, and each once.
    """
    from cleanset.studies.contest.entering import sign_entries

    for path in sign_entries(contest, entries, name, key.expanduser()):
        typer.echo(str(path))


@app.command()
def cosign(
    name: Annotated[str, typer.Option("--name", help="Your team.")],
    folder: Annotated[
        Path, typer.Argument(help="Where the cosignature is written.", show_default="the current one")
    ] = (HERE),
    key: KeyFile = OWN_KEY,
    at: At = None,
    contest: ContestFolder = HERE,
) -> None:
    """Cosign the last checkpoint: you have seen the log up to it, and no other one.

    Writes an entry and its signature: mail both.
    """
    from cleanset.studies.contest.cosigning import cosign_checkpoint

    for path in cosign_checkpoint(contest, folder, name, key.expanduser(), at):
        typer.echo(str(path))


@app.command()
def checkpoint(
    keys: Annotated[
        bool, typer.Option("--keys", help="The keys of organizers and teams instead, to verify it with.")
    ] = False,
    contest: ContestFolder = HERE,
) -> None:
    """Print the last checkpoint, with its cosignatures, as a signed note that other programs verify."""
    from cleanset.studies.contest.checkpoints import last_checkpoint, verifier_keys
    from cleanset.studies.contest.log import read

    lines = read(contest)
    typer.echo("".join(f"{each}\n" for each in verifier_keys(lines)) if keys else last_checkpoint(lines), nl=False)


@app.command()
def log(contest: ContestFolder = HERE) -> None:
    """List the lines of the log, with their digests: keep one, and publish it."""
    from cleanset.studies.contest.log import read

    for line in read(contest):
        typer.echo(f"{line.n} {line.at:%FT%TZ} {line.kind} {line.digest}")


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
    unconfined: Annotated[
        bool, typer.Option("--unconfined", help="Run a command even where it can read whatever this machine has.")
    ] = False,
    counts: Annotated[
        bool, typer.Option("--counts", help="Also the counts on the unpublished list: once the contest is over.")
    ] = False,
    key: KeyFile = OWN_KEY,
    at: At = None,
    contest: ContestFolder = HERE,
) -> None:
    """Run defences over every submitted image and the eligibility list.

    No other command of the contest runs a defence's command, and only check --runs also runs a model.
    """
    from cleanset.studies.contest.entering import enter_runs

    signing = key.expanduser() if enter else None
    for line in enter_runs(
        contest, defence, unpublished=unpublished, unconfined=unconfined, counts=counts, key=signing, at=at
    ):
        typer.echo(line)


@app.command()
def threshold(
    model: Annotated[str, typer.Option("--model", help="A role of the edition.")],
    confidence: Annotated[str, typer.Option(help="max_logit, softmax, margin or energy.")] = "softmax",
    coverage: Annotated[float, typer.Option(help="The share of the eligibility list to answer.")] = 0.8,
    ranking: Annotated[str, typer.Option(help="plain, or as_published: the counting of the published kit.")] = "plain",
    contest: ContestFolder = HERE,
) -> None:
    """Find the threshold below which a model of the edition has to abstain.

    Prints the threshold, the accuracy at that coverage and at full coverage,
    and the images that the model misclassifies above it.
    """
    from cleanset.studies.contest.thresholds import find_threshold

    typer.echo(find_threshold(contest, model, kind=confidence, coverage=coverage, ranking=ranking))  # type: ignore[arg-type]


@app.command()
def standing(
    on: On,
    as_json: Json = False,
    write: Annotated[bool, typer.Option("--write", help="Write results/standing.json and results/notices/.")] = False,
    contest: ContestFolder = HERE,
) -> None:
    """Show the standing at the end of a day, from the log alone."""
    from cleanset.studies.contest import report
    from cleanset.studies.contest.log import read_state
    from cleanset.studies.contest.standing import standing as standing_on

    files = read_state(contest, on)
    found = standing_on(files, on)
    if write:
        report.write_standing(contest, files, found)
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

    typer.echo(str(write_page(contest, read(contest), on)))


@app.command()
def judge(
    judge: Annotated[str, typer.Option("--judge", help="Your id in the roster.")],
    on: Annotated[datetime.date | None, _on(" The date of the answers.", show_default="today")] = None,
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

    day = on or datetime.datetime.now(datetime.UTC).date()
    server.run(contest, judge, day, host=host, port=port, browser=browser, public_url=public_url)


@app.command()
def judges(contest: ContestFolder = HERE) -> None:
    """Show how each judge answers the control images. For organizers, not for judges."""
    from cleanset.studies.contest.judges import score_table
    from cleanset.studies.contest.log import read_state

    show(score_table(read_state(contest)))
