"""The command line: commands, options and their defaults. Each command imports its libraries only when it runs."""

import io
import sys
from contextlib import redirect_stdout
from enum import StrEnum
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core

from cleanset.edition.options import (
    ANY_MODEL,
    HERE,
    ArchitectureOfWeights,
    DeviceOption,
    Folder,
    Form,
    HintsPlace,
    HubOption,
    Json,
    ListRole,
    NewFolder,
    PrecisionOption,
    ReadText,
    Restricted,
    SetOrList,
    show,
)
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError, install_command, one_line, reason, system_error
from cleanset.plumbing.progress import print_notice
from cleanset.plumbing.validation import check_known, join_names
from cleanset.review import commands as review_cli
from cleanset.studies import plan_commands as plan_cli
from cleanset.studies.attacks import commands as attacks_cli
from cleanset.studies.contest import commands as contest_cli
from cleanset.studies.realness import commands as study_cli
from cleanset.studies.robustness import commands as robustness_cli
from cleanset.studies.training import commands as training_cli

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cleanset.classes import ClassTable
    from cleanset.edition.models import Models
    from cleanset.review.renamed import RenamedClasses

STAGES = {
    "preprocess": False, "score": True, "intersect": False, "select": True, "crops": False, "score_crops": True,
    "review_apply": True, "export": True, "count": False, "report": False,
}  # fmt: skip
"""The stages of an edition's dvc.yaml, in its order, and whether each is of one model."""

PANELS = {
    "Get a finished set": ("published", "fetch", "look", "rebuild", "verify", "cite"),
    "Measure models": ("evaluate", "compare", "selection"),
    "Know the work before": ("plan",),
    "Look at labels": ("labels",),
    "Make an edition": ("tutorial", "edition", "models", "stage", "status", "doctor"),
    "Review images": ("review", "hints", "agreement", "audit"),
    "Release a set": ("publish", "pack", "arrays", "diff", "digests"),
    "Papers": ("reproduce",),
    "Studies of finished sets": ("robustness", "attacks", "contest", "training", "study"),
    "Development of cleanset itself": ("pipelines",),
}
"""The commands by task, in the order of `cleanset --help`."""


ValidationImages = Annotated[
    Path, typer.Option(help="Your ImageNet validation images: the tar, or a folder of any layout.")
]
HintsForm = StrEnum("HintsForm", ["csv"])


class _Commands(typer.core.TyperGroup):
    """The commands; the name of a stage is one, too."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the arguments name, and those left for it."""
        if args[:1] == ["plan"] and plan_cli.is_of_command(args[1:]):
            return "plan", typer.main.get_command(plan_cli.app), args[1:]
        # pipelines, locks and people call a stage by its name alone
        return super().resolve_command(ctx, ["stage", *args] if args and args[0] in STAGES else args)

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


@app.command("stage")
def run_stage(
    name: Annotated[str, typer.Argument(help=f"{', '.join(STAGES)}.")],
    model: Annotated[str | None, typer.Option(help="Role of the model in params.yaml, such as standard.")] = None,
    edition: Folder = HERE,
) -> None:
    """Run one stage of dvc.yaml, as dvc repro does; cleanset NAME is the same."""
    from cleanset.edition.paths import without_abandoned

    check_known("stage", name, STAGES)
    if STAGES[name] and model is None:
        raise CleansetError(f"stage {name}: no --model; name the role of one in params.yaml")
    if not STAGES[name] and model is not None:
        raise CleansetError(f"stage {name}: --model {model}, but the stage is of all models: leave the option out")
    stage = import_module(f"cleanset.stages.{name}")
    # a killed run leaves files that no other process removes
    stage.run(without_abandoned(Edition(edition)), *([model] if model is not None else []))


