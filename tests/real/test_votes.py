"""Consensus and kappa on 924,810 real answers: those behind the reassessed labels (Beyer et al. 2020).

Each of 184,962 questions "is this in that image?" has five answers: no, maybe, yes; here for
verdicts they are as reject, unsure, clean.
"""

import tarfile
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from cleanset.dataset.ilsvrc import timm_info
from cleanset.dataset.labels import read_ground_truth, read_reassessed
from cleanset.image_ids import image_number
from cleanset.review.consensus import Policy, consensus
from cleanset.review.verdicts import Clean, Rejected, Unsure, Verdict
from cleanset.selection.fill import Decision
from cleanset.statistics.raters import kappa

QUESTIONS, ANSWERS = 184_962, 5
NO, MAYBE, YES = 0, 1, 2
VERDICTS: dict[int, Verdict] = {NO: Rejected("wrong_class"), MAYBE: Unsure(), YES: Clean()}


def raters(path: Path) -> Iterator[NDArray[np.float64]]:
    """The answers of one rater after another, questions x 3; the whole, in memory, is 377 MB."""
    with zipfile.ZipFile(path) as archive, archive.open("tensor.npy") as file:
        assert np.lib.format.read_magic(file) == (1, 0)
        shape, column_first, dtype = np.lib.format.read_array_header_1_0(file)
        assert (shape, column_first, dtype) == ((85, QUESTIONS, 3), False, np.dtype(np.float64))
        for _ in range(shape[0]):
            yield np.frombuffer(file.read(QUESTIONS * 3 * 8)).reshape(QUESTIONS, 3)


@pytest.fixture(scope="module")
def answers(real: Path) -> NDArray[np.int8]:
    """The five answers to each question, in the order of the raters' numbers."""
    found = np.full((QUESTIONS, ANSWERS), -1, dtype=np.int8)
    given = np.zeros(QUESTIONS, dtype=np.int8)
    for one_hot in raters(real / "reassessed" / "raters.npz"):
        asked = np.flatnonzero(one_hot.sum(axis=1))
        found[asked, given[asked]] = one_hot[asked].argmax(axis=1)
        given[asked] += 1
    assert (given == ANSWERS).all()
    return found


def decided(answers: NDArray[np.int8], policy: Policy) -> Counter[Decision]:
    """How many questions get each decision; equal answers in equal order are decided once."""
    distinct, counts = np.unique(answers, axis=0, return_counts=True)
    found: Counter[Decision] = Counter()
    for row, count in zip(distinct, counts, strict=True):
        votes = [VERDICTS[int(answer)] for answer in row]
        found[consensus(votes, None, policy, 5 if policy != "single" else 1)] += int(count)
    assert sum(found.values()) == QUESTIONS
    return found


IS_CLEAN, WRONG, UNSURE = Decision("clean"), Decision("reject", "wrong_class"), Decision("reject", "unsure")
CONFLICT = Decision("undecided", "conflict")


def test_unanimity(answers: NDArray[np.int8]) -> None:
    """Policy single asks that all say the same, unsure among it; so it counts what is unanimous."""
    found = decided(answers, "single")
    assert found == {IS_CLEAN: 5_949, WRONG: 107_087, UNSURE: 121, CONFLICT: QUESTIONS - 5_949 - 107_087 - 121}


def test_one_unsure_rejects(answers: NDArray[np.int8]) -> None:
    """In policy unanimous one unsure rejects: the unsure ones are all questions with any maybe."""
    with_maybe = int((answers == MAYBE).any(axis=1).sum())
    found = decided(answers, "unanimous")
    assert found == {IS_CLEAN: 5_949, WRONG: 107_087, UNSURE: with_maybe, CONFLICT: 71_926 - with_maybe}
    assert with_maybe > 121


def test_majority(answers: NDArray[np.int8]) -> None:
    assert decided(answers, "majority") == {IS_CLEAN: 19_555, WRONG: 151_182, UNSURE: 5_462, CONFLICT: 8_763}


def kappa_of(counts: NDArray[np.int64]) -> float | None:
    found = kappa(counts)
    return None if found is None else found.value


def test_kappa(answers: NDArray[np.int8]) -> None:
    """Three categories .412012; yes against the others .493331; no against the others .486485."""
    counts = np.stack([(answers == answer).sum(axis=1) for answer in (NO, MAYBE, YES)], axis=1)
    assert counts.sum(axis=0).tolist() == [729_424, 78_942, 116_444]
    assert kappa_of(counts) == pytest.approx(0.412012, abs=5e-7)
    yes, no = ([counts[:, answer], ANSWERS - counts[:, answer]] for answer in (YES, NO))
    assert kappa_of(np.stack(yes, axis=1)) == pytest.approx(0.493331, abs=5e-7)
    assert kappa_of(np.stack(no, axis=1)) == pytest.approx(0.486485, abs=5e-7)


def test_the_scores_give_the_reassessed_labels(real: Path) -> None:
    """A label counts from a score of .8 on; an image that nobody was asked about keeps its original label."""
    with tarfile.open(real / "ILSVRC2012_devkit_t12.tar.gz") as devkit:
        truth = devkit.extractfile("ILSVRC2012_devkit_t12/data/ILSVRC2012_validation_ground_truth.txt")
        assert truth
        original = read_ground_truth(truth.read().decode(), "ground truth")
    with np.load(real / "reassessed" / "scores.npz") as scored:
        scores, info = scored["tensor"], scored["info"]
    rebuilt: dict[int, list[int]] = {}
    for (name, label), score in zip(info.tolist(), scores.tolist(), strict=True):
        labels = rebuilt.setdefault(image_number(name.removesuffix(".JPEG")), [])
        if score >= 0.8:
            labels.append(int(label))
    lists = [sorted(rebuilt.get(number, [label])) for number, label in enumerate(original, start=1)]
    published = read_reassessed(timm_info("imagenet_real_labels.json").read_text(), "timm")
    assert len(rebuilt) == 24_889
    assert lists == published
    assert len(lists) == 50_000
