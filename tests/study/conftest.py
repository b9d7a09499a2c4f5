"""The published ratings, and R where it is."""

import shutil
import subprocess
from pathlib import Path

import pytest

from cleanset.study.analysing import texts_of
from cleanset.study.ratings import Rating, read_ratings

STUDIES = ("aca", "advpp", "cadv", "cadv_4_6", "diffattack", "ncf", "semanticadv")
DIFFERENT_PEOPLE = tuple(name for name in STUDIES if name != "cadv_4_6")
"""cadv_4_6 has a part of the ratings of cadv once more."""


def path_of(repository: Path, study: str) -> Path:
    return repository / "imagenet" / "published" / "ratings" / f"{study}.csv"


def published(repository: Path, study: str) -> tuple[Rating, ...]:
    return read_ratings(texts_of([path_of(repository, study)])).ratings


def arguments(ratings: tuple[Rating, ...]) -> tuple[list[int], list[str], list[str], list[bool]]:
    """What `fit` takes."""
    return (
        [each.rating for each in ratings],
        [each.person for each in ratings],
        [each.image for each in ratings],
        [each.kind == "modified" for each in ratings],
    )


@pytest.fixture(scope="session")
def rscript() -> str:
    """Rscript with lmerTest; without them skips, also where CLEANSET_NO_SKIP is set: literals are checked anyway."""
    program = shutil.which("Rscript")
    if program is None:
        pytest.skip("no R: install the packages r-cran-lme4 and r-cran-lmertest")
    found = subprocess.run([program, "-e", "library(lmerTest)"], capture_output=True, check=False)
    if found.returncode:
        pytest.skip("R without lmerTest: install the packages r-cran-lme4 and r-cran-lmertest")
    return program