@app.command("plan")
def print_plan(
    folder: Annotated[
        Path,
        typer.Argument(
            help="Folder of an edition, or of a study of robustness, attacks or training.", show_default="this folder"
        ),
    ] = HERE,
    grid: Annotated[str | None, typer.Option(help="Of a study of training: a grid of its params.yaml.")] = None,
    measure: plan_cli.Measure = False,
    budget_hours: plan_cli.BudgetHours = None,
    start: Annotated[
        bool,
        typer.Option("--start", help="Run what is needed: trainings with cleanset training train, then dvc repro."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Count what an edition or a study computes before it starts: images, passes, bytes.

    What is finished, and what DVC finds up to date, is not counted. Hours are
    by what is finished already. Nothing is written or downloaded without
    --measure or --start.

    Of another long command: cleanset plan COMMAND, with its arguments, where
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
    found = plan_cli.print_plan(plans.counting(folder, grid), is_measured=is_measured, as_json=as_json)
    check_budget(found, budget)
    if start:
        plans.start(kind, folder, found, grid)


@app.command("tutorial")
def write_tutorial(
    folder: Annotated[Path, typer.Argument(help="A new or empty folder.", show_default=False)],
) -> None:
    """Write the tutorial's notebook, with the photographs and networks that it needs.

    The photographs are drawings, 40 of each of 8 things. Nothing is downloaded.
    """
    from cleanset import tutorial

    photographs = tutorial.write_tutorial(folder)
    classes = {name.partition("/")[0] for name in photographs}
    typer.echo(f"{folder}: {len(photographs)} photographs of {len(classes)} classes; run there")
    typer.echo(f"jupyter lab {tutorial.NOTEBOOK}")
    if find_spec("jupyterlab") is None:
        typer.echo(f"JupyterLab is not installed here: {install_command('tutorial')}")


@app.command("edition")
def make_edition(
    folder: Annotated[
        Path, typer.Argument(help="A new or empty folder; with --accept an existing edition.", show_default=False)
    ] = HERE,
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="ROLE=timm:NAME, ROLE=torchvision:NAME.WEIGHTS, ROLE=robustbench:THREAT/NAME or "
            "ROLE=module:MODULE:CALLABLE, or ROLE=lists:FILE/NAME or ROLE=scores:FILE/NAME of a file; repeat it for "
            "each. Without it: the models of the ImageNet edition, or of the scores, or a random order without a "
            "model. NAME=random:0 names a set without a model."
        ),
    ] = None,
    images: Annotated[
        Path | None, typer.Option(help="A folder of your own images: in it a folder for each class, or see --labels.")
    ] = None,
    labels: Annotated[Path | None, typer.Option(help="A CSV of file, class and perhaps group, of your images.")] = None,
    names: Annotated[Path | None, typer.Option(help="A CSV of class and name.")] = None,
    classes_are_folders: Annotated[
        bool,
        typer.Option(
            "--classes-are-folders", help="The folders are classes even where their names mean splits: train, test."
        ),
    ] = False,
    scores: Annotated[
        Path | None,
        typer.Option(
            help="A CSV of file, perhaps model, and the probability of each class, or class and confidence of the "
            "first: instead of running models on your images."
        ),
    ] = None,
    images_per_class: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER|all",
            help="Images of a class in a full set: a number, by default 3, or all that qualify.",
            show_default=False,
        ),
    ] = None,
    card: Annotated[
        Path | None, typer.Option(help="A card.yaml: facts about your images for card and catalogues.")
    ] = None,
    reviews: Annotated[
        Path | None,
        typer.Option(help="The folder of an older edition: its verdicts hold where image and box are unchanged."),
    ] = None,
    accept: Annotated[
        bool,
        typer.Option(
            "--accept",
            help="Pin the images of an edition of your own as they are now, perhaps with new --scores, --labels or "
            "--names, or a --card.",
        ),
    ] = False,
    renamed: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OLD=NEW",
            help="With --accept or --reviews: a class that has another name now, whose verdicts hold; repeat it for "
            "each. OLD= for a class that is gone.",
        ),
    ] = None,
    git: Annotated[
        bool | None,
        typer.Option(
            "--git/--no-git", help="Make it a git repository, where there is none around it; without it, you are asked."
        ),
    ] = None,
    remote: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="The DVC remote that its sets are read from, such as https://host/dvc, s3://bucket/dvc or a folder; "
            "also of an existing edition.",
        ),
    ] = None,
) -> None:
    """Make a new edition: a folder with its own params, pipeline and reviews.

    With --images an edition of your own images, without ImageNet's.
    Their digests are in images.sha256: after a change, --accept lists
    everything that no longer applies, and writes it anew.
    """
    new_names = _new_names(renamed or [], apply=accept or None not in (images, reviews))
    others = (model, images, labels, names, scores, images_per_class, card, reviews, accept, git, classes_are_folders)
    address = _checked_remote(remote)
    if address is not None and not any(others) and Edition(folder).params_yaml.is_file():
        _set_remote(folder, address)
        return
    if accept:
        from cleanset.review import accepted

        if any((model, images, images_per_class, reviews, classes_are_folders, remote)) or git is not None:
            raise CleansetError(
                "edition --accept: goes with a folder, --labels, --names, --scores, --card and --renamed alone; leave "
                "others out"
            )
        given = accepted.NewTables(labels=labels, names=names)
        typer.echo(accepted.accept(Edition(folder), scores, card, given, new_names))
        return
    from cleanset.edition.create import check_folder, check_none_empty, make_edition, make_own_edition
    from cleanset.edition.models import models_from_texts
    from cleanset.edition.params import images_per_class_from_text
    from cleanset.scoring.copied_modules import said_of_modules, with_modules

    per_class = None if images_per_class is None else images_per_class_from_text(images_per_class)
    models, modules = with_modules(models_from_texts(model or []), Path())
    check_folder(folder)
    with_git = _begins_git(folder, git)
    old = None
    carried_to = None
    if reviews is not None:
        from cleanset.review import carried

        # first of all: reviews that cannot be read must not leave a new edition behind
        old = carried.read_old_reviews(reviews)
    tables = {"labels": labels, "names": names, "scores": scores}
    if images is not None:
        from cleanset.dataset.duplicate_search import search
        from cleanset.dataset.duplicates import DUPLICATES
        from cleanset.dataset.folder import read_images
        from cleanset.dataset.pinned import digests_of
        from cleanset.edition.about import read_about
        from cleanset.review.carried import NewImages
        from cleanset.scoring.brought import models_of

        found = read_images(images, labels, names, classes_are_folders=classes_are_folders)
        about = read_about(card) if card else None
        models = models or models_of(scores, found.labels, found.classes)
        digests = digests_of(found.locations)
        check_none_empty(found)
        duplicates = search(found, digests, refused=f"{folder.resolve()}_")
        carried_to = NewImages(found, digests, new_names)
        carried_to.check(old)
        make_own_edition(
            folder,
            images,
            found,
            models,
            tables=tables,
            digests=digests,
            about=about,
            images_per_class=per_class,
            modules=modules,
            with_git=with_git,
            remote=address,
        )
        duplicates.write(folder / DUPLICATES)
        counts = f"{len(found.locations):,} images of {len(found.classes):,} classes"
        _print_order(models, found.classes)
        typer.echo(f"{folder}: {counts} ({join_names(found.classes.keys)}); run there")
    elif any((*tables.values(), card)):
        raise CleansetError("edition: --labels, --names, --scores and --card are of your own images; expected --images")
    else:
        if models:
            from cleanset.scoring import ensemble

            ensemble.check_known(models)
        make_edition(
            folder,
            models or None,
            images_per_class=per_class,
            modules=modules,
            with_git=with_git,
            remote=address,
        )
        typer.echo(f"{folder}: put the archives into {folder / 'data' / 'raw'} (see params.yaml), then run there")
        typer.echo("cleanset models --pin")
    _print_next(folder, said_of_modules(models, modules), own_images=images is not None)
    _print_git(folder, begun=with_git)
    if old is not None:
        typer.echo(carried.carry_over(old, Edition(folder), carried_to))


