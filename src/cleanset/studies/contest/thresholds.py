"""`cleanset contest threshold`: the threshold of a model that covers a share of the eligibility list."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cleanset.edition.paths import Edition
from cleanset.statistics.coverage import (
    CONFIDENCES,
    RANKINGS,
    AtCoverage,
    Confidence,
    Flags,
    Floats,
    Ranking,
    at_coverage,
    check_coverage,
    confident_mistakes,
    threshold,
)
from cleanset.studies.contest.defending import eligibility_list
from cleanset.studies.contest.entries import ModelOfEdition
from cleanset.studies.contest.model_defence import ModelDefence
from cleanset.studies.contest.reading import read_rules
from cleanset.validation import check_known


@dataclass(frozen=True, slots=True)
class ModelThreshold:
    """A threshold that covers a share of the eligibility list, and the model's accuracy when it abstains below it.

    `at`: by ranking, the accuracy at the wanted and at full coverage. `mistakes`: covered images that the model
    misclassifies, the most confident first.
    """

    threshold: float
    answered: int
    images: int
    at: dict[str, tuple[AtCoverage, AtCoverage]]
    mistakes: Sequence[str]


def thresholds(
    confidence: Floats, correct: Flags, names: Sequence[str], coverage: float, ranking: Ranking
) -> ModelThreshold:
    """The threshold for a wanted coverage, 0 to 1. Raises CleansetError as `coverage.threshold` does."""
    found = threshold(confidence, coverage, ranking)
    at = {
        each: (
            at_coverage(confidence, correct, names, coverage, each), at_coverage(confidence, correct, names, 1.0, each)
        )
        for each in RANKINGS
    }  # fmt: skip
    mistakes = confident_mistakes(confidence, correct, names, coverage, ranking)
    return ModelThreshold(found, int((confidence >= found).sum()), len(names), at, mistakes)


def run(contest: Path, role: str, confidence: Confidence, coverage: float, ranking: Ranking) -> str:
    """Compute the model's answers to the eligibility list, and return the result as text."""
    check_known("confidence", confidence, CONFIDENCES)
    check_known("ranking", ranking, RANKINGS)
    check_coverage(coverage)
    edition, groups = Edition(contest / ".." / ".."), read_rules(contest).groups()
    known = eligibility_list(edition, groups)
    # any threshold will do: predictions() does not abstain
    model = ModelDefence(edition, ModelOfEdition(role=role, confidence=confidence, threshold=0.0), groups)
    found = model.predictions({sha: each.path for sha, each in known.items()})
    images = [known[sha] for sha in found["image_id"]]
    correct = found["group"].map(lambda group: groups.names[group]).to_numpy() == [each.group for each in images]
    names = [f"{each.path.parent.name}/{each.path.name}" for each in images]
    sure = found["confidence"].to_numpy()
    return as_text(thresholds(sure, correct, names, coverage, ranking), role, confidence)


def as_text(found: ModelThreshold, role: str, confidence: str) -> str:
    """The threshold, the accuracy by ranking, and the confident mistakes by image."""
    lines = [
        f"{role}: {confidence} of at least {found.threshold!r} answers {found.answered} of {found.images} images of "
        "the eligibility list"
    ]
    for ranking, points in found.at.items():
        lines += [f"{ranking}, {100 * each.wished:g} % coverage: {_accuracy(each)}" for each in points]
    lines += [f"confident mistake: {name}" for name in found.mistakes]
    return "\n".join(lines)


def _accuracy(each: AtCoverage) -> str:
    accuracy = "no accuracy" if each.accuracy is None else f"accuracy {each.accuracy:.4f}"
    return f"{accuracy}, {each.mistakes} mistakes among {each.covered} images"
