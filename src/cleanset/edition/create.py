"""Making a new edition: a folder that is a DVC project of its own, and runs this checkout's code or the installed one.

The stages name files of the code below `root` of params.yaml. An installed package has no folder `src` around it, so
there the edition gets a link of that name to it, which git ignores: dvc.lock is the same wherever it is installed.
"""

import os
import re
import shutil
from pathlib import Path

from cleanset.edition.git import GitError, run_git
from cleanset.edition.models import Models, with_files_of, with_lists, with_models
from cleanset.edition.params import read_params
from cleanset.files import new_folder, write_text

SOURCE = Path(__file__).resolve().parents[2]
"""The folder that the package lies in: `src` of a checkout, or where it is installed."""
CHECKOUT = SOURCE.parent
TEMPLATE = Path(__file__).parent / "template"
"""The ImageNet edition's files: a link to `imagenet` in a checkout, copies in an installed package."""
IS_INSTALLED = SOURCE.name != "src" or not TEMPLATE.is_symlink()
STUDY, ATTACKS, CONTEST, TRAINING = (Path("studies", name) for name in ("robustness", "attacks", "contest", "training"))
PROJECTS = STUDY, ATTACKS, CONTEST, TRAINING
COPIED = (
    "raw.md5", ".dvcignore", ".dvc/.gitignore", "data/README.md",
    *(
        (project / name).as_posix()
        for project in PROJECTS
        for name in ("dvc.yaml", ".dvcignore", ".gitignore", ".dvc/.gitignore")
    ),
    (STUDY / ".dvc" / "plots" / "line_per_model.json").as_posix(),
    (TRAINING / ".dvc" / "plots" / "line_per_part.json").as_posix(),
    (TRAINING / "params.yaml").as_posix(),
    *((STUDY / name / "README.md").as_posix() for name in ("masks", "backgrounds", "generated")),
    *((CONTEST / name).as_posix() for name in ("params.yaml", "contest.yaml")),
    *((CONTEST / name / "README.md").as_posix() for name in ("defences", "submissions", "judges", "answers", "board")),
)  # fmt: skip
"""Files that a new edition takes from the ImageNet edition as they are."""
IGNORED = "/data/*\n!/data/README.md\n/report/\nbuild/\ndvc_plots/\n*.partial\n.lock\n" + "/src\n" * IS_INSTALLED
"""The .gitignore of a new edition."""
_SHARED_CACHE = re.compile(r"\[cache\]\n    dir = (?:\.\./)+\.dvc/cache\n")
"""The section of the ImageNet edition's .dvc/config, and its studies', by which they share the checkout's cache."""


