"""The commands `cleanset plan COMMAND …`: another long command, with its own arguments, counted before it starts."""

import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from inspect import Parameter, Signature, signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cleanset.edition.options import HERE, Json, show
from cleanset.evaluation import commands as evaluation_cli
from cleanset.report import commands as report_cli
from cleanset.studies.attacks import commands as attacks_cli
from cleanset.studies.robustness import commands as robustness_cli
from cleanset.studies.training import commands as training_cli

if TYPE_CHECKING:
    from cleanset.planning.work import Count, Plan

commands = typer.Typer()
"""`cleanset plan` of a folder."""
app = typer.Typer(no_args_is_help=True, help="Count what a long command computes, by its arguments, before it starts.")
robustness = typer.Typer(no_args_is_help=True)
attacks = typer.Typer(no_args_is_help=True)
app.add_typer(robustness, name="robustness")
app.add_typer(attacks, name="attacks")

COMMANDS = [("evaluate",), ("robustness", "evaluate"), ("attacks", "evaluate"), ("hints",)]
"""The commands that have a plan, word by word."""
Measure = Annotated[
    bool,
    typer.Option(
        "--measure",
        help="Measure each computation on a sample of its images, and estimate the hours from it.",
    ),
]
BudgetHours = Annotated[
    float | None,
    typer.Option(
        "--budget-hours", min=0, help="If it takes more hours on this machine, do not start, and exit with code 1."
    ),
]


def is_of_command(words: Sequence[str]) -> bool:
    """Whether words begin with one of COMMANDS; else they are of `cleanset plan FOLDER`."""
    return any(tuple(words[: len(each)]) == each for each in COMMANDS)


def print_plan(count: "Count", *, is_measured: bool, as_json: bool) -> "Plan":
    """Count, and print the plan; `is_measured`: with the hours of what has not begun."""
    from cleanset.planning import rendering
    from cleanset.planning.work import check_measured, measured_plan

    # what a user's module prints must not be within the plan
    with redirect_stdout(sys.stderr):
        found = measured_plan(count) if is_measured else count()
    show(rendering.plan_json(found) if as_json else rendering.plan_text(found))
    if is_measured:
        check_measured(found)
    return found


@commands.command("plan")
def plan_folder(
    folder: Annotated[
        Path,
        typer.Argument(
            help="Folder of an edition, or of a study of robustness, attacks or training.", show_default="this folder"
        ),
    ] = HERE,
    grid: Annotated[str | None, typer.Option(help="For a training study: a grid of its params.yaml.")] = None,
    measure: Measure = False,
    budget_hours: BudgetHours = None,
    start: Annotated[
        bool,
        typer.Option("--start", help="Run what is needed: trainings with cleanset training train, then dvc repro."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Count what an edition or a study computes before it starts: images, passes, bytes.

    Finished work, and what DVC finds up to date, is not counted. Hours are
    estimated from finished work, or with --measure from a sample of the
    images. Nothing is written or downloaded without --start, but for the
    weights that --measure needs and the epochs of a training.

    To plan another long command: cleanset plan COMMAND with its arguments;
    COMMAND is evaluate, robustness evaluate, attacks evaluate or hints.
    """
    from cleanset.planning.work import check_budget
    from cleanset.studies import plans

    kind = plans.kind_of_folder(folder)
    budget = budget_hours
    if kind == "training":
        # as the trainings do, before torch is imported
        training_cli.choose_instructions()
        if budget is None and (measure or start):
            budget = plans.budget_of(folder)
    # hours are known once it has begun
    is_measured = measure or (start and budget is not None)
    found = print_plan(plans.counting(folder, grid), is_measured=is_measured, as_json=as_json)
    check_budget(found, budget)
    if start:
        plans.start(kind, folder, found, grid)


def add_plan(to: typer.Typer, command: Callable[..., object], counting: "Callable[..., Count]", name: str) -> None:
    """Give a command a plan, which has all of its options and those of a plan.

    `counting`: from the command's arguments to what counts its work. `name`: the command's name, after cleanset.
    """
    from_command = signature(command, eval_str=True).parameters

    def plan(*, measure: bool, budget_hours: float | None, as_json: bool, **arguments: object) -> None:
        from cleanset.planning.work import check_budget

        if arguments.get("fresh"):
            arguments["out"] = None
        with redirect_stdout(sys.stderr):
            count = counting(**arguments)
        check_budget(print_plan(count, is_measured=measure, as_json=as_json), budget_hours)

    options = {each: found.replace(kind=Parameter.KEYWORD_ONLY) for each, found in from_command.items()}
    if "out" in options:
        # a plan needs no folder of results
        options["out"] = options["out"].replace(default=None)
    of_plan = {"measure": (Measure, False), "budget_hours": (BudgetHours, None), "as_json": (Json, False)}
    for each, (annotation, default) in of_plan.items():
        options[each] = Parameter(each, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
    # typer reads the options off the signature
    vars(plan)["__signature__"] = Signature([*options.values()])
    plan.__annotations__ = {}
    plan.__doc__ = f"Count what cleanset {name} computes with these arguments. Nothing is written."
    to.command(name.rpartition(" ")[2])(plan)


def _evaluate(*, edition: Path, **options: Any) -> "Count":
    """Counts the work of `cleanset evaluate`."""
    from cleanset.edition.paths import Edition
    from cleanset.evaluation.arguments import Arguments
    from cleanset.evaluation.evaluate import request_of
    from cleanset.planning import evaluated

    return evaluated.counting(request_of(Edition(edition), Arguments.of_options(**options)))


def _hints(*, place: str, text: bool | None, custom_hint: list[str] | None, **_: object) -> "Count":
    """Counts the work of `cleanset hints`."""
    from cleanset.planning import hints

    return hints.counting(place, text, custom_hint or ())


def _results(out: Path | None) -> Path:
    """The folder of earlier results; without one, a folder that is not there."""
    if out is not None:
        return out
    with TemporaryDirectory() as removed:
        return Path(removed)


@robustness.callback()
def _of_robustness() -> None:
    """Count what a command of cleanset robustness computes."""


@attacks.callback()
def _of_attacks() -> None:
    """Count what a command of cleanset attacks computes."""


def _robustness_evaluate(*, out: Path | None, **options: Any) -> "Count":
    from cleanset.studies.robustness import planning

    return planning.counting(robustness_cli.asked(out=_results(out), **options))


def _attacks_evaluate(*, out: Path | None, **options: Any) -> "Count":
    from cleanset.studies.attacks import planning

    return planning.counting(attacks_cli.asked(out=_results(out), **options))


add_plan(app, evaluation_cli.evaluate, _evaluate, "evaluate")
add_plan(app, report_cli.hints, _hints, "hints")
add_plan(robustness, robustness_cli.evaluate, _robustness_evaluate, "robustness evaluate")
add_plan(attacks, attacks_cli.evaluate, _attacks_evaluate, "attacks evaluate")