def _checked_remote(remote: str | None) -> str | None:
    """The address of --remote, if it is given."""
    from cleanset.edition.remote import check_remote

    return None if remote is None else check_remote(remote)


def _set_remote(folder: Path, address: str) -> None:
    """Give an existing edition a remote, and print the changed files."""
    from cleanset.edition.remote import set_remote

    for path in set_remote(folder, address):
        typer.echo(f"{path}: the remote is {address}")


def _print_next(folder: Path, notes: "Iterable[str]", *, own_images: bool) -> None:
    """Print what to run in a new edition, how many images a set of it has, and notes."""
    from cleanset.edition.params import read_params

    typer.echo("dvc repro")
    if find_spec("dvc") is None:
        typer.echo(f"DVC is not installed here: {install_command('build')}")
    if own_images:
        count = read_params(folder).export.images_per_class
        kept = "all images of a class that qualify" if count == "all" else f"at most {count} images of a class"
        typer.echo(
            f"A set has {kept} (export.images_per_class in params.yaml), and none before a review: cleanset review."
        )
    for line in notes:
        typer.echo(line)


def _print_git(folder: Path, *, begun: bool) -> None:
    """Print how git keeps a new edition, or that it does not; nothing in a repository that was there before."""
    from cleanset.edition.repository import git_root, owner_problem

    if begun:
        typer.echo("A new git repository: git add --all && git commit")
    elif git_root(folder) is None:
        typer.echo(f"{folder} is in no git repository, which would keep its history: git init && cleanset doctor")
    elif problem := owner_problem(folder):
        typer.echo(problem, err=True)


