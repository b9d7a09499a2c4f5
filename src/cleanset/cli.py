"""The command line: all commands by task, those that know editions and studies both, and messages of errors."""

import io
import os
import sys
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core
from typer.models import CommandInfo

from cleanset import documentation
from cleanset.edition.options import HERE, Folder, Json, show
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError, install_command, one_line, reason, system_error
from cleanset.evaluation import commands as evaluation_cli
from cleanset.report import commands as report_cli
from cleanset.reproduce import commands as reproduce_cli
from cleanset.review import commands as review_cli
from cleanset.sets import commands as sets_cli
from cleanset.stages import commands as stages_cli
from cleanset.studies import plan_commands as plan_cli
from cleanset.studies.attacks import commands as attacks_cli
from cleanset.studies.contest import commands as contest_cli
from cleanset.studies.realness import commands as study_cli
from cleanset.studies.robustness import commands as robustness_cli
from cleanset.studies.training import commands as training_cli

PANELS = {
    "Get a finished set": ("published", "fetch", "look", "rebuild", "verify", "cite"),
    "Measure models": ("evaluate", "compare", "selection"),
    "Estimate the work": ("plan",),
    "Check labels": ("labels",),
    "Make an edition": ("tutorial", "edition", "models", "stage", "status", "doctor"),
    "Review images": ("review", "hints", "agreement", "audit"),
    "Release a set": ("publish", "pack", "arrays", "diff", "digests"),
    "Papers": ("reproduce",),
    "Studies of finished sets": ("robustness", "attacks", "contest", "training", "study"),
    "Read the documentation": ("docs",),
    "Development of cleanset itself": ("pipelines",),
}
"""The commands by task, in the order of `cleanset --help`."""


class _Commands(typer.core.TyperGroup):
    """The commands; the name of a stage is one, too."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the arguments name, and those left for it."""
        if args[:1] == ["plan"] and plan_cli.is_of_command(args[1:]):
            return "plan", typer.main.get_command(plan_cli.app), args[1:]
        # pipelines, locks and people call a stage by its name alone
        return super().resolve_command(ctx, ["stage", *args] if args and args[0] in stages_cli.STAGES else args)

    def list_commands(self, ctx: Any) -> list[str]:
        """The commands in the order of their panels, any others last."""
        order = [name for names in PANELS.values() for name in names]
        return sorted(super().list_commands(ctx), key=lambda name: order.index(name) if name in order else len(order))


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Build a clean, human-verified image set for each of several ImageNet models. "
    "The stages are run by `dvc repro`, in the folder of an edition.",
)


