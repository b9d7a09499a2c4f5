"""The command line: one command per stage and tool. Each imports what it needs only when it runs."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from cleanset.edition import Edition
from cleanset.errors import CleansetError
from cleanset.options import HERE, Folder
from cleanset.review import commands as review_cli

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Build a clean, human-verified picture set for each of several ImageNet models. "
    "The stages are run by `dvc repro`, in the folder of an edition.",
)

Role = Annotated[str, typer.Option("--model", help="Role of the model in params.yaml, such as standard.")]
STAGES = "Stages, in the order of dvc.yaml"
TOOLS = "Tools"


@app.command(rich_help_panel=STAGES)
def preprocess(edition: Folder = HERE) -> None:
    """Check the raw archives, measure every picture, join the labels."""
    from cleanset.stages import preprocess as stage

    stage.run(Edition(edition))


@app.command(rich_help_panel=STAGES)
def score(model: Role, edition: Folder = HERE) -> None:
    """Run one model over all pictures (wants a GPU)."""
    from cleanset.stages import score as stage

    stage.run(Edition(edition), model)


@app.command(rich_help_panel=STAGES)
def intersect(edition: Folder = HERE) -> None:
    """List the pictures with one label that all models get right."""
    from cleanset.stages import intersect as stage

    stage.run(Edition(edition))


@app.command(rich_help_panel=STAGES)
def select(model: Role, edition: Folder = HERE) -> None:
    """List every picture that may stand in a class for one model, by tier and rank."""
    from cleanset.stages import select as stage

    stage.run(Edition(edition), model)


@app.command(rich_help_panel=STAGES)
def crops(edition: Folder = HERE) -> None:
    """List every crop that a reviewer has drawn."""
    from cleanset.stages import crops as stage

    stage.run(Edition(edition))


@app.command("score_crops", rich_help_panel=STAGES)
def score_crops(model: Role, edition: Folder = HERE) -> None:
    """Run one model over its candidates as they are cropped (a few pictures)."""
    from cleanset.stages import score_crops as stage

    stage.run(Edition(edition), model)


@app.command("review_apply", rich_help_panel=STAGES)
def review_apply(model: Role, edition: Folder = HERE) -> None:
    """Fill one model's classes from its candidates and the reviews."""
    from cleanset.stages import review_apply as stage

    stage.run(Edition(edition), model)


@app.command(rich_help_panel=STAGES)
def export(model: Role, edition: Folder = HERE) -> None:
    """Write one model's finished set, its manifest and its data card."""
    from cleanset.stages import export as stage

    stage.run(Edition(edition), model)


@app.command(rich_help_panel=STAGES)
def count(edition: Folder = HERE) -> None:
    """Write the metrics: pictures per class, totals, accuracy."""
    from cleanset.stages import count as stage

    stage.run(Edition(edition))


@app.command(rich_help_panel=STAGES)
def report(edition: Folder = HERE) -> None:
    """Write the report: numbers, charts, contact sheets."""
    from cleanset.stages import report as stage

    stage.run(Edition(edition))


@app.command("edition", rich_help_panel=TOOLS)
def make_edition(folder: Annotated[Path, typer.Argument(help="A new or empty folder.")]) -> None:
    """Make a new edition: params, checksums, empty reviews, a DVC project of its own."""
    from cleanset.new_edition import make_edition

    make_edition(folder)
    typer.echo(f"{folder}: put the archives into {folder / 'data' / 'raw'} (see params.yaml), then run dvc repro there")


@app.command(rich_help_panel=TOOLS)
def arrays(
    out: Annotated[Path, typer.Argument(help="A new or empty folder.")],
    preprocessing: Annotated[str | None, typer.Option(help="keras256 or Res256Crop224.")] = None,
    model: Annotated[str | None, typer.Option(help="Or that of this model in params.yaml, such as standard.")] = None,
    edition: Folder = HERE,
) -> None:
    """Write the preprocessed pictures and their labels as .npy files."""
    from cleanset.evaluation import arrays as tool

    tool.run(Edition(edition), out, preprocessing, model)


