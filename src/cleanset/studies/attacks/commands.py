"""The stages of studies/attacks, as commands of `cleanset robustness`. Each imports what it needs only when it runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cleanset.options import HERE, StudyFolder

if TYPE_CHECKING:
    from cleanset.studies.attacks.study import AttackStudy

app = typer.Typer()

Role = Annotated[str, typer.Option("--model", help="Role of the model in the edition's params.yaml.")]


def _study(folder: Path) -> "AttackStudy":
    from cleanset.files import remove_abandoned
    from cleanset.studies.attacks.study import AttackStudy

    study = AttackStudy(folder)
    for each in study.written_folders():
        remove_abandoned(each)
    return study


@app.command()
def attacks(
    model: Role,
    attack: Annotated[str, typer.Option("--attack", help="Name of the attack in params.yaml, or guess.")],
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


@app.command("attack-pages")
def attack_pages(study: StudyFolder = HERE) -> None:
    """Make the page on the attacks."""
    from cleanset.studies.attacks.stages import pages as stage

    stage.run(_study(study))