def _begins_git(folder: Path, wanted: bool | None) -> bool:
    """Whether to make a new edition a git repository; asked on a terminal, where nobody has said so."""
    from cleanset.edition.repository import git_root

    if git_root(folder) is not None:
        return False
    if wanted is not None or which("git") is None or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return bool(wanted)
    return typer.confirm(f"{folder}: in no git repository, which would keep its history. Begin one (git init)?", True)


def _new_names(answers: list[str], *, apply: bool) -> "RenamedClasses":
    """The answers of --renamed. Raises CleansetError unless they `apply`, or are none."""
    from cleanset.review.renamed import parse_renamed

    if answers and not apply:
        raise CleansetError(
            "edition: --renamed is of the verdicts on your own images; expected --accept, or --images and --reviews"
        )
    return parse_renamed(answers)


def _print_order(models: "Models", classes: "ClassTable") -> None:
    """State the order of the classes where a network meets class names that have numbers in another order."""
    from cleanset.evaluation.class_order import order_statement

    order = order_statement(classes)
    if order and any(not model.is_list for model in models.values()):
        typer.echo(order)


@app.command()
def published(
    images: ValidationImages,
    out: NewFolder,
    model: Annotated[
        str, typer.Option(help="norm_robust, whose set was published, standard or corruption_robust.")
    ] = "norm_robust",
    unreviewed: Annotated[
        str, typer.Option(metavar="pending|clean", help="clean: fill up with images that nobody has reviewed.")
    ] = "pending",
    reviews: Annotated[
        list[Path] | None,
        typer.Option(help="A folder of further reviewers, for example with crop boxes; repeat it for each."),
    ] = None,
    digests: Annotated[
        Path | None,
        typer.Option(help="A table of cleanset digests, to verify every image.", show_default="the package's"),
    ] = None,
    labels_in: Annotated[
        Path | None,
        typer.Option(
            "--labels",
            help="Say of each image which studies deny its class, by their files in this folder "
            "(cleanset labels --list).",
        ),
    ] = None,
) -> None:
    """Write the published set of SCOOTER, from your own copy of ImageNet.

    Compares the tar with the MD5 of the official archive. The images of a
    folder are verified by a table of digests, if given.
    """
    from cleanset.sets.published import image_set as tool
    from cleanset.sets.published.lists import PublishedChoice

    choice = PublishedChoice(model, unreviewed, tuple(reviews or ()), labels_in)
    typer.echo(tool.render(tool.run(choice, images, out, digests)))


@app.command()
def selection(
    name: Annotated[str, typer.Argument(help="robustbench: the 5,000 images of its leaderboards of ImageNet.")],
    images: ValidationImages,
    out: NewFolder,
    digests: Annotated[
        Path | None,
        typer.Option(help="A table of cleanset digests, to verify every image.", show_default="the package's"),
    ] = None,
) -> None:
    """Write a benchmark's selection of validation images, a folder per class.

    Compares the tar with the MD5 of the official archive, as published does.
    Classes are the labels of ILSVRC2012.
    """
    from cleanset.sets import selections

    typer.echo(selections.run(name, images, out, digests))


@app.command()
def look(
    place: Annotated[
        str, typer.Argument(metavar="SET", help="The folder of a set or of an edition with one, or a tar.")
    ],
    out: Annotated[Path | None, typer.Option(help="A new or empty folder; without it SET-look.")] = None,
) -> None:
    """Write one page of a finished set: its images by class, tier, crop and review, with a search.

    It opens without a server. Every image is checked against the manifest.
    """
    from cleanset.report import look as tool

    typer.echo(tool.write(place, out))


