"""The commands `cleanset review …`, `cleanset agreement` and `cleanset audit`.

Each imports its code when it runs, so that `cleanset --help` is fast.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from cleanset.edition.options import HERE, LOOPBACK, Browser, Folder, Host, Json, Port, PublicUrl, show
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError

app = typer.Typer(no_args_is_help=True, help="Review images in the browser, and show the progress of the reviews.")
reports = typer.Typer()
"""The commands `cleanset agreement` and `cleanset audit`."""


@app.command()
def serve(
    reviewers: Annotated[
        list[str],
        typer.Option(
            "--reviewer",
            help="Your name; your verdicts are saved in reviews/<name>/. Repeat it for each reviewer of a team, who "
            "get a link each.",
        ),
    ],
    share: Annotated[str | None, typer.Option(help="Your part of the classes, such as 1/3.")] = None,
    look_again: Annotated[
        Path | None, typer.Option(help="look_again.csv of a study: its images are shown among the conflicts.")
    ] = None,
    host: Host = LOOPBACK,
    port: Port = None,
    browser: Browser = True,
    public_url: PublicUrl = None,
    edition: Folder = HERE,
) -> None:
    """Review images in the browser."""
    check_reviewers(reviewers, "--share" if share else None)
    from cleanset.review.page import server
    from cleanset.web.pages import PageAddress

    address = PageAddress(host, port, browser=browser, public_url=public_url)
    server.run(Edition(edition), reviewers, address, look_again=look_again, share=share)


@app.command()
def audit(
    drawn: Annotated[int, typer.Argument(metavar="IMAGES", min=1, help="Number of images to draw at random.")],
    reviewers: Annotated[
        list[str] | None,
        typer.Option("--reviewer", help="Reviewers of the drawn images; without it, images are only drawn."),
    ] = None,
    kind: Annotated[
        bool | None,
        typer.Option("--open/--fixed", help="Allow more draws later, or fix their number.", show_default="fixed"),
    ] = None,
    model: Annotated[str | None, typer.Option(help="The model of the set, such as standard.")] = None,
    seed: Annotated[str | None, typer.Option(help="Seed of the order of drawing.", show_default="1")] = None,
    host: Host = LOOPBACK,
    port: Port = None,
    browser: Browser = True,
    public_url: PublicUrl = None,
    edition: Folder = HERE,
) -> None:
    """Look again at images of a finished set, drawn at random: cleanset audit then bounds how much of it is flawed."""
    from cleanset.review import audit_report

    auditors = reviewers or []
    check_reviewers(auditors, "audit")
    plan, is_new = audit_report.draw(
        Edition(edition),
        model,
        drawn,
        kind=None if kind is None else "open" if kind else "fixed",
        seed=seed,
        auditor=auditors[0] if auditors else None,
    )
    if is_new or not auditors:
        typer.echo(audit_report.outlook(plan))
    if auditors:
        from cleanset.review.page import server
        from cleanset.web.pages import PageAddress

        address = PageAddress(host, port, browser=browser, public_url=public_url)
        server.run(Edition(edition), auditors, address, plan=plan)


@app.command()
def labels(
    reviewers: Annotated[
        list[str] | None, typer.Option("--reviewer", help="Reviewers of the images; without it, they are only listed.")
    ] = None,
    host: Host = LOOPBACK,
    port: Port = None,
    browser: Browser = True,
    public_url: PublicUrl = None,
    edition: Folder = HERE,
) -> None:
    """Look at the images whose labels the models contradict."""
    check_reviewers(reviewers or [])
    if reviewers:
        from cleanset.review.page import server
        from cleanset.web.pages import PageAddress

        address = PageAddress(host, port, browser=browser, public_url=public_url)
        server.run(Edition(edition), reviewers, address, labels=True)
        return
    from cleanset.review.labels import as_opinions, contradictions_in, opinions_on, studies_of

    opened = Edition(edition)
    classes = opened.read_classes()
    found = opinions_on(contradictions_in(opened, classes), studies_of(opened, classes), classes)
    typer.echo(as_opinions(found), nl=False)


def check_reviewers(team: Sequence[str], alone: str | None = None) -> None:
    """Raise CleansetError for a reviewer who is given twice, and for several where `alone` is for one only."""
    for place, name in enumerate(team):
        if name in team[:place]:
            raise CleansetError(f"--reviewer {name}: given twice; expected each reviewer once")
    if alone and len(team) > 1:
        raise CleansetError(f"{alone}: with {len(team)} reviewers; expected one: start a server for each")


@app.command()
def calibration(as_json: Json = False, edition: Folder = HERE) -> None:
    """Show how reviewers judge gold items."""
    from cleanset.review import calibration_report as report

    found = report.run_calibration(Edition(edition))
    show(report.calibration_as_json(found) if as_json else report.calibration_table(found))


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
def relabel(
    corrected: Annotated[Path, typer.Argument(help="A new table, such as labels.csv.")], edition: Folder = HERE
) -> None:
    """Write the table of labels of your own images, with the correct classes that reviewers have named.

    cleanset edition NEW --images FOLDER --labels TABLE makes an edition with
    these labels.
    """
    from cleanset.review.labels import write_corrected

    typer.echo(write_corrected(Edition(edition), corrected))


@app.command()
def bind(
    reviewer: Annotated[str | None, typer.Option(help="Only the reviews of this reviewer.")] = None,
    edition: Folder = HERE,
) -> None:
    """Write the SHA-256 of the images into reviews that identify them by their ids in the official archive.

    Then the reviews hold in any edition with the same images, whatever their
    layout.
    """
    from cleanset.review.bind import bind_reviews

    typer.echo(f"{bind_reviews(Edition(edition), reviewer)} reviews now have the SHA-256 of their images")


@app.command()
def guidelines(edition: Folder = HERE) -> None:
    """Write the usual review guidelines into reviews/GUIDELINES.md, to be edited.

    The review page shows them (h), and finished sets have a copy of the file.
    """
    from cleanset.edition.params import read_params
    from cleanset.review.guidelines import write_guidelines
    from cleanset.review.reasons import with_further

    written = write_guidelines(Edition(edition).reviews, with_further(read_params(edition).review.reasons))
    typer.echo(f"{written}: edit it; the review page shows it with h")


@reports.command()
def agreement(
    edition: Folder = HERE,
    as_json: Json = False,
) -> None:
    """Show the reviewers' agreement: kappa, and the images on which they differ."""
    from cleanset.review import agreement_report

    report = agreement_report.run_agreement(Edition(edition))
    show(agreement_report.agreement_as_json(report) if as_json else agreement_report.agreement_table(report))


@reports.command("audit")
def bounds_of_audits(
    model: Annotated[str | None, typer.Option(help="Only the audit of this model's set.")] = None,
    edition: Folder = HERE,
    as_json: Json = False,
) -> None:
    """Show the bounds that follow from audits: how much of a set is flawed at most."""
    from cleanset.review import audit_report

    found = audit_report.run_audit(Edition(edition), model)
    show(audit_report.audit_as_json(found) if as_json else audit_report.as_text(found))
