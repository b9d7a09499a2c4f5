"""Runs of defences over the eligibility lists and every published image, and a check of runs made before.

Of the unpublished list a run says only whether the defence is eligible. Its rate is that of published images alone, and
rounded, so that no time tells anything of the others.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.plumbing.files import sha256
from cleanset.statistics.coverage import Eligibility, eligibility
from cleanset.studies.contest.entries import Defence, DefenceRun, UnpublishedResult, short
from cleanset.studies.contest.lists import (
    EligibilityList,
    check_published,
    checked_list,
    edition_of,
    eligibility_list,
    list_digest,
)
from cleanset.studies.contest.models import ModelDefence
from cleanset.studies.contest.objects import Objects
from cleanset.studies.contest.programs import ProgramDefence
from cleanset.studies.contest.rules import ABSTAIN
from cleanset.studies.contest.state import Contest


def run_defence(folder: Path, contest: Contest, name: str, unpublished: Path | None = None) -> DefenceRun:
    """One run of a defence of the contest in a folder.

    `unpublished`: the folder of the list that contest.yaml names as unpublished. Raises CleansetError for a defence
    that fails, and for an image or a file of it that is missing or has changed.
    """
    defence = contest.course(name).defence
    edition = edition_of(folder)
    known = _published_list(edition, contest)
    objects = Objects(folder)
    published = {sha: objects.path(sha) for sha in contest.images}
    hidden = checked_list(folder, contest.rules, unpublished)
    for sha in sorted(hidden.keys() & (known.keys() | published.keys())):
        raise CleansetError(
            f"{hidden[sha].path}: a published image; expected only unpublished ones in the unpublished list: remove it"
        )
    paths = {sha: each.path for sha, each in known.items()} | published
    # before the defence runs, which may take long
    _check_unchanged(paths)
    answer = _answering(edition, objects, defence, contest)
    answers, seconds = answer(paths)
    if defence.model is not None and all(answers[sha] == ABSTAIN for sha in known):
        raise CleansetError(
            f"{name}: threshold {defence.model.threshold:g} abstains on everything, all {len(known)} images of the "
            "eligibility list; expected a lower one"
        )
    found = None
    if hidden:
        figures = _figures(hidden, answer({sha: each.path for sha, each in hidden.items()})[0])
        found = UnpublishedResult(list_sha256=list_digest(hidden), eligible=figures.is_eligible)
    return DefenceRun(
        defence=name,
        model=answer.digest,
        images_per_minute=rounded_down(len(paths) / seconds * 60),
        eligibility=_figures(known, answers),
        unpublished=found,
        answers={sha: answers[sha] for sha in published},
    )


def _answering(edition: Edition, objects: Objects, defence: Defence, contest: Contest) -> ModelDefence | ProgramDefence:
    groups = contest.rules.groups()
    if defence.model is not None:
        return ModelDefence(edition, defence.model, groups)
    return ProgramDefence(objects, defence, groups.names)


def _published_list(edition: Edition, contest: Contest) -> EligibilityList:
    check_published(edition, contest.rules)
    return eligibility_list(edition, contest.rules.groups())


def _check_unchanged(paths: Mapping[str, Path]) -> None:
    """Raise CleansetError for a file that is missing, or is not of its SHA-256."""
    for sha, path in paths.items():
        if not path.is_file() or sha256(path.read_bytes()) != sha:
            raise CleansetError(f"{path}: missing or changed; expected SHA-256 {sha}: run cleanset contest check")


def _figures(known: EligibilityList, answers: Mapping[str, str]) -> Eligibility:
    """The counts of a defence on a list."""
    correct = np.array([answers[sha] == each.group for sha, each in known.items()])
    return eligibility(correct, np.array([answers[sha] == ABSTAIN for sha in known]))


def rounded_down(rate: float) -> float:
    """A rate with two digits, so that none meets a limit by rounding."""
    unit = 10.0 ** (math.floor(math.log10(rate)) - 1) if rate > 0 else 1.0
    return round(math.floor(rate / unit) * unit, 6)


def number_of(count: int, what: str) -> str:
    """A number of things, such as "1 run"."""
    return f"{count} {what if count == 1 else f'{what}s'}"


def recomputed(folder: Path, contest: Contest) -> list[str]:
    """A line on each defence: the answers and figures of a model's runs are computed again, all but the rates.

    Raises CleansetError for a run of a model with another answer or figure than is computed.
    """
    edition = edition_of(folder)
    known = _published_list(edition, contest)
    lines = []
    for name, course in sorted(contest.defences.items()):
        runs = [each.run for each in course.runs]
        if course.defence.model is None:
            lines.append(f"{name}: {number_of(len(runs), 'run')} of a program, not computed again")
            continue
        if runs:
            model = ModelDefence(edition, course.defence.model, contest.rules.groups())
            _check_runs(Objects(folder), known, runs, model)
        lines.append(f"{name}: {number_of(len(runs), 'run')} with the answers and figures that were computed again")
    return lines


def _check_runs(objects: Objects, known: EligibilityList, runs: Sequence[DefenceRun], model: ModelDefence) -> None:
    published = {sha: objects.path(sha) for run in runs for sha in run.answers if objects.read(sha)}
    paths = {sha: each.path for sha, each in known.items()} | published
    _check_unchanged(paths)
    answers, _ = model(paths)
    for number, run in enumerate(runs, start=1):
        given: dict[str, tuple[object, object]] = {
            "model": (run.model, model.digest),
            "eligibility": (run.eligibility, _figures(known, answers)),
        }
        given |= {short(sha): (answer, answers[sha]) for sha, answer in sorted(run.answers.items())}
        for what, (there, found) in given.items():
            if there != found:
                raise CleansetError(
                    f"run {number} of {run.defence}: {what} is {there}; expected {found}, as computed: void the run"
                )