@app.command()
def hints(
    place: HintsPlace,
    out: Annotated[Path | None, typer.Option(help="Write one page with the images: a new .html file.")] = None,
    form: Annotated[HintsForm | None, typer.Option("--format", help="Print all hints as CSV.")] = None,
    most: Annotated[int, typer.Option(min=1, help="Number of images on the page, the most severe.")] = 500,
    text: ReadText = None,
) -> None:
    """Print the hints of the review page at any images: borders, text, blur, copies and others.

    Each with its measure and limit, the most severe first. A hint decides
    nothing.
    """
    from cleanset.report import hints as tool

    found = tool.write(place, out, most=most, text=text)
    tool.print_notices(found)
    show(tool.as_csv(found) if form else tool.as_table(found))
    if out is not None:
        print_notice(f"{out}: open it in a browser")


@app.command()
def digests(
    images: Annotated[Path, typer.Option(help="ILSVRC2012_img_val.tar.")],
    out: Annotated[Path, typer.Option(help="A new file, such as digests.csv.")],
) -> None:
    """Write the SHA-256 of every image of the official archive.

    With the table, cleanset published verifies folders image by image.
    """
    from cleanset.sets.published import source_images as tool

    typer.echo(tool.run(images, out))


@app.command()
def cite(
    form: Annotated[str, typer.Option("--format", metavar="bibtex|text", help="BibTeX, or plain text.")] = "bibtex",
) -> None:
    """Print the citations: cleanset, SCOOTER, ImageNet, the reassessed labels."""
    from cleanset.sets import description as citations

    typer.echo(citations.render(form))


@app.command()
def arrays(
    out: Annotated[Path, typer.Argument(help="A new or empty folder.")],
    preprocessing: Annotated[
        str | None,
        typer.Option(help="keras256, Res256Crop224, or the role of a model in params.yaml, for the model's."),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Only the finished set of this model; preprocessed for it unless told otherwise.")
    ] = None,
    edition: Folder = HERE,
) -> None:
    """Write preprocessed images and their labels as .npy files: all images, or a finished set's."""
    from cleanset.sets import arrays as tool

    tool.run(Edition(edition), out, preprocessing, model)


@app.command()
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
            "beside it.",
        ),
    ] = None,
    precision: PrecisionOption = None,
    device: DeviceOption = None,
    out: Annotated[
        Path | None, typer.Option(help="Write predictions and results here, and continue an interrupted run.")
    ] = None,
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
    from cleanset.evaluation.request import Request
    from cleanset.measure import command, measured_models, rendering
    from cleanset.plumbing.file_locks import only_run

    wanted = Request(
        name=images_of,
        models=model or [],
        architecture=architecture,
        role=role,
        precision=precision,
        device=device,
        out=out,
        predictions=predictions or [],
        report=report,
        hub=hub,
        restricted=restricted,
        labels=labels_in,
        factors=factors,
    )
    # what a user's module prints must not stand within the results
    with redirect_stdout(sys.stderr), only_run(out):
        measured, rows = command.run(Edition(edition), wanted)
    if form is not None:
        table = rendering.leaderboard_for_paper if factors is None else rendering.factors_for_paper
        show(table(measured, rows).in_form(form))
    else:
        show(measured_models.results_json(measured, rows) if as_json else rendering.as_text(measured, rows))


@app.command()
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
        list[str] | None, typer.Option(help="A study by its name; repeat it for each. Without it all in the folder.")
    ] = None,
    role: Annotated[str | None, typer.Option(help="With a list: only the rows of this model.")] = None,
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

    from cleanset.measure import labels as tool

    if listed:
        typer.echo(tool.sources_text())
        return
    report = tool.run(images_of, Edition(edition), sources, source or (), role)
    if out is not None:
        tool.write_images(report, out)
    show(json.dumps(tool.as_json(report), indent=2) if as_json else tool.as_text(report))


