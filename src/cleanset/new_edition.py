"""Making a new edition: a folder that is a DVC project of its own and runs this checkout's code."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from cleanset.errors import CleansetError
from cleanset.files import write_text

CHECKOUT = Path(__file__).resolve().parents[2]
COPIED = ("dvc.yaml", "params.yaml", "raw.md5", ".dvcignore")
"""Files of the ImageNet edition that a new one begins with."""


def make_edition(folder: Path) -> None:
    """Make `folder` an edition with ImageNet's params, sums and DVC remote, and with empty reviews.

    Inside this checkout it shares the checkout's DVC cache. Raises CleansetError if the folder is
    not empty or this is not a checkout.
    """
    template = CHECKOUT / "imagenet"
    if not template.is_dir():
        raise CleansetError(f"{CHECKOUT}: no checkout of cleanset; editions are made from one: git clone it")
    if folder.exists() and any(folder.iterdir()):
        raise CleansetError(f"{folder}: not empty; expected a new or empty folder")
    (folder / "reviews").mkdir(parents=True)
    (folder / "data" / "raw").mkdir(parents=True)
    for name in COPIED:
        shutil.copyfile(template / name, folder / name)
    root = Path(os.path.relpath(CHECKOUT, folder.resolve())).as_posix()
    params = (folder / "params.yaml").read_text(encoding="utf-8")
    params = re.sub(r"\A#.*\n", "# See the README for what to put where.\n", params)
    write_text(folder / "params.yaml", re.sub(r"(?m)^root: .*$", f"root: {root}", params))
    write_text(folder / "reviews" / ".gitkeep", "")
    write_text(folder / ".gitignore", "/data/\n/report/\n*.partial\n.lock\n")
    _init_dvc(folder)


def _init_dvc(folder: Path) -> None:
    git_root = _git_root(folder)
    how = ["--no-scm"] if git_root is None else [] if git_root == folder.resolve() else ["--subdir"]
    _dvc(folder, "init", "--quiet", *how)
    shutil.copyfile(CHECKOUT / "imagenet" / ".dvc" / "config", folder / ".dvc" / "config")
    if git_root is None:
        _dvc(folder, "config", "core.no_scm", "true")
    if git_root == CHECKOUT:
        _dvc(folder, "cache", "dir", os.path.relpath(CHECKOUT / ".dvc" / "cache", folder.resolve()))
    else:
        _dvc(folder, "config", "--unset", "cache.dir")


def _git_root(folder: Path) -> Path | None:
    done = subprocess.run(
        ["git", "-C", str(folder), "rev-parse", "--show-toplevel"], capture_output=True, text=True, check=False
    )
    return Path(done.stdout.strip()).resolve() if done.returncode == 0 else None


def _dvc(folder: Path, *arguments: str) -> None:
    done = subprocess.run(["dvc", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CleansetError(f"{folder}: dvc {arguments[0]} failed: {' '.join(done.stderr.split())}")
