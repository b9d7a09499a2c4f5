"""The commands that measure models and compare results. Each imports its libraries only when it runs."""

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated

import typer

from cleanset.edition.options import (
    ANY_MODEL,
    HERE,
    ArchitectureOfWeights,
    DeviceOption,
    Folder,
    Form,
    FreshOption,
    HubOption,
    Json,
    ListRole,
    PrecisionOption,
    Restricted,
    SetOrList,
    show,
)
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.statistics.formats import counted

commands = typer.Typer()


@commands.command()
def evaluate(
    images_of: SetOrList,
    model: Annotated[list[str] | None, ANY_MODEL] = None,
    predictions: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]FILE",
            help="Predictions made elsewhere, .csv or .parquet: image with class_index or wnid (of your own images, "
            "class), and probability if it is known; or image with class_1 to class_5 and probability_1 to "
            "probability_5. Repeat it for each model.",
        ),
    ] = None,
    architecture: ArchitectureOfWeights = None,
    role: ListRole = None,
    restricted: Restricted = False,
    labels_in: Annotated[
        Path | None,
        typer.Option(
            "--labels",
            help="Count multi-label accuracies, too: by the reassessed labels, and by the studies' files in this "
            "folder (cleanset labels --list).",
        ),
    ] = None,
    factors: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Error ratios by factor, too: a file of ImageNet-X's annotations, with its prototypical_paths.csv "
            "next to it.",
        ),
    ] = None,
    custom_measure: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODULE:NAME",
            help="A measure of yours, too: a function of the predictions that gives a value, or value, (low, high); "
            "repeat it for each.",
        ),
    ] = None,
    precision: PrecisionOption = None,
    device: DeviceOption = None,
    out: Annotated[
        Path | None, typer.Option(help="Write predictions and results here, and continue an interrupted run.")
    ] = None,
    fresh: FreshOption = False,
    hub: HubOption = None,
    report: Annotated[
        Path | None, typer.Option(help="Write a static page of the results into this folder, as index.html.")
    ] = None,
    edition: Folder = HERE,
    form: Form = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with every class.")] = False,
) -> None:
    """Measure any models on a finished set: accuracy, calibration, paired tests.

    The models do not join the ensemble. Every image is checked against its
    manifest first. `python -m pydoc cleanset.evaluation.user_model` has the
    contract of a MODULE:CALLABLE. Predictions made elsewhere need no torch.
    """
    from cleanset.evaluation import evaluate as tool
    from cleanset.evaluation import measured_models, rendering
    from cleanset.evaluation.arguments import Arguments
    from cleanset.plumbing.file_locks import only_run
    from cleanset.scoring.validity import forget_results

    wanted = Arguments.of_options(
        images_of=images_of,
        model=model,
        predictions=predictions,
        labels_in=labels_in,
        architecture=architecture,
        role=role,
        restricted=restricted,
        factors=factors,
        custom_measure=custom_measure,
        precision=precision,
        device=device,
        out=out,
        hub=hub,
        report=report,
    )
    # what a user's module prints must not be within the results
    with redirect_stdout(sys.stderr), only_run(out):
        if fresh:
            forget_results(out)
        measured, rows = tool.run(Edition(edition), wanted)
    if form is not None:
        table = rendering.leaderboard_for_paper if factors is None else rendering.factors_for_paper
        show(table(measured, rows).in_form(form))
    else:
        show(measured_models.results_json(measured, rows) if as_json else rendering.as_text(measured, rows))


@commands.command()
def labels(
    images_of: Annotated[
        str | None,
        typer.Argument(
            metavar="SET",
            help="A role of the edition, the folder or tar of an export, or a CSV list of images and their classes; "
            "without it all images of the edition that have one label.",
            show_default=False,
        ),
    ] = None,
    sources: Annotated[
        Path | None,
        typer.Option(
            help="The folder of the studies' files, downloaded by hand.", show_default="data/raw/labels of the edition"
        ),
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(help="Name of a study; repeat it for each. Without it: all studies in the folder."),
    ] = None,
    role: ListRole = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the images whose class a study denies into this CSV file.")
    ] = None,
    listed: Annotated[
        bool, typer.Option("--list", help="Print the studies: where their files are, SHA-256 and licence.")
    ] = False,
    edition: Folder = HERE,
    as_json: Json = False,
) -> None:
    """Show what further studies say about the labels of ImageNet's images, and how far they agree.

    Each study's file is checked by its SHA-256. No image is dropped.
    """
    import json

    from cleanset.evaluation import labels as tool

    if listed:
        typer.echo(tool.sources_text())
        return
    report = tool.run(images_of, Edition(edition), sources, source or (), role)
    if out is not None:
        tool.write_images(report, out)
    show(json.dumps(tool.as_json(report), indent=2) if as_json else tool.as_text(report))


@commands.command()
def compare(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="A B",
            help="Results of evaluate, robustness evaluate or attacks evaluate: the folder of --out, its results.json, "
            "or a model's JSON in it. Or two score tables or two folders of exports.",
        ),
    ],
    edition: Annotated[
        Path | None,
        typer.Option(help="Edition whose changed classes are listed."),
    ] = None,
    model: Annotated[str | None, typer.Option(help="The model of the scores, if the file names differ.")] = None,
    most: Annotated[int, typer.Option(min=0, help="Number of the most different images to list.")] = 10,
    form: Form = None,
    as_json: Json = False,
) -> None:
    """Compare results of models, two score tables, or two exports.

    For results: one table of the comparable ones; for the rest the first field
    of the comparability card that differs. Exit code 1 if any differ.

    For two score tables or exports: their differences; exit code 1 if they
    differ.
    """
    from cleanset.evaluation.compare import compared_tables, result_files, results

    if result_files.are_results(paths):
        if edition or model:
            raise CleansetError("compare: --edition and --model go with score tables; these are results of models")
        compared = results.run(paths)
        text = compared_tables.as_json(compared) if as_json else compared_tables.as_text(compared)
        show(compared_tables.ranking_for_paper(compared).in_form(form) if form else text)
        raise typer.Exit(1 if compared.left_out else 0)
    if form is not None:
        raise CleansetError(f"compare --format: goes with results of {result_files.COMMANDS}")

    from cleanset.evaluation.compare import report as tool

    if len(paths) != 2:
        raise CleansetError(
            f"compare: {counted(len(paths), 'path')}; expected two, or two or more results of models (JSON)"
        )
    result = tool.run(paths[0], paths[1], Edition(edition) if edition else None, role=model, most=most)
    typer.echo(result.render(as_json))
    raise typer.Exit(0 if result.same else 1)


@commands.command()
def diff(
    a: Annotated[Path, typer.Argument(help="A release: the folder or tar of a set, or its manifest.csv.")],
    b: Annotated[Path, typer.Argument(help="Another release, such as the next one.")],
    as_json: Json = False,
) -> None:
    """Compare two releases of a set; exit code 1 if they differ.

    Lists the images that were added, removed or cropped again, by class and
    reason.
    """
    from cleanset.evaluation.compare import releases

    found = releases.diff(a, b)
    typer.echo(found.render(as_json))
    raise typer.Exit(0 if found.same else 1)
