"""Thresholds for a coverage: the text, the sample, and the options that the command refuses."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from cleanset.errors import CleansetError
from cleanset.studies.contest.log_lines import LOG
from cleanset.studies.contest.thresholds import find_threshold, threshold_text
from tests.browser_tab import SOURCE
from tests.checkouts import Checkout
from tests.forked_commands import forking

CONFIDENCE = np.array([0.9, 0.8, 0.7, 0.7, 0.6])
CORRECT = np.array([True, False, True, False, True])
NAMES = ["e", "d", "c", "b", "a"]


def test_a_wished_coverage() -> None:
    """Of two equally confident images plain covers the one whose name comes first, the kit both."""
    assert threshold_text(
        "standard: softmax", CONFIDENCE, CORRECT, NAMES, coverage=0.6, ranking="plain"
    ).splitlines() == [
        "standard: softmax of at least 0.7 answers 4 of 5 images of the eligibility list",
        "as_published, 60 % coverage: accuracy 0.5000, 2 mistakes among 4 images",
        "as_published, 100 % coverage: accuracy 0.6000, 2 mistakes among 5 images",
        "plain, 60 % coverage: accuracy 0.3333, 2 mistakes among 3 images",
        "plain, 100 % coverage: accuracy 0.6000, 2 mistakes among 5 images",
        "confident mistake: d",
        "confident mistake: b",
    ]


def test_none_to_take() -> None:
    """Plain refuses; the kit covers all of them."""
    with pytest.raises(CleansetError, match="the threshold would abstain on all of them; expected at least one image"):
        threshold_text("standard", CONFIDENCE, CORRECT, NAMES, coverage=0.1, ranking="plain")
    first, *lines = threshold_text(
        "standard", CONFIDENCE, CORRECT, NAMES, coverage=0.1, ranking="as_published"
    ).splitlines()
    assert "at least 0.6 answers 5 of 5" in first
    assert "plain, 10 % coverage: no accuracy, 0 mistakes among 0 images" in lines


@pytest.mark.slow
def test_on_the_sample(built: Checkout, repository: Path, tmp_path: Path) -> None:
    """Of its 36 images a threshold for 80 % answers 28, or more where confidences are equal."""
    for name in ("params.yaml", "sample", "data"):
        (tmp_path / name).symlink_to(built.folder / name)
    contest = tmp_path / "studies" / "contest"
    contest.mkdir(parents=True)
    shutil.copyfile(repository / "studies" / "contest" / LOG, contest / LOG)
    first, *others = find_threshold(contest, "standard", kind="softmax", coverage=0.8, ranking="plain").splitlines()
    answered = re.fullmatch(
        r"standard: softmax of at least 0\.\d+ answers (\d+) of 36 images of the eligibility list", first
    )
    assert answered is not None
    assert int(answered[1]) >= 28
    assert all(re.fullmatch(r"confident mistake: n\d{8}/ILSVRC2012_val_\d{8}.*", line) for line in others[4:])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--confidence", "entropy"), "unknown confidence 'entropy'; expected one of max_logit"),
        (("--ranking", "other"), "unknown ranking 'other'; expected one of as_published, plain"),
        (("--coverage", "80"), "coverage: found 80.0; expected a share from 0 to 1"),
    ],
)
@pytest.mark.slow
def test_what_the_command_refuses(options: tuple[str, str], message: str, repository: Path) -> None:
    """One line, before any model runs."""
    command = ["cleanset", "contest", "threshold", "--contest", "studies/contest", "--model", "standard", *options]
    environment = os.environ | forking(SOURCE)
    done = subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert message in done.stderr
