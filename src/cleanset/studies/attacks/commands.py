"""The stages of a study that attack models, as commands of `cleanset robustness`; they import what they need on use."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cleanset.options import HERE, StudyFolder

if TYPE_CHECKING:
    from cleanset.studies.robustness.study import Study

app = typer.Typer()

Role = Annotated[str, typer.Option("--model", help="Role of the model in the edition's params.yaml.")]


def _study(folder: Path) -> "Study":
    from cleanset.files import remove_abandoned
    from cleanset.studies.attacks.results import attack_folders
    from cleanset.studies.robustness.study import Study

    for each in attack_folders(folder):
        remove_abandoned(each)
    return Study(folder)


@app.command()
def attacks(
    model: Role,
    attack: Annotated[str, typer.Option("--attack", help="Name of the attack in the study's params.yaml.")],
    study: StudyFolder = HERE,
) -> None:
    """Attack one model by one attack."""
    from cleanset.studies.attacks.stages import attacks as stage

    stage.run(_study(study), model, attack)


@app.command("attack-results")
def attack_results(study: StudyFolder = HERE) -> None:
    """Measure all attacks on all models."""
    from cleanset.studies.attacks.stages import attack_results as stage

    stage.run(_study(study))


@app.command("attack-warnings")
def attack_warnings(model: Role, study: StudyFolder = HERE) -> None:
    """Look for signs that a model only looks strong."""
    from cleanset.studies.attacks.stages import attack_warnings as stage

    stage.run(_study(study), model)