@app.command()
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

    Of results, one table of the comparable ones; for the rest the first field
    of the comparability card that differs. Exit code 1 if any differ.

    Of two score tables or exports, their differences; exit code 1 if they
    differ.
    """
    from cleanset.measure.compare import compared_tables, result_files, results

    if result_files.are_results(paths):
        if edition or model:
            raise CleansetError("compare: --edition and --model go with score tables; these are results of models")
        compared = results.run(paths)
        text = compared_tables.as_json(compared) if as_json else compared_tables.as_text(compared)
        show(compared_tables.ranking_for_paper(compared).in_form(form) if form else text)
        raise typer.Exit(1 if compared.left_out else 0)
    if form is not None:
        raise CleansetError(f"compare --format: goes with results of {result_files.COMMANDS}")

    from cleanset.measure.compare import report as tool

    if len(paths) != 2:
        found = "1 path" if len(paths) == 1 else f"{len(paths)} paths"
        raise CleansetError(f"compare: {found}; expected two, or two or more results of models (JSON)")
    result = tool.run(paths[0], paths[1], Edition(edition) if edition else None, role=model, most=most)
    typer.echo(result.render(as_json))
    raise typer.Exit(0 if result.same else 1)


@app.command()
def diff(
    a: Annotated[Path, typer.Argument(help="A release: the folder or tar of a set, or its manifest.csv.")],
    b: Annotated[Path, typer.Argument(help="Another release, such as the next one.")],
    as_json: Json = False,
) -> None:
    """Compare two releases of a set; exit code 1 if they differ.

    Lists the images that were added, removed or cropped anew, by class and
    reason.
    """
    from cleanset.measure.compare import releases

    found = releases.diff(a, b)
    typer.echo(found.render(as_json))
    raise typer.Exit(0 if found.same else 1)


@app.command()
def publish(
    folder: Annotated[
        Path, typer.Argument(help="The folder of an export, such as data/export/standard, or of an edition.")
    ],
    out: Annotated[Path, typer.Argument(help="A new or empty folder.")],
    with_images: Annotated[
        bool, typer.Option("--with-images", help="Include the images; ImageNet's terms say who may have them.")
    ] = False,
    key: Annotated[Path | None, typer.Option(help="Sign it with this SSH key, such as ~/.ssh/id_ed25519.")] = None,
) -> None:
    """Prepare a finished set for a hub or an archive, as a folder and a tar.

    Manifest, card, Croissant, licence, rejected candidates, checksums. Of an
    edition: the sets of all models, with the scores and verdicts that they
    follow from.
    """
    from cleanset.sets import publish as tool

    if Edition(folder).params_yaml.is_file():
        from cleanset.sets import release

        publication = release.run(Edition(folder), out, with_images, key)
    else:
        publication = tool.run(folder, out, with_images, key)
    if publication.word_on_terms:
        typer.echo(publication.word_on_terms, err=True)
    typer.echo(tool.render(publication))


@app.command()
def verify(
    folder: Annotated[
        Path, typer.Argument(help="The folder of an export, such as data/export/standard, or a published one or tar.")
    ],
    decode: Annotated[
        bool, typer.Option("--decode", help="Decode every image, also where its SHA-256 matches.")
    ] = False,
    signature: Annotated[
        Path | None,
        typer.Option(help="Require a signature by this public SSH key, or by one of a file of allowed signers."),
    ] = None,
    expect: Annotated[
        str | None,
        typer.Option(metavar="MODEL@VERSION", help="With --signature: require this release, such as standard@1.0.0."),
    ] = None,
    from_verdicts: Annotated[
        bool,
        typer.Option("--from-verdicts", help="Of an edition's release: recompute its sets from scores and verdicts."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Check a finished set against its manifest; exit code 1 if anything differs.

    Prints a line for each file that is missing, surplus or changed.
    """
    from cleanset.sets import verify as tool

    if from_verdicts:
        # by the program in the release itself, which knows no other option
        from cleanset.sets import release

        if decode or expect or as_json:
            raise CleansetError("--from-verdicts: with --decode, --expect or --json; expected --signature at most")
        problems = release.verify(folder, signature)
        typer.echo("\n".join(map(one_line, [*problems, f"{folder}: problems: {len(problems)}"])))
        raise typer.Exit(1 if problems else 0)
    verification = tool.run(folder, decode, signature, expect)
    typer.echo(tool.render(verification, as_json))
    raise typer.Exit(1 if verification.problems else 0)


