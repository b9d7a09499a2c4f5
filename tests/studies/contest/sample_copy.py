"""The sample's contest with the data of a built sample, and its defence that is trained on colors."""

import runpy
import shutil
from pathlib import Path
from typing import Any

from cleanset.studies.contest.log import LOG
from tests.checkouts import Checkout

MAIL = Path(__file__).parents[3] / "sample" / "contest"


def link_sets(built: Checkout, folder: Path) -> None:
    """Make a folder an edition with the built sample's sets."""
    for name in ("params.yaml", "sample"):
        (folder / name).symlink_to(built.folder / name)
    (folder / "data").mkdir()
    (folder / "data" / "export").symlink_to(built.folder / "data" / "export")


def copy_with_data(built: Checkout, contest: Path, folder: Path) -> Path:
    """A copy of the contest in an edition with the built sample's sets."""
    link_sets(built, folder)
    shutil.copytree(contest, folder / "studies" / "contest")
    return folder / "studies" / "contest"


def cut(contest: Path, lines: int) -> None:
    """Leave the first lines of the sample's log."""
    texts = (contest / LOG).read_text().splitlines(keepends=True)
    (contest / LOG).write_text("".join(texts[:lines]))


def colors() -> dict[str, Any]:
    """The functions of the training code of reef/colors; leaves no compiled file in the defence's folder."""
    return runpy.run_path(str(MAIL / "defences" / "reef" / "colors" / "train.py"))
