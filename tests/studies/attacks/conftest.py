"""One small study for all tests of this folder."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from cleanset.studies.attacks import earlier_disk
from cleanset.studies.attacks.study import AttackStudy


@pytest.fixture(scope="module", autouse=True)
def on_the_disk_as_it_is() -> Iterator[None]:
    """A process that bubblewrap begins imports torch again, which takes seconds: files are judged in a forked one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(earlier_disk, "beginning", lambda *_: None)
        yield


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> AttackStudy:
    """A study on which nothing has run; not to be changed."""
    from tests.studies.attacks.study import made_study  # takes seconds to import, which not all tests here need

    return made_study(tmp_path_factory.mktemp("made"))


@pytest.fixture
def study(made: AttackStudy, tmp_path: Path) -> AttackStudy:
    """A copy of it."""
    return copied(made, tmp_path / "edition")


def copied(study: AttackStudy, folder: Path) -> AttackStudy:
    """A copy of a study with its edition."""
    shutil.copytree(study.folder.parents[1], folder)
    return AttackStudy(folder / "studies" / "attacks")


def contents(folder: Path) -> dict[str, bytes]:
    """The bytes of all files in a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