@app.command()
def fetch(
    url: Annotated[
        str,
        typer.Argument(
            metavar="ADDRESS",
            help="The address of a git repository with an edition, or a release: the HTTPS address of its tar, or a "
            "DOI or record of Zenodo.",
        ),
    ],
    model: Annotated[str, typer.Argument(help="Role, such as standard; not needed where there is one set.")] = "",
    rev: Annotated[str | None, typer.Option(help="A branch, tag or commit.", show_default="its HEAD")] = None,
    folder: Annotated[str, typer.Option(help="The edition inside the repository, such as imagenet.")] = ".",
    out: Annotated[Path | None, typer.Option(help="Copy the set to a new or empty folder.")] = None,
    update: Annotated[bool, typer.Option("--update", help="Resolve the revision to a commit anew.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Check every local file, and repair it.")] = False,
) -> None:
    """Fetch a finished set that a git repository or a release publishes, and check it.

    Keeps it in ~/.cache/cleanset (or CLEANSET_CACHE) and prints where. If
    interrupted, run it again: only missing files are fetched. Runs nothing
    of it (docs/security.md).
    """
    from cleanset.sets.fetching import fetch as tool

    typer.echo(tool.render(tool.run(url, model, rev, folder, out=out, update=update, force=force)))


@app.command()
def rebuild(
    manifest: Annotated[Path, typer.Option(help="The manifest of the set (or the folder with it).")],
    images: Annotated[
        Path,
        typer.Option(
            help="The images that the set was made of, a tar or a folder of any layout: your ImageNet validation "
            "images, or others, which may have new names."
        ),
    ],
    out: NewFolder,
) -> None:
    """Rebuild a set from its manifest and your own copy of the images.

    Writes all images, or nothing but a line for each mismatch. Runs nothing
    of the set (docs/security.md).
    """
    from cleanset.sets import rebuild as tool

    result = tool.run(manifest, images, out)
    typer.echo(tool.render(result))
    raise typer.Exit(1 if result.problems else 0)


@app.command()
def pack(
    folder: Annotated[Path, typer.Argument(help="The folder of an export, such as data/export/standard.")],
    out: NewFolder,
    shard_size: Annotated[int, typer.Option(min=1, help="Images per shard.")] = 1000,
) -> None:
    """Pack a finished set into WebDataset shards."""
    from cleanset.sets import archive

    typer.echo(archive.pack(folder, out, shard_size))