def make_edition(folder: Path, models: Models | None = None) -> None:
    """Make `folder` an edition with the ImageNet edition's params, checksums and DVC remote, and with empty reviews.

    In it are its study of robustness, attacks, a contest and trainings, DVC projects of their own.

    `models`: the ensemble, else that of the ImageNet edition. Inside this checkout it shares the checkout's DVC cache.
    Everything is made, or nothing. Raises CleansetError if the folder is not empty.
    """
    params, pipeline = (read(TEMPLATE / name) for name in ("params.yaml", "dvc.yaml"))
    params = re.sub(r"\A#.*\n", "# See docs/curate.md for what to put where.\n", params)
    params = re.sub(r"(?m)^root: .*$", f"root: {root_of(folder)}", params)
    if models is not None:
        models = with_lists(models, folder)
        if any(model.is_list for model in models.values()):
            params = _for_lists(params)
        params, pipeline = with_models(params, models), with_files_of(pipeline, models)
    study = read(TEMPLATE / STUDY / "params.yaml")
    if models is not None:  # what these were trained with is not known, nor which of them is the reference
        study = re.sub(r"(?m)^    trained_on:.*\n(?:      .*\n)*", "    trained_on: {}\n", study)
        study = re.sub(r"(?m)^    reference: (?!alexnet)\w+ +#", "    reference: null               #", study)
    study = re.sub(r"\A#.*\n", "# See docs/robustness.md for what to put where.\n", study)
    attacks = re.sub(r"\A#.*\n", "# See docs/attacks.md.\n", read(TEMPLATE / ATTACKS / "params.yaml"))
    config = dvc_config(folder.resolve())
    with new_folder(folder) as partial:
        for name in ("reviews", "data/raw", ".dvc"):
            (partial / name).mkdir(parents=True)
        for name in COPIED:
            (partial / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(TEMPLATE / name, partial / name)
        write_text(partial / "params.yaml", params)
        write_text(partial / "dvc.yaml", pipeline)
        write_text(partial / ".dvc" / "config", config)
        write_text(partial / STUDY / "params.yaml", study)
        write_text(partial / ATTACKS / "params.yaml", attacks)
        for project in PROJECTS:
            write_text(partial / project / ".dvc" / "config", project_config(config, folder.resolve(), project))
        # git does not keep an empty folder
        write_text(partial / "reviews" / ".gitkeep", "")
        write_text(partial / ".gitignore", IGNORED)
        link_code(partial)


def root_of(folder: Path) -> str:
    """`root` in the params.yaml of a new edition: the path from its folder to the one that holds `src`."""
    return "." if IS_INSTALLED else relative(CHECKOUT, folder)


def link_code(edition: Path) -> None:
    """Link `src` in the folder of an edition to an installed package; within a checkout there is no need."""
    if IS_INSTALLED:
        (edition / "src").symlink_to(SOURCE)


def relink_code(edition: Path) -> list[str]:
    """Make the link to the installed package anew where it is missing or leads nowhere, as after a git clone.

    Returns a line that says so.
    """
    link = edition / "src"
    if not IS_INSTALLED or read_params(edition).root != "." or link.exists():
        return []
    link.unlink(missing_ok=True)
    link_code(edition)
    return [f"{link}: linked to the installed package in {SOURCE}"]


def _for_lists(params: str) -> str:
    """The text of a params.yaml with the values that published lists need (see Params)."""
    params = re.sub(r"(?m)^protocol: .*$", "protocol: as_published", params)
    params = re.sub(r"(?m)^  wrong_after_crop: .*$", "  wrong_after_crop: accept", params)
    params = re.sub(r"(?m)^select: \{candidates: 5, tiers: .*$", "select: {candidates: 5}", params)
    return re.sub(r"(?m)^count:$", "count:\n  accuracy: false", params)


def relative(path: Path, folder: Path) -> str:
    """The path from a folder, which need not exist yet, to another."""
    return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()


def read(path: Path) -> str:
    """The text of a file of the template."""
    return path.read_text(encoding="utf-8")


def dvc_config(folder: Path) -> str:
    """The `.dvc/config` of an edition in `folder`: what `dvc init` makes, with the remote of the ImageNet edition.

    Outside of any git repository DVC has to be told so; outside of this checkout the edition has its own cache.
    """
    config = read(TEMPLATE / ".dvc" / "config")
    git_root = _git_root(folder)
    if git_root is None:
        config = config.replace("[core]\n", "[core]\n    no_scm = true\n")
    cache = _cache_section(CHECKOUT / ".dvc" / "cache", folder)
    return _SHARED_CACHE.sub(cache if git_root == CHECKOUT else "", config)


def project_config(config: str, folder: Path, project: Path) -> str:
    """The `.dvc/config` of a project in the edition in `folder`, which shares the edition's cache."""
    shared = _SHARED_CACHE.search(config) is not None
    cache = _cache_section((CHECKOUT if shared else folder) / ".dvc" / "cache", folder / project)
    alone, section, remotes = _SHARED_CACHE.sub("", config).partition("['remote")
    return alone + cache + section + remotes


def _cache_section(cache: Path, project: Path) -> str:
    return f"[cache]\n    dir = {Path(os.path.relpath(cache, project / '.dvc')).as_posix()}\n"


def _git_root(folder: Path) -> Path | None:
    """The git repository around a folder, which need not exist yet; None outside of one."""
    there = next(parent for parent in (folder, *folder.parents) if parent.is_dir())
    try:
        return Path(os.fsdecode(run_git(there, "rev-parse", "--show-toplevel")).strip()).resolve()
    except GitError:
        return None
