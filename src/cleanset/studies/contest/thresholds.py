"""The threshold of confidence at which a model of the edition answers a share of the eligibility list."""

from collections.abc import Sequence
from pathlib import Path

from cleanset.edition.paths import Edition
from cleanset.plumbing.validation import check_known
from cleanset.statistics.basics import Flags, Floats
from cleanset.statistics.coverage import (
    CONFIDENCES,
    RANKINGS,
    Confidence,
    Ranking,
    at_coverage,
    check_coverage,
    confident_mistakes,
    threshold,
)
from cleanset.studies.contest.eligibility_lists import eligibility_list
from cleanset.studies.contest.entries import ModelOfEdition
from cleanset.studies.contest.log import read_state
from cleanset.studies.contest.model_defences import ModelDefence


def find_threshold(contest: Path, role: str, *, kind: Confidence, coverage: float, ranking: Ranking) -> str:
    """Compute a model's answers to the eligibility list, and return the threshold for a coverage as text."""
    check_known("confidence", kind, CONFIDENCES)
    check_known("ranking", ranking, RANKINGS)
    check_coverage(coverage)
    edition = Edition(contest / ".." / "..")
    groups = read_state(contest).rules.groups()
    known = eligibility_list(edition, groups)
    # any threshold will do: predictions() does not abstain
    model = ModelDefence(edition, ModelOfEdition(role=role, confidence=kind, threshold=0.0), groups)
    found = model.predictions({sha: each.path for sha, each in known.items()})
    images = [known[sha] for sha in found["image_id"]]
    correct = found["group"].map(lambda group: groups.names[group]).to_numpy() == [each.group for each in images]
    names = [f"{each.path.parent.name}/{each.path.name}" for each in images]
    confidence = found["confidence"].to_numpy()
    return threshold_text(f"{role}: {kind}", confidence, correct, names, coverage=coverage, ranking=ranking)


def threshold_text(
    model: str, confidence: Floats, correct: Flags, names: Sequence[str], *, coverage: float, ranking: Ranking
) -> str:
    """The threshold for a coverage of 0 to 1, accuracy by ranking there and at full coverage, confident mistakes.

    Raises CleansetError as `coverage.threshold` does.
    """
    least = threshold(confidence, coverage, ranking)
    answered = f"{(confidence >= least).sum()} of {len(names)} images of the eligibility list"
    lines = [f"{model} of at least {least!r} answers {answered}"]
    for each in RANKINGS:
        for share in (coverage, 1.0):
            at = at_coverage(confidence, correct, names, share, ranking=each)
            accuracy = "no accuracy" if at.accuracy is None else f"accuracy {at.accuracy:.4f}"
            counts = f"{at.mistakes} mistakes among {at.covered} images"
            lines.append(f"{each}, {100 * share:g} % coverage: {accuracy}, {counts}")
    mistakes = confident_mistakes(confidence, correct, names, coverage, ranking=ranking)
    return "\n".join([*lines, *(f"confident mistake: {name}" for name in mistakes)])
