"""A library in another version than locked stops the stages whose bytes it decides."""

from importlib.metadata import version
from pathlib import Path

import pytest

from cleanset.edition.paths import Edition
from cleanset.edition.versions import DECISIVE, check_versions, locked_versions
from cleanset.errors import CleansetError
from tests.ten_images import Made

LOCK = """\
numpy==1.0.0 ; python_version < '3' \\
    --hash=sha256:aa
numpy==2.4.6 ; python_version >= '3' \\
    --hash=sha256:aa
    # via pandas
pillow==99.0 \\
    --hash=sha256:aa
scikit-learn==1.5
torch==2.11.0 --hash=sha256:aa
"""


def test_the_lock_of_this_python() -> None:
    names = ("numpy", "pillow", "torch", "scikit-learn", "pandas")
    assert locked_versions(LOCK, names) == {
        "numpy": "2.4.6", "pillow": "99.0", "torch": "2.11.0", "scikit-learn": "1.5",
    }  # fmt: skip


@pytest.mark.parametrize("stage", DECISIVE)
def test_the_committed_lock_pins_every_library(stage: str, repository: Path) -> None:
    text = (repository / "requirements.txt").read_text()
    assert set(locked_versions(text, DECISIVE[stage])) == set(DECISIVE[stage])


@pytest.mark.parametrize("edition", [".", "imagenet"])
@pytest.mark.parametrize("stage", DECISIVE)
def test_the_environment_of_the_tests_is_the_locked_one(edition: str, stage: str, repository: Path) -> None:
    check_versions(Edition(repository / edition), "." if edition == "." else "..", stage)


@pytest.mark.parametrize(
    ("stage", "remedy"),
    [
        ("preprocess", "raise src/cleanset/dataset/VERSION"),
        ("score", "raise src/cleanset/scoring/VERSION"),
        ("export", "run dvc repro --force export"),
    ],
)
def test_another_version(stage: str, remedy: str, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("pillow==99.0\n")
    (tmp_path / "edition").mkdir()
    with pytest.raises(CleansetError) as error:
        check_versions(Edition(tmp_path / "edition"), "..", stage)
    assert str(error.value) == (
        f"pillow: {version('pillow')} is installed, 99.0 is locked in {tmp_path}/edition/../requirements.txt; expected "
        f"the locked version, which decides the bytes of stage {stage}: install it (pip install pillow==99.0), or lock "
        f"again (make lock) and {remedy}"
    )


def test_a_library_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DECISIVE, "export", ("no-such-library",))
    (tmp_path / "requirements.txt").write_text("no-such-library==1.0\n")
    with pytest.raises(CleansetError, match=r"^no-such-library: not installed, 1\.0 is locked"):
        check_versions(Edition(tmp_path), ".", "export")


def test_nothing_is_locked_next_to_an_installed_package(tmp_path: Path) -> None:
    check_versions(Edition(tmp_path), ".", "score")


def test_preprocess_stops(made: Made) -> None:
    made.archives()
    (made.folder / "requirements.txt").write_text("pyarrow==1.0\n")
    made.fails("pyarrow: * is installed, 1.0 is locked in requirements.txt; *")
