"""The sample's contest with the data of a built sample, its keys, and its defence that is trained on colors."""

import runpy
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from cleanset.studies.contest.log import read
from cleanset.studies.contest.log_lines import LOG
from cleanset.studies.contest.log_writing import signed_log
from cleanset.studies.contest.memory import forget
from tests.checkouts import Checkout

MAIL = Path(__file__).parents[3] / "sample" / "contest"
_FOLDERS: list[Any] = []


def copy_with_data(built: Checkout, contest: Path, folder: Path) -> Path:
    """A copy of the contest in an edition with the built sample's sets."""
    for name in ("params.yaml", "sample"):
        (folder / name).symlink_to(built.folder / name)
    (folder / "data").mkdir()
    (folder / "data" / "export").symlink_to(built.folder / "data" / "export")
    shutil.copytree(contest, folder / "studies" / "contest")
    return folder / "studies" / "contest"


@cache
def sample_key(name: str) -> Path:
    """The key of a person of the sample's contest, in a file that nobody else may read, as ssh-keygen wants it."""
    _FOLDERS.append(tempfile.TemporaryDirectory(prefix="keys"))
    path = Path(_FOLDERS[-1].name, name)
    shutil.copyfile(MAIL / "keys" / name, path)
    path.chmod(0o600)
    return path


def cut(contest: Path, lines: int) -> None:
    """Leave the first lines of the sample's log, signed."""
    found = read(contest)
    forget(found[0].digest)
    params = contest / "params.yaml"
    params.write_text(params.read_text().replace(found[-1].digest, found[lines - 1].digest))
    (contest / LOG).write_text(signed_log(found[:lines], dict(found[0].entry.signers), sample_key("staff")))


def colors() -> dict[str, Any]:
    """The functions of the training code of reef/colors; leaves no compiled file in the defence's folder."""
    return runpy.run_path(str(MAIL / "defences" / "reef" / "colors" / "train.py"))
