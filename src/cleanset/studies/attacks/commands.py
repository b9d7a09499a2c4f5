"""Printing the results of `attacks evaluate`: robust accuracies first, then each attack, then the warnings.

The stages of studies/attacks, as commands of `cleanset robustness`, and `cleanset attacks evaluate`.

Each imports what it needs only when it runs.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cleanset.edition.paths import HERE, StudyFolder
from cleanset.studies.attacks.evaluation import AttackedModels
from cleanset.studies.attacks.results import WORST_CASE, AttackMeasure

if TYPE_CHECKING:
    from cleanset.studies.attacks.study import AttackStudy


MEANING = (
    "robust: classified correctly, and broken by no attack. success: of the images that are classified correctly, "
    "those that the attack breaks. Both with Wilson's 95 % interval."
)


def as_text(evaluated: AttackedModels) -> Group:
    """The images, a table of the robust accuracies, one of the attacks, and the warnings; fits into 80 columns."""
    images = evaluated.images
    count, classes = len(images.images), images.images["class_index"].nunique()
    parts: list[RenderableType] = [Text(f"{images.name}: {count:,} images of {classes:,} classes")]
    parts += map(Text, images.notes)
    parts += [Text(), _robust(evaluated), Text(), _attacks(evaluated), Text(), Text(MEANING)]
    for model, record in evaluated.warnings.items():
        parts.append(Text())
        if not record.warnings:
            parts.append(Text(f"{model}: no sign that it only looks strong ({record.images} images)"))
        parts += [Text(f"{model}: {each.sign}: {each.text}", style="red") for each in record.warnings]
        parts += [Text(f"{model}: {each.sign} cannot be told: {each.text}") for each in record.not_told]
    return Group(*parts)


def _table(*columns: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("model", overflow="fold", min_width=12)
    for column in columns:
        table.add_column(column, justify="left" if column == "attack" else "right", no_wrap=True)
    return table


def _robust(evaluated: AttackedModels) -> Table:
    table = _table("images", "clean", "robust")
    for model in evaluated.models:
        names = ("clean_accuracy", "robust_accuracy", "tried_by_all")
        clean, robust, tried = (evaluated.value(WORST_CASE, model, measure) for measure in names)
        images = "–" if robust is None else f"{robust.images:,}"
        if robust is not None and tried is not None and tried.value < 1:
            images = f"{images}, {round(tried.value * tried.images):,} by all attacks"
        table.add_row(Text(model), images, _share(clean, has_interval=False), _share(robust))
    return table


def _attacks(evaluated: AttackedModels) -> Table:
    table = _table("attack", "images", "success", "queries")
    for model in evaluated.models:
        for place, attack in enumerate(evaluated.params.attacks):
            success, queries = (evaluated.value(attack, model, measure) for measure in ("success", "queries"))
            cells = ["–" if queries is None else f"{queries.images:,}", _share(success)]
            cells.append("–" if queries is None else f"{queries.value:,.0f}")
            table.add_row(Text(model if place == 0 else ""), attack, *cells)
    return table


def _share(line: AttackMeasure | None, *, has_interval: bool = True) -> str:
    """Percent, with the ends of the interval where there are any."""
    if line is None or not line.is_defined:
        return "–"
    text = f"{100 * line.value:.1f}"
    return text if line.interval is None or not has_interval else f"{text} ({100 * line.low:.1f}–{100 * line.high:.1f})"


app = typer.Typer()
tools = typer.Typer(no_args_is_help=True, help="Attack models on finished sets, outside DVC.")
"""The commands of `cleanset attacks`."""

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
    from cleanset.studies.attacks.attacking import run_attack

    run_attack(_study(study), model, attack)


@app.command("attack-results")
def attack_results(study: StudyFolder = HERE) -> None:
    """Measure all attacks on all models."""
    from cleanset.studies.attacks.reporting import write_measures

    write_measures(_study(study))


@app.command("attack-warnings")
def attack_warnings(model: Role, study: StudyFolder = HERE) -> None:
    """Look for signs that a model only looks strong."""
    from cleanset.studies.attacks.attacking import run_warnings

    run_warnings(_study(study), model)


@app.command("attack-pages")
def attack_pages(study: StudyFolder = HERE) -> None:
    """Make the page on the attacks."""
    from cleanset.studies.attacks.reporting import write_report

    write_report(_study(study))


@tools.callback()
def _group() -> None:
    """Keep `evaluate` a command of its own: a group of one command would be that command."""


@tools.command()
def evaluate(
    model: Annotated[
        list[str],
        typer.Option(
            help="timm:NAME, torchvision:NAME.WEIGHTS, robustbench:THREAT/NAME, a file of weights, MODULE:CALLABLE, "
            "command:PROGRAM, or a role of the edition; repeat it for each model."
        ),
    ],
    images: Annotated[
        str,
        typer.Option(
            help="A role of the edition, the folder of an export or of an edition, a folder per wnid, or a file with "
            "the ids of some of the edition's images, one a line."
        ),
    ],
    out: Annotated[
        Path, typer.Option(help="Write changed images and results here, and continue what was interrupted.")
    ],
    attacks: Annotated[
        str | None,
        typer.Option(help="Names of attacks with commas between, such as pgd,spsa,square,transfer."),
    ] = None,
    params: Annotated[
        Path | None, typer.Option(help="File with the keys of a study's params.yaml: its attacks by name.")
    ] = None,
    eps: Annotated[
        str | None, typer.Option(help="Linf bound of all attacks that have one.", show_default="4/255")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Number of images, spread over the classes.")] = None,
    transfer_from: Annotated[
        list[str] | None,
        typer.Option(help="A model to make images on, in place of the edition's; repeat it for each model."),
    ] = None,
    straight_through: Annotated[
        list[str] | None,
        typer.Option(
            help="A step of the network, by its name in named_modules(), that gradients pass straight through; "
            "repeat it for each step."
        ),
    ] = None,
    warnings: Annotated[bool, typer.Option(help="Look for signs that a model only looks strong.")] = True,
    architecture: Annotated[str | None, typer.Option(help="timm architecture of the weights file.")] = None,
    precision: Annotated[
        str | None,
        typer.Option(help="Of the verdicts: float64 (default), float32, tf32 or bfloat16.", show_default=False),
    ] = None,
    device: Annotated[str | None, typer.Option(help="auto (default), cpu, cuda or cuda:N.")] = None,
    edition: Annotated[
        Path, typer.Option(help="Folder of the edition that the roles belong to.", show_default="the current one")
    ] = HERE,
) -> None:
    """Attack any models on any images, outside DVC, as a study does.

    The robust accuracy comes first: the share of the images that the model
    classifies correctly and that no attack breaks. OUT has the changed
    images, attack_measures.csv and attack_results.json.
    """
    from rich.console import Console

    from cleanset.edition.paths import Edition
    from cleanset.measure.command import Wanted
    from cleanset.studies.attacks import evaluation

    asked = evaluation.AskedAttacks.of(attacks, params, eps, limit, transfer_from, straight_through, warnings)
    wanted = Wanted(images, model, architecture, precision=precision, device=device)
    Console().print(as_text(evaluation.run(Edition(edition), wanted, asked, out)), highlight=False)
