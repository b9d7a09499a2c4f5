"""The commands `cleanset training …`: the stages of a training study. Each imports its code when it runs."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cleanset.edition.options import HERE, StudyFolder

if TYPE_CHECKING:
    from cleanset.studies.training.study import TrainingStudy

app = typer.Typer(no_args_is_help=True, help="Train for robustness and on scenarios: the stages of a study.")

Fold = Annotated[str | None, typer.Option("--fold", help="Fold of the run; without it: the first.")]


def _study(folder: Path) -> "TrainingStudy":
    from cleanset.studies.training.study import TrainingStudy

    return TrainingStudy.open(folder)


@app.command()
def data(study: StudyFolder = HERE) -> None:
    """Read the training images and their masks, compare them with the edition's, and divide them into folds."""
    from cleanset.studies.training import data as stage

    stage.run(_study(study))


@app.command()
def train(
    run: Annotated[
        str | None, typer.Option("--run", help="Name of the run in params.yaml; without it: all unfinished ones.")
    ] = None,
    grid: Annotated[str | None, typer.Option("--grid", help="Only the unfinished runs of this grid.")] = None,
    study: StudyFolder = HERE,
) -> None:
    """Train every fold of a run, or of all unfinished runs, continuing what was interrupted.

    Each device of the machine, or of a Ray cluster, trains a fold at a time.
    Several runs are left for `dvc repro`, which takes them over.
    """
    choose_instructions()
    from cleanset.errors import CleansetError
    from cleanset.studies.training import train as stage

    if run is None:
        stage.run_grid(_study(study), grid)
    elif grid is None:
        stage.run(_study(study), run)
    else:
        raise CleansetError("--run and --grid; expected one of them, or none for all runs")


@app.command()
def entry(
    run: Annotated[str, typer.Option("--run", help="Name of a finished run.")],
    role: Annotated[str, typer.Option("--role", help="Name of the model in further_models.")],
    fold: Fold = None,
    weights: Annotated[
        Path | None, typer.Option(help="A copy of the weights, such as one in git; without it: the run's weights.")
    ] = None,
    study: StudyFolder = HERE,
) -> None:
    """Print a trained network as an entry of further_models in params.yaml of the robustness study."""
    from cleanset.plumbing.validation import check_known
    from cleanset.studies.training import finished as entries
    from cleanset.studies.training.study import StudyInputs

    here = _study(study)
    folds = StudyInputs.read(here).params.run(run).fold_names()
    check_known("fold", fold or folds[0], folds)
    found = entries.model_entry(here, here.fold(run, fold or folds[0]), weights)
    typer.echo(entries.as_yaml(role, found), nl=False)


@app.command()
def summary(study: StudyFolder = HERE) -> None:
    """Make tables, metrics and pages of all finished runs."""
    from cleanset.studies.training import summary as stage

    stage.run(_study(study))


@app.command()
def masks(
    run: Annotated[str, typer.Option("--run", help="Name of a finished run of segmentation.")],
    folder: Annotated[str, typer.Option("--folder", help="Name of the new folder in the robustness study's masks.")],
    fold: Fold = None,
    study: StudyFolder = HERE,
) -> None:
    """Make masks for the robustness study's images without one, by a trained segmentation network."""
    choose_instructions()
    from cleanset.studies.training.segmentation import finished_network
    from cleanset.studies.training.segmentation.finished_network import ORIGIN

    for line in finished_network.make_masks(_study(study), run, fold, folder):
        typer.echo(line)
    typer.echo(
        f"add to masks in params.yaml of the robustness study: {{folder: {folder}, format: png, origin: {ORIGIN}}}"
    )


def choose_instructions() -> None:
    """Choose the processor instructions of a training; call it before torch is imported."""
    from cleanset.studies.training.study import INSTRUCTIONS

    for name, value in INSTRUCTIONS.items():
        # before torch is imported, which reads them once
        os.environ.setdefault(name, value)
