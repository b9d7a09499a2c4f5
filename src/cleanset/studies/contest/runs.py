"""Runs of defences over every submitted image and the eligibility lists, and a check of runs made before."""

import datetime
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from time import perf_counter

import numpy as np

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.plumbing.files import sha256
from cleanset.statistics.basics import Flags, Floats
from cleanset.statistics.coverage import coverage_steps, eligibility
from cleanset.studies.contest.command_defences import CommandDefence
from cleanset.studies.contest.eligibility_lists import (
    EligibilityImage,
    check_published,
    checked_list,
    eligibility_list,
    list_digest,
)
from cleanset.studies.contest.entries import DefenceRun, Stake, UnpublishedResult, reasons_against, short
from cleanset.studies.contest.files import ContestFiles, submitted_images
from cleanset.studies.contest.model_defences import ModelDefence
from cleanset.studies.contest.objects import Objects
from cleanset.studies.contest.rules import ABSTAIN, ContestRules, after


def run_defence(
    contest: Path,
    files: ContestFiles,
    name: str,
    on: datetime.date,
    *,
    unpublished: Path | None = None,
    unconfined: bool = False,
    counts: bool = False,
) -> DefenceRun:
    """One run of a defence, dated `on`: all images answered, its rate measured.

    `unpublished`: the folder of the list that contest.yaml names as unpublished. `unconfined`: a command may run where
    this machine cannot confine it. `counts`: the counts on the unpublished list are in the run, once the contest is
    over.

    Raises CleansetError for a defence that fails, and for an image or a file of it that is missing or has changed.
    """
    defence = files.defences[name]
    objects = Objects(contest)
    over = over_on(files.rules, files.stakes)
    if counts and on < over:
        raise CleansetError(
            f"--counts on {on}: of many runs they tell which images are in the unpublished list; expected a day from "
            f"{over} on, when no defence is staked any more: leave the counts out"
        )
    accepted = any(each.defence == name and each.date <= on for each in files.accepted)
    if defence.command is not None and not accepted:
        raise CleansetError(f"{name}: a command that the board has not accepted by {on}; expected its acceptance")
    groups = files.rules.groups()
    edition = Edition(contest / ".." / "..")
    images = {image.sha256 for _, image in submitted_images(files.submissions)}
    check_published(edition, files.rules)
    known = eligibility_list(edition, groups)
    submitted = {sha: objects.path(sha) for sha in sorted(images)}
    hidden = checked_list(contest, files.rules, unpublished)
    for sha in sorted(hidden.keys() & (known.keys() | submitted.keys())):
        raise CleansetError(
            f"{hidden[sha].path}: a published image; expected only unpublished ones in the unpublished list: remove it"
        )
    paths = {sha: each.path for sha, each in (hidden | known).items()} | submitted
    # before the defence runs, which may take long
    _check_unchanged(paths)
    answer: ModelDefence | CommandDefence
    if defence.model is not None:
        answer = ModelDefence(edition, defence.model, groups)
    else:
        answer = CommandDefence(objects, defence, groups.names, unconfined=unconfined)
    before = perf_counter()
    answers, confidences = answer(paths)
    # making the images that a command is given takes time that is not the command's
    minutes = (perf_counter() - before - answer.preparation_seconds) / 60
    if defence.model is not None and all(answers[sha] == ABSTAIN for sha in known):
        raise CleansetError(
            f"{name}: threshold {defence.model.threshold:g} abstains on everything, all {len(known)} images of the "
            "eligibility list; expected a lower one: cleanset contest threshold finds one"
        )
    of_known = _flags(known, answers, confidences)
    of_hidden = None
    if hidden:
        figures = eligibility(*_flags(hidden, answers, confidences))
        of_hidden = UnpublishedResult(
            list_sha256=list_digest(hidden),
            against=reasons_against(figures, files.rules),
            figures=figures if counts else None,
        )
    return DefenceRun(
        defence=name,
        date=on,
        model=answer.digest,
        confined=answer.is_confined,
        images_per_minute=_rounded_down(len(paths) / minutes),
        eligibility=eligibility(*of_known),
        unpublished=of_hidden,
        coverage=[list(step) for step in coverage_steps(*of_known)],
        signs=answer.signs(known, paths) if isinstance(answer, ModelDefence) else None,
        # of the lists only counts are kept: one of them is not published
        answers={sha: answers[sha] for sha in submitted},
    )


