"""The stages of studies/attacks, as commands of `cleanset robustness stage`, and `cleanset attacks evaluate`.

Each imports its code when it runs.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cleanset.edition.options import (
    ANY_MODEL,
    HERE,
    AnyImages,
    Architecture,
    DeviceOption,
    EditionOfRoles,
    Form,
    FreshOption,
    StudyFolder,
    show,
)
from cleanset.errors import CleansetError
from cleanset.plumbing.file_locks import only_run
from cleanset.plumbing.progress import print_notice

if TYPE_CHECKING:
    from cleanset.studies.attacks.request import AttackRequest
    from cleanset.studies.attacks.study import AttackStudy

app = typer.Typer()
tools = typer.Typer(no_args_is_help=True, help="Attack models on finished sets, outside DVC.")
"""The commands of `cleanset attacks`."""

ModelsToAttack = Annotated[list[str], ANY_MODEL]
Attacks = Annotated[
    str,
    typer.Option(
        "--attacks",
        help="Names separated by commas, such as pgd,spsa,square,transfer, or a .yaml file with the keys of a "
        "study's params.yaml.",
    ),
]
NormOfBall = Annotated[
    Literal["Linf", "L2"] | None,
    typer.Option("--norm", help="Norm for all norm-bounded attacks.", show_default="Linf"),
]
Eps = Annotated[
    str | None, typer.Option("--eps", help="Radius for all norm-bounded attacks.", show_default="4/255 in Linf")
]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="Number of images, spread over the classes.")]
TransferFrom = Annotated[
    list[str] | None,
    typer.Option(
        "--transfer-from", help="A source model for transfer, instead of the edition's; repeat it for each model."
    ),
]
StraightThrough = Annotated[
    list[str] | None,
    typer.Option(
        "--straight-through",
        help="A module, by its name in named_modules(), through which gradients pass straight; repeat it for each.",
    ),
]
Warnings = Annotated[bool, typer.Option("--warnings/--no-warnings", help="Look for signs of gradient masking.")]
PrecisionOfVerdicts = Annotated[
    str | None,
    typer.Option(
        "--precision",
        help="Precision of the final check: float64 (default), float32, tf32 or bfloat16.",
        show_default=False,
    ),
]
RoleOption = Annotated[str, typer.Option("--model", help="Role of the model in the edition's params.yaml.")]


def _study(folder: Path) -> "AttackStudy":
    from cleanset.studies.attacks.study import AttackStudy

    return AttackStudy.open(folder)


@app.command(hidden=True)
def attacks(
    model: RoleOption,
    attack: Annotated[str, typer.Option("--attack", help="Name of the attack in params.yaml, or guess.")],
    study: StudyFolder = HERE,
) -> None:
    """Attack one model by one attack."""
    from cleanset.studies.attacks.attack_stage import run_attack

    run_attack(_study(study), model, attack)


@app.command("attack-results", hidden=True)
def attack_results(study: StudyFolder = HERE) -> None:
    """Measure all attacks on all models."""
    from cleanset.studies.attacks.page import write_measures

    write_measures(_study(study))


@app.command("attack-warnings", hidden=True)
def attack_warnings(model: RoleOption, study: StudyFolder = HERE) -> None:
    """Look for signs of gradient masking."""
    from cleanset.studies.attacks.warning_stage import run_warnings

    run_warnings(_study(study), model)


@app.command("attack-pages", hidden=True)
def attack_pages(study: StudyFolder = HERE) -> None:
    """Make the page on the attacks."""
    from cleanset.studies.attacks.page import write_report

    write_report(_study(study))


@tools.callback()
def _group() -> None:
    """Keep `evaluate` a command of its own: a group of one command would be that command."""


def asked(
    *,
    images: str,
    model: list[str],
    out: Path,
    attacks: str,
    norm: Literal["Linf", "L2"] | None,
    eps: str | None,
    limit: int | None,
    transfer_from: list[str] | None,
    straight_through: list[str] | None,
    warnings: bool,
    architecture: str | None,
    precision: str | None,
    device: str | None,
    edition: Path,
    **_: object,
) -> "AttackRequest":
    """What the arguments of `attacks evaluate` ask for; its plan has the same ones."""
    from cleanset.edition.paths import Edition
    from cleanset.evaluation.arguments import Arguments
    from cleanset.studies.attacks.request import AttackRequest, attack_params

    return AttackRequest.read(
        Edition(edition),
        Arguments(images, model, architecture, precision=precision, device=device),
        attack_params(attacks, eps, limit, norm),
        out,
        transfer_from=transfer_from or (),
        lpips_folder=Path(attacks).parent,
        straight_through=straight_through or (),
        warnings=warnings,
    )


@tools.command()
def evaluate(
    images: AnyImages,
    model: ModelsToAttack,
    out: Annotated[Path, typer.Option(help="Write changed images and results here, and continue an interrupted run.")],
    attacks: Attacks,
    fresh: FreshOption = False,
    norm: NormOfBall = None,
    eps: Eps = None,
    limit: Limit = None,
    transfer_from: TransferFrom = None,
    straight_through: StraightThrough = None,
    warnings: Warnings = True,
    architecture: Architecture = None,
    precision: PrecisionOfVerdicts = None,
    device: DeviceOption = None,
    edition: EditionOfRoles = HERE,
    form: Form = None,
) -> None:
    """Attack any models on any images, outside DVC, as a study does.

    The robust accuracy of each threat model comes first: the share of the
    images that the model classifies correctly and that no attack in it
    breaks. OUT has the changed images, attack_measures.csv,
    attack_results.json and a page, index.html.
    """
    from cleanset.scoring.validity import forget_results

    with only_run(out):
        if fresh:
            forget_results(out)
        request = asked(
            images=images,
            model=model,
            out=out,
            attacks=attacks,
            norm=norm,
            eps=eps,
            limit=limit,
            transfer_from=transfer_from,
            straight_through=straight_through,
            warnings=warnings,
            architecture=architecture,
            precision=precision,
            device=device,
            edition=edition,
        )
        # imports torch, which takes seconds: a wrong name is reported before
        from cleanset.studies.attacks.evaluation import run
        from cleanset.studies.attacks.evaluation_tables import as_text, paper_table
        from cleanset.studies.attacks.planning import notice_of_signs

        if notice := notice_of_signs(request):
            print_notice(notice)
        evaluated = run(request)
    show(paper_table(evaluated).in_form(form) if form else as_text(evaluated))
    problems = [f"{name} {of}: {text}" for (name, of), text in evaluated.problems.items()]
    if problems:
        raise CleansetError(f"{'; '.join(problems)} (all other results are in {out})")
