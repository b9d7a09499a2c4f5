"""The commands `cleanset plan COMMAND …`: what another long command takes, by its arguments, before it starts."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from cleanset.edition.options import (
    ANY_MODEL,
    HERE,
    AnyImages,
    Architecture,
    ArchitectureOfWeights,
    DeviceOption,
    EditionOfRoles,
    Folder,
    HintsPlace,
    Json,
    ListRole,
    PrecisionOption,
    ReadText,
    Restricted,
    SetOrList,
    show,
)
from cleanset.studies.attacks import commands as attacks_cli
from cleanset.studies.robustness import commands as robustness_cli

if TYPE_CHECKING:
    from cleanset.planning.work import Plan

app = typer.Typer(no_args_is_help=True, help="Say what a long command takes, by its arguments, before it starts.")
robustness = typer.Typer(no_args_is_help=True)
attacks = typer.Typer(no_args_is_help=True)
app.add_typer(robustness, name="robustness")
app.add_typer(attacks, name="attacks")

COMMANDS = [("evaluate",), ("robustness", "evaluate"), ("attacks", "evaluate"), ("hints",)]
"""The commands that have a plan, word by word."""
Gpus = Annotated[int | None, typer.Option("--gpus", min=1, help="Also print the time on this many GPUs.")]
BudgetHours = Annotated[
    float | None,
    typer.Option("--budget-hours", min=0, help="Exit code 1, and no start, if it takes more hours on this machine."),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", help="The folder of the results: what an earlier run has finished there is not counted."),
]


def is_of_command(words: Sequence[str]) -> bool:
    """Whether words begin with one of COMMANDS; else they are of `cleanset plan FOLDER`."""
    return any(tuple(words[: len(each)]) == each for each in COMMANDS)


@contextmanager
def folder_of(out: Path | None) -> Iterator[Path]:
    """The folder of earlier results; an empty one without it."""
    with TemporaryDirectory() as empty:
        yield Path(empty) if out is None else out


def print_plan(found: "Plan", *, gpus: int | None, budget_hours: float | None, as_json: bool) -> None:
    """Print a plan. Raises CleansetError, after it, if it takes more hours than its budget."""
    from cleanset.planning import rendering
    from cleanset.planning.work import check_budget

    show(rendering.plan_json(found, gpus) if as_json else rendering.plan_text(found, gpus))
    check_budget(found, budget_hours)


@app.command()
def evaluate(
    images_of: SetOrList,
    model: Annotated[list[str], ANY_MODEL],
    architecture: ArchitectureOfWeights = None,
    role: ListRole = None,
    restricted: Restricted = False,
    precision: PrecisionOption = None,
    device: DeviceOption = None,
    out: Out = None,
    gpus: Gpus = None,
    budget_hours: BudgetHours = None,
    edition: Folder = HERE,
    as_json: Json = False,
) -> None:
    """Say what cleanset evaluate takes with these arguments. Nothing is written or downloaded."""
    from cleanset.edition.paths import Edition
    from cleanset.measure.command import Wanted
    from cleanset.planning import evaluated

    wanted = Wanted(
        name=images_of,
        models=model,
        architecture=architecture,
        role=role,
        precision=precision,
        device=device,
        out=out,
        restricted=restricted,
    )
    # what a user's module prints must not stand within the plan
    with redirect_stdout(sys.stderr):
        found = evaluated.plan(Edition(edition), wanted)
    print_plan(found, gpus=gpus, budget_hours=budget_hours, as_json=as_json)


@app.command()
def hints(
    place: HintsPlace,
    text: ReadText = None,
    budget_hours: BudgetHours = None,
    as_json: Json = False,
) -> None:
    """Say what cleanset hints takes with these arguments. Nothing is written."""
    from cleanset.planning import hints as of_hints

    print_plan(of_hints.plan(place, text), gpus=None, budget_hours=budget_hours, as_json=as_json)


@robustness.callback()
def _of_robustness() -> None:
    """Say what a command of cleanset robustness takes."""


@robustness.command("evaluate")
def evaluate_robustness(
    images: AnyImages,
    model: Annotated[list[str], ANY_MODEL],
    out: Out = None,
    params: robustness_cli.ParamsFile = None,
    architecture: Architecture = None,
    precision: PrecisionOption = None,
    device: DeviceOption = None,
    gpus: Gpus = None,
    budget_hours: BudgetHours = None,
    edition: EditionOfRoles = HERE,
    as_json: Json = False,
) -> None:
    """Say what cleanset robustness evaluate takes with these arguments. Nothing is written or downloaded."""
    from cleanset.edition.paths import Edition
    from cleanset.measure.command import Wanted
    from cleanset.studies.robustness import planned_evaluation

    wanted = Wanted(images, model, architecture, precision=precision, device=device)
    with redirect_stdout(sys.stderr), folder_of(out) as results:
        found = planned_evaluation.plan(Edition(edition), wanted, results, params)
    print_plan(found, gpus=gpus, budget_hours=budget_hours, as_json=as_json)


@attacks.callback()
def _of_attacks() -> None:
    """Say what a command of cleanset attacks takes."""


@attacks.command("evaluate")
def evaluate_attacks(
    images: AnyImages,
    model: attacks_cli.ModelsToAttack,
    attacks: attacks_cli.Attacks,
    out: Out = None,
    norm: attacks_cli.NormOfBall = None,
    eps: attacks_cli.Eps = None,
    limit: attacks_cli.Limit = None,
    transfer_from: attacks_cli.TransferFrom = None,
    straight_through: attacks_cli.StraightThrough = None,
    warnings: attacks_cli.Warnings = True,
    architecture: Architecture = None,
    precision: attacks_cli.PrecisionOfVerdicts = None,
    device: DeviceOption = None,
    gpus: Gpus = None,
    budget_hours: BudgetHours = None,
    edition: EditionOfRoles = HERE,
    as_json: Json = False,
) -> None:
    """Say what cleanset attacks evaluate takes with these arguments. Nothing is written or downloaded."""
    from cleanset.edition.paths import Edition
    from cleanset.measure.command import Wanted
    from cleanset.studies.attacks import evaluation, planned_evaluation
    from cleanset.studies.attacks.study import AttackRequest

    wanted = Wanted(images, model, architecture, precision=precision, device=device)
    params = evaluation.attack_params(attacks, eps, limit, norm)
    with redirect_stdout(sys.stderr), folder_of(out) as results:
        request = AttackRequest(
            params,
            results,
            lpips_folder=Path(attacks).parent,
            straight_through=straight_through or (),
            warnings=warnings,
        )
        found = planned_evaluation.plan(Edition(edition), wanted, request, transfer_from or ())
    print_plan(found, gpus=gpus, budget_hours=budget_hours, as_json=as_json)
