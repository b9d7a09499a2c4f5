"""Making a new edition: a folder that is a DVC project of its own and runs this checkout's code."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from cleanset.edition.models import Models, with_files_of, with_models
from cleanset.errors import CleansetError
from cleanset.files import new_folder, write_text

CHECKOUT = Path(__file__).resolve().parents[3]
COPIED = ("raw.md5", ".dvcignore", ".dvc/.gitignore", "data/README.md")
"""Files that a new edition takes from the ImageNet edition as they are."""
IGNORED = "/data/*\n!/data/README.md\n/report/\nbuild/\ndvc_plots/\n*.partial\n.lock\n"
"""The .gitignore of a new edition."""
_SHARED_CACHE = "[cache]\n    dir = ../../.dvc/cache\n"
"""The section of the ImageNet edition's .dvc/config by which it shares the checkout's cache."""


def make_edition(folder: Path, models: Models | None = None) -> None:
    """Make `folder` an edition with the ImageNet edition's params, checksums and DVC remote, and with empty reviews.

    `models`: the ensemble, else that of the ImageNet edition. Inside this checkout it shares the checkout's DVC cache.
    Everything is made, or nothing. Raises CleansetError if the folder is not empty or this is not a checkout.
    """
    template = CHECKOUT / "imagenet"
    if not template.is_dir():
        raise CleansetError(f"{CHECKOUT}: no checkout of cleanset; editions are made from one: git clone it")
    root = Path(os.path.relpath(CHECKOUT, folder.resolve())).as_posix()
    params, pipeline = (read(template / name) for name in ("params.yaml", "dvc.yaml"))
    params = re.sub(r"\A#.*\n", "# See docs/curate.md for what to put where.\n", params)
    params = re.sub(r"(?m)^root: .*$", f"root: {root}", params)
    if models is not None:
        params, pipeline = with_models(params, models), with_files_of(pipeline, models)
    config = _dvc_config(read(template / ".dvc" / "config"), folder.resolve())
    with new_folder(folder) as partial:
        for name in ("reviews", "data/raw", ".dvc"):
            (partial / name).mkdir(parents=True)
        for name in COPIED:
            shutil.copyfile(template / name, partial / name)
        write_text(partial / "params.yaml", params)
        write_text(partial / "dvc.yaml", pipeline)
        write_text(partial / ".dvc" / "config", config)
        write_text(partial / "reviews" / ".gitkeep", "")
        write_text(partial / ".gitignore", IGNORED)


def read(path: Path) -> str:
    """The text of a file of this checkout."""
    return path.read_text(encoding="utf-8")


def _dvc_config(config: str, folder: Path) -> str:
    """The `.dvc/config` of an edition in `folder`: what `dvc init` makes, with the remote of the ImageNet edition.

    Outside of any git repository DVC has to be told so; outside of this checkout the edition has its own cache.
    """
    git_root = _git_root(folder)
    if git_root is None:
        config = config.replace("[core]\n", "[core]\n    no_scm = true\n")
    cache = Path(os.path.relpath(CHECKOUT / ".dvc" / "cache", folder / ".dvc")).as_posix()
    return config.replace(_SHARED_CACHE, f"[cache]\n    dir = {cache}\n" if git_root == CHECKOUT else "")


def _git_root(folder: Path) -> Path | None:
    """The git repository that a folder, which may not be there yet, lies or would lie in."""
    there = next(parent for parent in (folder, *folder.parents) if parent.is_dir())
    done = subprocess.run(
        ["git", "-C", str(there), "rev-parse", "--show-toplevel"], capture_output=True, text=True, check=False
    )
    return Path(done.stdout.strip()).resolve() if done.returncode == 0 else None