def print_version(wanted: bool) -> None:
    """Print the version and end, if wanted."""
    if wanted:
        from importlib.metadata import version

        typer.echo(f"cleanset {version('cleanset')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Take the options that precede a command."""


@app.command()
def models(
    edition: Folder = HERE,
    add: Annotated[
        list[str] | None,
        typer.Option(help="Add ROLE=SOURCE:NAME to the ensemble, as cleanset edition --model takes it."),
    ] = None,
    weights: Annotated[
        Path | None,
        typer.Option(help="With one --add: a local file of weights, to be pinned."),
    ] = None,
    remove: Annotated[list[str] | None, typer.Option(help="Remove the model of this role from the ensemble.")] = None,
    robustbench: Annotated[
        bool,
        typer.Option("--robustbench", help="List the available RobustBench models, of one THREAT or of all."),
    ] = False,
    threat: Annotated[str | None, typer.Argument(help="With --robustbench: such as Linf.", show_default=False)] = None,
    pin: Annotated[
        bool, typer.Option("--pin", help="Download missing weights, and write the SHA-256 of all into params.yaml.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show, add, remove or pin the models of an edition.

    Shows source, preprocessing and weights, with the SHA-256 of the weights
    on disk, in params.yaml and in the stored scores; then the further models
    of the study of robustness, with the corruptions they were trained on.
    """
    if robustbench:
        if any((add, weights, remove, pin, as_json)):
            raise CleansetError("models --robustbench: goes with THREAT alone; leave others out")
        from cleanset.scoring.models import served_models

        typer.echo("\n".join(served_models(threat)))
        return
    if threat is not None:
        raise CleansetError(f"models {threat}: goes with --robustbench; leave it out")
    from rich.console import Console

    from cleanset.scoring import ensemble

    here = Edition(edition)
    if add or remove or weights:
        for line in ensemble.change(here, add or [], weights, remove or []):
            typer.echo(line, err=True)
    if pin:
        ensemble.pin(here)
    listed = ensemble.members(here)

    from cleanset.studies.robustness import further_models

    further = further_models.further_members(here)
    if as_json:
        typer.echo(ensemble.as_json(listed, further_models.as_objects(further)))
        return
    Console().print(ensemble.as_table(listed))
    if further:
        Console().print(further_models.as_table(further))


@review_cli.app.command("status")
def review_status(
    reviewers: Annotated[
        list[str] | None, typer.Option("--reviewer", help="A reviewer whose progress is shown; repeat it for each.")
    ] = None,
    as_json: Json = False,
    edition: Folder = HERE,
) -> None:
    """Show the settled classes and the images still to be reviewed."""
    # here, not in review/commands.py: reviews know nothing of finished sets
    from cleanset.edition.stage_inputs import misread_inputs
    from cleanset.review import status as progress_of_reviews
    from cleanset.sets.made_from import outdated_sets

    review_cli.check_reviewers(reviewers or [])
    found = progress_of_reviews.run(Edition(edition))
    of_team = None
    if reviewers:
        from cleanset.review.page import team as progress

        of_team = progress.progress_of_team(Edition(edition), reviewers)
    lines = [*outdated_sets(Edition(edition)), *misread_inputs(edition)]
    if as_json:
        print(progress_of_reviews.as_json(found, progress.as_json(of_team) if of_team else None, outdated=lines))
        return
    show(progress_of_reviews.as_table(found))
    if of_team:
        show(progress.as_table(of_team))
    for line in lines:
        typer.echo(line)


@app.command()
def pipelines(
    repository: Annotated[
        Path,
        typer.Option(help="A checkout of this project, or an edition elsewhere.", show_default="the current folder"),
    ] = HERE,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit code 1 if a dvc.yaml is out of date.")
    ] = False,
    relock: Annotated[
        bool, typer.Option("--relock", help="Enter today's code into each dvc.lock without running a stage.")
    ] = False,
) -> None:
    """Write into each dvc.yaml the modules that its stages depend on.

    For all pipelines of the editions there. Relock after a refactoring that
    changes no output; the tests rebuild the sample to show that.
    """
    from cleanset.edition.dependencies import projects_of, update_dependencies
    from cleanset.edition.dependencies import relock as enter_code
    from cleanset.plumbing.files import is_there

    others = (repository / name for name in ("imagenet", "imagenet-published"))
    projects = projects_of([repository, *(each for each in others if is_there(each / "dvc.yaml"))])
    changed = update_dependencies(projects, app, write=not check)
    for path in changed:
        typer.echo(f"{path}: {'out of date; run cleanset pipelines' if check else 'written'}")
    for project in (each for each in projects if relock and not check and is_there(each / "dvc.lock")):
        typer.echo(f"{project / 'dvc.lock'}: {len(enter_code(project))} stages changed")
    raise typer.Exit(1 if check and changed else 0)


for each in (stages_cli, sets_cli, evaluation_cli, report_cli, plan_cli, reproduce_cli, documentation):
    app.registered_commands += each.commands.registered_commands
app.registered_commands += review_cli.reports.registered_commands
app.add_typer(review_cli.app, name="review")
robustness_cli.stages.add_typer(attacks_cli.app)
app.add_typer(robustness_cli.app, name="robustness")
app.add_typer(attacks_cli.tools, name="attacks")
app.add_typer(contest_cli.app, name="contest")
app.add_typer(training_cli.app, name="training")
app.add_typer(study_cli.app, name="study")


def name_of(command: CommandInfo) -> str:
    """The name of a command, which is its function's if it is not given."""
    return str(command.name or getattr(command.callback, "__name__", ""))


def put_into_panels() -> None:
    """Give each command the panel of PANELS that has it."""
    panel_of = {name: panel for panel, names in PANELS.items() for name in names}
    for command in app.registered_commands:
        command.rich_help_panel = panel_of.get(name_of(command))
    for group in app.registered_groups:
        group.rich_help_panel = panel_of.get(str(group.name))


put_into_panels()


def with_command(words: Sequence[str]) -> typer.Typer:
    """The program with the command alone that `words` begin with: to build all takes a quarter of a start.

    With all commands where they begin with none, such as for help.
    """
    name = next(iter(words), "")
    name = "stage" if name in stages_cli.STAGES else name
    found = copy(app)
    found.registered_commands = [each for each in app.registered_commands if name_of(each) == name]
    found.registered_groups = [each for each in app.registered_groups if each.name == name]
    return found if found.registered_commands or found.registered_groups else app


EXTRAS = {
    "review": ("fastapi", "nicegui", "pdqhash", "starlette", "uvicorn"),
    "text": ("onnxruntime", "rapidocr"),
    "pilot": ("playwright",),
}
"""The modules that an extra brings. All others come with build, or with evaluate for the command of that name, but for
those of ray, generate and study, which are asked for where they are imported.
"""
EXTRAS_OF_STUDIES = {
    "robustness": "robustness",
    "attacks": "robustness,attacks",
    "training": "robustness,training",
}
"""The extras that the commands of a study need in addition to build or evaluate."""
OF_EXTRAS = (
    "evaluate: any torch and timm; build: libraries of the stages; review: the review page; "
    "robustness, attacks and training: studies"
)


def extra_of(module: str, command: str = "") -> str:
    """The extras that bring all libraries of a command; `module` is the import name of a missing one.

    `command`: its words; those after the subcommand do not matter. A plan needs what the planned one needs.
    """
    words = command.removeprefix("plan ").split()
    others = "evaluate" if "evaluate" in words else "build"
    if words and words[0] in EXTRAS_OF_STUDIES:
        return f"{others},{EXTRAS_OF_STUDIES[words[0]]}"
    return next((extra for extra, modules in EXTRAS.items() if module.partition(".")[0] in modules), others)


EXIT_OF_CLOSED_PIPE = 141
"""The exit code of programs in a shell whose reader has closed the pipe, as `head` does."""


def main() -> None:
    """Run the command line; a problem that a user can fix becomes one line and exit code 1."""
    for stream in (sys.stdout, sys.stderr):
        # a name of a file may hold what the terminal's encoding lacks, or bytes that are not text
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")
    try:
        if "DVC_STAGE" in os.environ:
            from cleanset.edition.stage_inputs import noted_inputs

            with noted_inputs():
                with_command(sys.argv[1:])()
        else:
            with_command(sys.argv[1:])()
    except (CleansetError, ModuleNotFoundError, MemoryError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            sys.exit(EXIT_OF_CLOSED_PIPE)
        if (message := _message(error)) is None:
            raise
        # a name in it may hold what a terminal would follow
        sys.exit("\n".join(map(one_line, f"error: {message}".split("\n"))))


def _message(error: Exception) -> str | None:
    """The message of an error; None for a fault of this package, whose traceback is needed."""
    if isinstance(error, MemoryError):
        return f"out of memory ({reason(error)}); expected more: end other programs, or give smaller batches or files"
    if isinstance(error, ModuleNotFoundError):
        if error.name is None or error.name.partition(".")[0] == "cleanset":
            return None
        extra = extra_of(error.name, " ".join(sys.argv[1:4]))
        return f"{error.name}: not installed, and this command needs it: {install_command(extra)} ({OF_EXTRAS})"
    if isinstance(error, OSError):
        # without one, raised by a library under this name
        return None if error.strerror is None else system_error(error)
    return str(error)