@app.command(rich_help_panel=TOOLS)
def compare(
    a: Annotated[Path, typer.Argument(help="A score table, or the folder of an export.")],
    b: Annotated[Path, typer.Argument(help="Another one.")],
    edition: Annotated[Path | None, typer.Option(help="Say which classes of this edition would change.")] = None,
    model: Annotated[str | None, typer.Option(help="Whose scores these are, if their names do not tell.")] = None,
    most: Annotated[int, typer.Option(min=0, help="How many of the most different pictures to list.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what two score tables or two exports disagree on; exit code 1 if there is anything."""
    from cleanset.evaluation import compare as tool

    report = tool.run(a, b, Edition(edition) if edition else None, model, most)
    typer.echo(tool.printed(report, as_json))
    raise typer.Exit(0 if report.same else 1)


@app.command(rich_help_panel=TOOLS)
def verify(
    folder: Annotated[Path, typer.Argument(help="The folder of an export, such as data/export/standard.")],
    decode: Annotated[bool, typer.Option("--decode", help="Decode pictures whose bytes are right, too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Hold a finished set against its manifest; a line for each fault, exit code 1 if there is any."""
    from cleanset.sets import verify as tool

    report = tool.run(folder, decode)
    typer.echo(tool.printed(report, as_json))
    raise typer.Exit(1 if report.faults else 0)


@app.command(rich_help_panel=TOOLS)
def rebuild(
    manifest: Annotated[Path, typer.Option(help="The manifest of the set (or the folder with it).")],
    images: Annotated[
        Path, typer.Option(help="Your ImageNet validation pictures: the tar, or a folder of any layout.")
    ],
    out: Annotated[Path, typer.Option(help="A new or empty folder.")],
) -> None:
    """Make a set that was handed on without its pictures from your own copy of ImageNet: all of it, or nothing."""
    from cleanset.sets import rebuild as tool

    report = tool.run(manifest, images, out)
    typer.echo(tool.printed(report))
    raise typer.Exit(1 if report.faults else 0)


@app.command(rich_help_panel=TOOLS)
def pack(
    folder: Annotated[Path, typer.Argument(help="The folder of an export, such as data/export/standard.")],
    out: Annotated[Path, typer.Option(help="A new or empty folder.")],
    shard_size: Annotated[int, typer.Option(min=1, help="Pictures in a shard.")] = 1000,
) -> None:
    """Pack a finished set into WebDataset shards."""
    from cleanset.sets import pack as tool

    typer.echo(tool.run(folder, out, shard_size))


@app.command(rich_help_panel=TOOLS)
def models(
    edition: Folder = HERE,
    pin: Annotated[
        bool, typer.Option("--pin", help="Download what is missing; write the sums into params.yaml.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the models: source, preprocessing, weights and their SHA-256, found and pinned."""
    from rich.console import Console

    from cleanset.scoring import ensemble

    if pin:
        ensemble.pin(Edition(edition))
    listed = ensemble.members(Edition(edition))
    if as_json:
        print(ensemble.as_json(listed))
    else:
        Console().print(ensemble.as_table(listed))


@app.command(rich_help_panel=TOOLS)
def agreement(
    edition: Folder = HERE,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show how far the reviewers agree: kappa, and the pictures on which they differ."""
    from rich.console import Console

    from cleanset.review import agreement_report

    report = agreement_report.run(Edition(edition))
    if as_json:
        print(agreement_report.as_json(report))
    else:
        Console().print(agreement_report.as_table(report), highlight=False)


app.add_typer(review_cli.app, name="review", rich_help_panel=TOOLS)


def main() -> None:
    """Run the command line; what a person can put right becomes one line and exit code 1."""
    try:
        app()
    except CleansetError as error:
        sys.exit(f"error: {str(error).replace(chr(10), ' ')}")
    except OSError as error:
        if error.strerror is None:
            raise
        sys.exit(f"error: {error.filename or 'writing'}: {error.strerror}")