def over_on(rules: ContestRules, stakes: Iterable[Stake]) -> datetime.date:
    """The first day on which no defence is staked any more; the earliest of all days without a stake."""
    return max((after(each.date, rules.limits.unbroken_days) for each in stakes), default=datetime.date.min)


def number_of(count: int, what: str) -> str:
    """A number of things, such as "1 run"."""
    return f"{count} {what if count == 1 else f'{what}s'}"


def _check_unchanged(paths: Mapping[str, Path]) -> None:
    """Raise CleansetError for a file that is missing, or is not of its SHA-256."""
    for sha, path in paths.items():
        if not path.is_file() or sha256(path.read_bytes()) != sha:
            raise CleansetError(f"{path}: missing or changed; expected SHA-256 {sha}: run cleanset contest check")


def _flags(
    known: Mapping[str, EligibilityImage], answers: Mapping[str, str], confidences: Mapping[str, float] | None
) -> tuple[Flags, Flags, Floats | None]:
    """For each image: is the answer correct, does the defence abstain, and with which confidence (if known)."""
    correct = np.array([answers[sha] == each.group for sha, each in known.items()])
    abstains = np.array([answers[sha] == ABSTAIN for sha in known])
    return correct, abstains, None if confidences is None else np.array([confidences[sha] for sha in known])


def recomputed(contest: Path, files: ContestFiles) -> list[str]:
    """A line on each defence, whose answers and figures in all its runs are computed again.

    Raises CleansetError for a run of a model with another answer, another figure than is computed, or a rate below the
    contest's limit where this machine is ten times as fast as the limit asks.
    """
    edition = Edition(contest / ".." / "..")
    lines = []
    for name, defence in sorted(files.defences.items()):
        runs = files.runs_by_defence()[name]
        if defence.model is None:
            lines.append(f"{name}: {number_of(len(runs), 'run')} of a command, not recomputable")
            continue
        if runs:
            model = ModelDefence(edition, defence.model, files.rules.groups())
            _check_pixels(name, model)
            _check_runs(edition, contest, files, runs, model)
        lines.append(f"{name}: {number_of(len(runs), 'run')} with the answers and figures that were computed again")
    return lines


def _check_pixels(name: str, model: ModelDefence) -> None:
    """Raise CleansetError for a defence whose entry has other pixels than its model sees."""
    given = {key: getattr(model.wanted, key) for key in model.seen}
    if given != model.seen:
        raise CleansetError(f"{name}: sees {given}; expected {model.seen}, as its model in the edition does: void it")


def _check_runs(
    edition: Edition, contest: Path, files: ContestFiles, runs: Sequence[DefenceRun], model: ModelDefence
) -> None:
    objects = Objects(contest)
    check_published(edition, files.rules)
    known = eligibility_list(edition, files.rules.groups())
    submitted = {sha: objects.path(sha) for run in runs for sha in run.answers if objects.read(sha)}
    paths = {sha: each.path for sha, each in known.items()} | submitted
    _check_unchanged(paths)
    begun = perf_counter()
    answers, confidences = model(paths)
    rate = len(paths) * 60 / (perf_counter() - begun)
    of_known = _flags(known, answers, confidences)
    figures = eligibility(*of_known)
    coverage = [list(step) for step in coverage_steps(*of_known)]
    signs = [each.sign for each in model.signs(known, paths)]
    least = files.rules.limits.images_per_minute
    for run in runs:
        where = f"run of {run.defence} on {run.date}"
        for what, given, found in (
            ("model", run.model, model.digest),
            ("eligibility", run.eligibility.model_dump(), figures.model_dump()),
            # a run that says nothing of these claims nothing
            ("coverage", coverage if run.coverage is None else run.coverage, coverage),
            ("signs", signs if run.signs is None else [each.sign for each in run.signs], signs),
            *((short(sha), answer, answers[sha]) for sha, answer in sorted(run.answers.items())),
        ):
            if given != found:
                raise CleansetError(f"{where}: {what} is {given}; expected {found}, as computed: void the run")
        if run.images_per_minute < least <= rate / 10:
            raise CleansetError(
                f"{where}: {run.images_per_minute:g} images a minute; expected at least {least:g}, since this machine "
                f"answers {rate:.0f}: void the run"
            )


def _rounded_down(rate: float) -> float:
    """A rate with one decimal, so that none meets a limit by rounding."""
    return math.floor(10 * rate) / 10
