"""The commands that make an edition and run its stages. Each imports its libraries only when it runs."""

import sys
from contextlib import nullcontext
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Annotated

import typer

from cleanset.edition.options import HERE, Folder, FolderAsItIs, Json
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError, install_command
from cleanset.plumbing.machine import without_garbage_collection
from cleanset.plumbing.validation import check_known, join_names
from cleanset.statistics.formats import counted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cleanset.classes import ClassTable
    from cleanset.dataset.duplicate_search import FoundDuplicates
    from cleanset.edition.models import Models
    from cleanset.review.carried import NewImages, OldReviews
    from cleanset.review.renamed import RenamedClasses

commands = typer.Typer()

STAGES = {
    "preprocess": False, "score": True, "intersect": False, "select": True, "crops": False, "score_crops": True,
    "review_apply": True, "export": True, "count": False, "report": False,
}  # fmt: skip
"""The stages of an edition's dvc.yaml, in its order, and whether each is of one model."""

DECODING = ("preprocess", "score", "score_crops")
"""Those that decode all images or run models; the others make objects that last to their end."""


@commands.command("stage")
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
    with nullcontext() if name in DECODING else without_garbage_collection():
        stage = import_module(f"cleanset.stages.{name}")
        # a killed run leaves files that no other process removes
        stage.run(without_abandoned(Edition(edition)), *([model] if model is not None else []))


@commands.command("tutorial")
def write_tutorial(
    folder: Annotated[Path, typer.Argument(help="A new or empty folder.", show_default=False)],
) -> None:
    """Write the tutorial's notebook, with the photographs and networks that it needs.

    The photographs are drawings, 40 of each of 8 things. Nothing is downloaded.
    """
    from cleanset import tutorial

    photographs = tutorial.write_tutorial(folder)
    classes = {name.partition("/")[0] for name in photographs}
    typer.echo(f"{folder}: {counted(len(photographs), 'photograph')} of {counted(len(classes), 'class')}; run there")
    typer.echo(f"jupyter lab {tutorial.NOTEBOOK}")
    if find_spec("jupyterlab") is None:
        typer.echo(f"JupyterLab is not installed here: {install_command('tutorial')}")


@dataclass(kw_only=True)
class _Contents:
    """What goes into a new edition before its folder is put in place, so that a kill leaves none with some verdicts."""

    old: "OldReviews | None" = None
    """The reviews of an older edition."""
    images: "NewImages | None" = None
    duplicates: "FoundDuplicates | None" = None
    summary: str = ""
    """The verdicts that hold, once they are written."""

    def write(self, folder: Path) -> None:
        """Write it into the folder of the edition."""
        from cleanset.dataset.duplicates import DUPLICATES
        from cleanset.review.carried import carry_over

        if self.duplicates is not None:
            self.duplicates.write(folder / DUPLICATES)
        if self.old is not None:
            self.summary = carry_over(self.old, Edition(folder), self.images)


@commands.command("edition")
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
    labels: Annotated[
        Path | None, typer.Option(help="A CSV of your images: columns file and class, optionally group.")
    ] = None,
    names: Annotated[Path | None, typer.Option(help="A CSV of class and name.")] = None,
    classes_are_folders: Annotated[
        bool,
        typer.Option(
            "--classes-are-folders", help="Take folders as classes even if they are named like splits (train, test)."
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
            help="Pin the current images of your own edition, perhaps with new --scores, --labels or "
            "--names, or a --card.",
        ),
    ] = False,
    renamed: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OLD=NEW",
            help="With --accept or --reviews: keep the verdicts of a class that was renamed; repeat it for each. OLD= "
            "for a class that was removed.",
        ),
    ] = None,
    git: Annotated[
        bool | None,
        typer.Option(
            "--git/--no-git",
            help="Make it a git repository unless it is inside one; without this option, you are asked.",
        ),
    ] = None,
    remote: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="The DVC remote from which its sets are read, such as https://host/dvc, s3://bucket/dvc or a folder; "
            "also for an existing edition.",
        ),
    ] = None,
) -> None:
    """Make a new edition: a folder with its own params, pipeline and reviews.

    With --images an edition of your own images, without ImageNet's.
    Their digests are in images.sha256: after a change, --accept lists
    everything that no longer applies, and writes it again.
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
    contents = _Contents()
    if reviews is not None:
        from cleanset.review.carried import read_old_reviews

        # first of all: reviews that cannot be read must not leave a new edition behind
        contents.old = read_old_reviews(reviews)
    tables = {"labels": labels, "names": names, "scores": scores}
    if images is not None:
        from cleanset.dataset.duplicate_search import search
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
        contents.duplicates = search(found, digests, refused=f"{folder.resolve()}_")
        contents.images = NewImages(found, digests, new_names)
        contents.images.check(contents.old)
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
            fill=contents.write,
        )
        counts = f"{counted(len(found.locations), 'image')} of {counted(len(found.classes), 'class')}"
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
            fill=contents.write,
        )
        typer.echo(f"{folder}: put the archives into {folder / 'data' / 'raw'} (see params.yaml), then run there")
        typer.echo("cleanset models --pin")
    _print_next(folder, said_of_modules(models, modules), own_images=images is not None)
    _print_git(folder, begun=with_git)
    if contents.summary:
        typer.echo(contents.summary)


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
        typer.echo(f"{folder} is not in a git repository, so its history is not kept: git init && cleanset doctor")
    elif problem := owner_problem(folder):
        typer.echo(problem, err=True)


def _begins_git(folder: Path, wanted: bool | None) -> bool:
    """Whether to make a new edition a git repository; asked on a terminal, if nobody has said so."""
    from cleanset.edition.repository import git_root

    if git_root(folder) is not None:
        return False
    if wanted is not None or which("git") is None or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return bool(wanted)
    return typer.confirm(f"{folder}: not in a git repository, so its history is not kept. Create one (git init)?", True)


def _new_names(answers: list[str], *, apply: bool) -> "RenamedClasses":
    """The answers of --renamed. Raises CleansetError unless they `apply` or are empty."""
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


@commands.command()
def status(edition: Folder = HERE) -> None:
    """Compare images, scores, reviews, dvc.lock and sets with what an edition pins.

    Prints a line for each change, with the command that accepts it. Only files
    whose size, times or inode have changed are read. Exit code 1 for
    changes that dvc repro does not notice: cleanset status && dvc repro
    """
    from cleanset import status as tool

    found = tool.run(Edition(edition))
    typer.echo(tool.render(found))
    raise typer.Exit(1 if found.unseen else 0)


@commands.command()
def doctor(
    # links to the code that are missing are a finding here, not mended beforehand
    edition: FolderAsItIs = HERE,
    quick: Annotated[bool, typer.Option("--quick", help="Only restore broken files of DVC; hash nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Repair a broken dvc.lock, and find damaged outputs and cached files.

    Restores a dvc.lock that a kill left empty or cut off; a merge conflict
    is left to you. In a clone, links the code that the stages name, and tells
    DVC whether the edition is in a git repository. Then hashes every output
    in dvc.lock, in the folder and in DVC's cache, and prints a line with
    the repair for each that has changed: exit code 1. Runs nothing of the
    edition (cleanset docs security).
    """
    from cleanset.edition import doctor as tool

    findings = tool.examine(edition, quick=quick)
    text = tool.as_json(findings) if as_json else tool.as_text(findings)
    if text:
        typer.echo(text)
    raise typer.Exit(1 if findings.rotten else 0)