@app.command()
def reproduce(
    paper: Annotated[
        str | None,
        typer.Argument(help="scooter, imagenet-c, ximagenet-12 or others.", show_default="list them"),
    ] = None,
    files: Annotated[
        Path | None,
        typer.Option(help="Folder of files that others published; without one, the last lines name what is missing."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Show all numbers, not only those that differ.")] = False,
    form: Form = None,
) -> None:
    """Compute the printed numbers of a paper from what was published with it.

    Each number stands beside the printed one with their difference, and what
    it is computed from; the last lines say what cannot be computed, and why. --format prints all numbers as
    a table for a paper's appendix. Exit code 0, whatever differs.
    """
    from rich.console import Console

    from cleanset.reproduce import papers

    if paper is None:
        for name, compute in papers.PAPERS.items():
            found = compute(files)
            Console().print(f"[bold]{name}[/]  {found.title}\n  {papers.summary_of(found)}", highlight=False)
        return
    check_known("paper", paper, papers.PAPERS)
    found = papers.PAPERS[paper](files)
    if form is not None:
        show(papers.table_of(found).in_form(form))
        return
    Console().print(papers.in_terminal(found, every=every), highlight=False)


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
        typer.Option("--robustbench", help="List the models of RobustBench that can be named, of THREAT or of all."),
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

    from cleanset.studies.robustness import trained_models

    further = trained_models.further_members(here)
    if as_json:
        typer.echo(ensemble.as_json(listed, trained_models.as_objects(further)))
        return
    Console().print(ensemble.as_table(listed))
    if further:
        Console().print(trained_models.as_table(further))


@app.command()
def status(edition: Folder = HERE) -> None:
    """Compare images, scores, reviews, dvc.lock and sets with what an edition pins.

    A line for each change, with the command that takes it. Only files
    whose size, time or inode has changed are read. Exit code 1 for
    changes that dvc repro does not notice: cleanset status && dvc repro
    """
    from cleanset import status as tool

    found = tool.run(Edition(edition))
    typer.echo(tool.render(found))
    raise typer.Exit(1 if found.unseen else 0)


@app.command()
def doctor(
    edition: Annotated[
        # links to the code that are missing are a finding here, not mended beforehand
        Path, typer.Option("--edition", help="Folder with params.yaml.", show_default="this folder")
    ] = HERE,
    quick: Annotated[bool, typer.Option("--quick", help="Only restore broken files of DVC; hash nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Repair a broken dvc.lock, and find damaged outputs and cached files.

    Restores a dvc.lock that a kill left empty or cut off; a merge conflict
    is left to you. In a clone links the code that the stages name, and tells
    DVC whether the edition is in a git repository. Then hashes every output
    in dvc.lock, in the folder and in DVC's cache, and prints a line with
    the repair for each that has changed: exit code 1. Runs nothing of the
    edition (docs/security.md).
    """
    from cleanset.edition import doctor as tool

    findings = tool.examine(edition, quick=quick)
    text = tool.as_json(findings) if as_json else tool.as_text(findings)
    if text:
        typer.echo(text)
    raise typer.Exit(1 if findings.rotten else 0)


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
    from cleanset.review import status as progress_of_reviews
    from cleanset.sets.made_from import outdated_sets

    review_cli.check_reviewers(reviewers or [])
    found = progress_of_reviews.run(Edition(edition))
    of_team = None
    if reviewers:
        from cleanset.review.page import team as progress

        of_team = progress.progress_of_team(Edition(edition), reviewers)
    lines = outdated_sets(Edition(edition))
    if as_json:
        print(progress_of_reviews.as_json(found, progress.as_json(of_team) if of_team else None, outdated=lines))
        return
    show(progress_of_reviews.as_table(found))
    if of_team:
        show(progress.as_table(of_team))
    for line in lines:
        typer.echo(line)


@app.command()
def agreement(
    edition: Folder = HERE,
    as_json: Json = False,
) -> None:
    """Show the reviewers' agreement: kappa, and the images on which they differ."""
    from cleanset.review import agreement_report

    report = agreement_report.run_agreement(Edition(edition))
    show(agreement_report.agreement_as_json(report) if as_json else agreement_report.agreement_table(report))


@app.command()
def audit(
    model: Annotated[str | None, typer.Option(help="Only the audit of this model's set.")] = None,
    edition: Folder = HERE,
    as_json: Json = False,
) -> None:
    """Show the bounds that follow from audits: how much of a set is flawed at most."""
    from cleanset.review import audit_report

    found = audit_report.run_audit(Edition(edition), model)
    show(audit_report.audit_as_json(found) if as_json else audit_report.as_text(found))


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


app.add_typer(review_cli.app, name="review")
robustness_cli.stages.add_typer(attacks_cli.app)
app.add_typer(robustness_cli.app, name="robustness")
app.add_typer(attacks_cli.tools, name="attacks")
app.add_typer(contest_cli.app, name="contest")
app.add_typer(training_cli.app, name="training")
app.add_typer(study_cli.app, name="study")


def put_into_panels() -> None:
    """Give each command the panel of PANELS that has it."""
    panel_of = {name: panel for panel, names in PANELS.items() for name in names}
    for command in app.registered_commands:
        command.rich_help_panel = panel_of.get(str(command.name or getattr(command.callback, "__name__", "")))
    for group in app.registered_groups:
        group.rich_help_panel = panel_of.get(str(group.name))


put_into_panels()


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
"""The extras that the commands of a study need beside build or evaluate."""
OF_EXTRAS = (
    "evaluate: any torch and timm; build: libraries of the stages; review: the review page; "
    "robustness, attacks and training: studies"
)


def extra_of(module: str, command: str = "") -> str:
    """The extras that bring all libraries of a command; `module` is the import name of a missing one.

    `command`: its words, of which those after the subcommand do not matter. A plan needs what the planned one needs.
    """
    words = command.removeprefix("plan ").split()
    others = "evaluate" if "evaluate" in words else "build"
    if words and words[0] in EXTRAS_OF_STUDIES:
        return f"{others},{EXTRAS_OF_STUDIES[words[0]]}"
    return next((extra for extra, modules in EXTRAS.items() if module.partition(".")[0] in modules), others)


EXIT_OF_CLOSED_PIPE = 141
"""The exit code of programs in a shell whose reader has closed the pipe, as `head` does."""


plan_cli.add_plan(plan_cli.app, evaluate, plan_cli.counting_evaluate, "evaluate")
plan_cli.add_plan(plan_cli.app, hints, plan_cli.counting_hints, "hints")


def main() -> None:
    """Run the command line; a problem that a user can fix becomes one line and exit code 1."""
    for stream in (sys.stdout, sys.stderr):
        # a name of a file may hold what the terminal's encoding lacks, or bytes that are no text
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
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
