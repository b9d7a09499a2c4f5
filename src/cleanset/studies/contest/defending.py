"""Running a defence over every submitted image and the eligibility list. torch is imported only for a model.

The lines that organizers enter by hand: a stake with its digests, and the digest of an unpublished list.

`cleanset contest threshold`: the threshold of a model that covers a share of the eligibility list.
"""

import datetime
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.files import read_bytes, sha256, write_text
from cleanset.scoring.logits import Groups
from cleanset.sets.folder import read_entries
from cleanset.sets.manifest import MANIFEST, Entry
from cleanset.statistics.coverage import (
    CONFIDENCES,
    RANKINGS,
    Confidence,
    Flags,
    Floats,
    Ranking,
    at_coverage,
    check_coverage,
    confident_mistakes,
    eligibility,
    threshold,
)
from cleanset.studies.contest.consistency import check_staked_digest
from cleanset.studies.contest.defences import CommandDefence, ModelDefence
from cleanset.studies.contest.files import (
    ContestFiles,
    DefenceRun,
    ModelOfEdition,
    Stake,
    coverage_steps,
    until,
)
from cleanset.studies.contest.reading import (
    check_defence,
    defence_digest,
    read_defence,
    read_rules,
    submitted_paths,
    visible,
)
from cleanset.studies.contest.rules import ABSTAIN, ContestRules
from cleanset.validation import check_known, validate

UNPUBLISHED = "unpublished"
"""The folder, beside contest.yaml, of the list that is not published; git ignores it."""


class EligibilityImage(NamedTuple):
    """An image whose group is known."""

    path: Path
    group: str


def clean_images(edition: Edition) -> list[tuple[Path, Entry]]:
    """The images of the edition's finished sets, set by set, with their entries."""
    folders = sorted(path.parent for path in (edition.folder / "data" / "export").glob(f"*/{MANIFEST}"))
    return [(folder / entry.file, entry) for folder in folders for entry in read_entries(folder)]


def eligibility_list(edition: Edition, groups: Groups) -> dict[str, EligibilityImage]:
    """By SHA-256, the images of the edition's finished sets whose class is in one of the groups."""
    found: dict[str, EligibilityImage] = {}
    for path, entry in clean_images(edition):
        group = groups.group_of(entry.class_index)
        if group is not None:
            # an image in the sets of several models counts once
            found.setdefault(entry.file_sha256, EligibilityImage(path, groups.names[group]))
    if not found:
        raise CleansetError(
            f"{edition.folder / 'data' / 'export'}: no image of a class of the contest; expected some in the finished "
            "sets: run dvc pull, or name other classes in contest.yaml"
        )
    return dict(sorted(found.items()))


def unpublished_list(folder: Path, groups: Groups) -> dict[str, EligibilityImage]:
    """By SHA-256, the images of a list that is not published: a folder with one folder for each group, by its name.

    Raises CleansetError for a group without an image, a link, and an image in both groups.
    """
    found: dict[str, EligibilityImage] = {}
    for group in groups.names:
        paths = visible(folder / group)
        if not paths:
            raise CleansetError(f"{folder / group}: no image; expected a folder of images for each of the two groups")
        for path in paths:
            other = found.setdefault(sha256(read_bytes(path)), EligibilityImage(path, group))
            if other.group != group:
                raise CleansetError(f"{path}: the same image as {other.path}; expected each image in one group")
    return dict(sorted(found.items()))


def list_digest(images: Mapping[str, EligibilityImage]) -> str:
    """The digest by which contest.yaml names a list: of a line `<group> <SHA-256>` for each image, sorted."""
    return sha256("".join(sorted(f"{each.group} {digest}\n" for digest, each in images.items())).encode())


def checked_list(contest: Path, rules: ContestRules, unpublished: Path | None) -> dict[str, EligibilityImage]:
    """The unpublished list that contest.yaml names, in a folder or in `unpublished/` beside it; empty without one.

    Raises CleansetError for another list than the one that it names, and as `unpublished_list` does.
    """
    folder = contest / UNPUBLISHED if unpublished is None else unpublished
    if rules.unpublished is None and unpublished is None:
        return {}
    if not folder.is_dir():
        raise CleansetError(
            f"{folder}: no folder; expected the unpublished list that contest.yaml names: add it, or give its folder "
            "with --unpublished"
        )
    found = unpublished_list(folder, rules.groups())
    if rules.unpublished is None:
        raise CleansetError(
            f"{folder}: an unpublished list, but contest.yaml names none; expected its line there before the contest "
            "begins: cleanset contest check prints it"
        )
    if list_digest(found) != rules.unpublished:
        raise CleansetError(
            f"{folder}: a list with the digest {list_digest(found)}; expected the one that contest.yaml names as "
            f"unpublished, {rules.unpublished}: give that one"
        )
    return found


def run_defence(
    contest: Path,
    files: ContestFiles,
    name: str,
    on: datetime.date,
    unpublished: Path | None = None,
    unconfined: bool = False,
) -> DefenceRun:
    """One run of a defence, dated `on`: its files checked, all images answered, its rate measured.

    `unconfined`: a command may run where this machine cannot confine it.

    Raises CleansetError for a defence whose files are not as named, that was staked with other ones, or that fails, and
    for an image that is missing or has changed.
    """
    defence = files.defences[name]
    check_defence(contest / "defences" / name, defence)
    digest = defence_digest(contest / "defences" / name, defence)
    for stake in files.board.stakes:
        check_staked_digest(stake, name, digest)
    accepted = any(each.defence == name and each.date <= on for each in files.board.accepted)
    if defence.command is not None and not accepted:
        raise CleansetError(f"{name}: a command that the board has not accepted by {on}; expected board/accepted.yaml")
    groups, edition = files.rules.groups(), Edition(contest / ".." / "..")
    known, submitted = eligibility_list(edition, groups), submitted_paths(contest, until(files, on).submissions)
    hidden = checked_list(contest, files.rules, unpublished)
    for sha in sorted(hidden.keys() & (known.keys() | submitted.keys())):
        raise CleansetError(f"{hidden[sha].path}: a published image; expected none in the unpublished list: remove it")
    paths = {sha: each.path for sha, each in (hidden | known).items()} | submitted
    for sha, path in paths.items():
        # before the defence runs, which may take long
        if not path.is_file() or sha256(path.read_bytes()) != sha:
            raise CleansetError(f"{path}: missing or changed; expected SHA-256 {sha}: run cleanset contest check")
    answer: ModelDefence | CommandDefence
    if defence.model is not None:
        answer = ModelDefence(edition, defence.model, groups)
    else:
        answer = CommandDefence(contest / "defences" / name, defence, groups.names, name, unconfined)
    before = perf_counter()
    answers, confidences = answer(paths)
    # making the images that a command is given takes time that is not the command's
    minutes = (perf_counter() - before - answer.preparation_seconds) / 60
    if isinstance(answer, ModelDefence) and all(answers[sha] == ABSTAIN for sha in known):
        raise CleansetError(
            f"{name}: threshold {answer.wanted.threshold:g} abstains on everything, all {len(known)} images of the "
            "eligibility list; expected a lower one: cleanset contest threshold finds one"
        )
    content = {
        "defence": name,
        "date": str(on),
        "digest": digest,
        "model": answer.digest if isinstance(answer, ModelDefence) else None,
        "confined": answer.is_confined if isinstance(answer, CommandDefence) else None,
        "images_per_minute": round(len(paths) / minutes, 1),
        "eligibility": _figures(known, answers, confidences),
        "unpublished": _figures(hidden, answers, confidences) | {"list_sha256": list_digest(hidden)}
        if hidden
        else None,
        "coverage": [list(step) for step in coverage_steps(*_flags(known, answers, confidences))],
        "signs": answer.signs({sha: each.group for sha, each in known.items()}, paths)
        if isinstance(answer, ModelDefence)
        else None,
        # of the lists only counts are kept: one of them is not published
        "answers": {sha: answers[sha] for sha in submitted},
    }
    return DefenceRun.model_validate(content)


def _flags(
    known: Mapping[str, EligibilityImage], answers: Mapping[str, str], confidences: Mapping[str, float] | None
) -> tuple[Flags, Flags, Floats | None]:
    """For each image: is the answer correct, does the defence abstain, and with which confidence (if known)."""
    correct = np.array([answers[sha] == each.group for sha, each in known.items()])
    abstains = np.array([answers[sha] == ABSTAIN for sha in known])
    return correct, abstains, None if confidences is None else np.array([confidences[sha] for sha in known])


def _figures(
    known: Mapping[str, EligibilityImage], answers: Mapping[str, str], confidences: Mapping[str, float] | None
) -> dict[str, int]:
    return eligibility(*_flags(known, answers, confidences)).model_dump()


def defend(
    contest: Path,
    files: ContestFiles,
    names: Sequence[str],
    on: datetime.date,
    unpublished: Path | None = None,
    unconfined: bool = False,
) -> Iterator[Path]:
    """Run defences and write their runs, the paths as they are written.

    Raises CleansetError for an unknown defence, and as `run_defence`: only at the end, since no team may keep the
    defences of others from being run.
    """
    for name in names:
        if name not in files.defences:
            raise CleansetError(f"{name}: unknown defence; expected one of {', '.join(sorted(files.defences))}")
    problems: dict[str, CleansetError] = {}
    for name in names:
        try:
            found = run_defence(contest, files, name, on, unpublished, unconfined)
            path = contest / "results" / "runs" / name / f"{on}.json"
            write_text(path, json.dumps(found.model_dump(mode="json", exclude_none=True), indent=1) + "\n")
            yield path
        except CleansetError as error:
            problems[name] = error
    if problems:
        first, *others = problems
        without = f"; {', '.join(others)} did not run either" if others else ""
        raise CleansetError(f"{problems[first]}{without}")


def stake_yaml(contest: Path, batch: str, on: datetime.date, by: str, names: Sequence[str]) -> str:
    """The entry of board/stakes.yaml by which defences are staked as they lie there now.

    Raises CleansetError for a defence whose files are not as its defence.yaml names them.
    """
    digests = {}
    for name in names:
        folder = contest / "defences" / name
        if not folder.is_dir():
            raise CleansetError(f"{name}: unknown defence; expected team/name of a folder in {contest / 'defences'}")
        defence = read_defence(folder)
        check_defence(folder, defence)
        digests[name] = defence_digest(folder, defence)
    content = {"batch": batch, "date": str(on), "by": by, "defences": list(names), "digests": digests}
    validate(Stake, content, "stake")
    lines = [f"- batch: {batch}", f'  date: "{on}"', f"  by: {by}", f"  defences: [{', '.join(names)}]", "  digests:"]
    return "\n".join([*lines, *(f'    {name}: "{digest}"' for name, digest in digests.items())]) + "\n"


def unpublished_yaml(rules: ContestRules, folder: Path) -> str:
    """The line of contest.yaml that names an unpublished list, a folder with one of images for each group."""
    found = unpublished_list(folder, rules.groups())
    return f'unpublished: "{list_digest(found)}"   # {len(found)} images'


def run(contest: Path, role: str, kind: Confidence, coverage: float, ranking: Ranking) -> str:
    """Compute the model's answers to the eligibility list, and return the threshold for a coverage as text."""
    check_known("confidence", kind, CONFIDENCES)
    check_known("ranking", ranking, RANKINGS)
    check_coverage(coverage)
    edition, groups = Edition(contest / ".." / ".."), read_rules(contest).groups()
    known = eligibility_list(edition, groups)
    # any threshold will do: predictions() does not abstain
    model = ModelDefence(edition, ModelOfEdition(role=role, confidence=kind, threshold=0.0), groups)
    found = model.predictions({sha: each.path for sha, each in known.items()})
    images = [known[sha] for sha in found["image_id"]]
    correct = found["group"].map(lambda group: groups.names[group]).to_numpy() == [each.group for each in images]
    names = [f"{each.path.parent.name}/{each.path.name}" for each in images]
    return threshold_text(f"{role}: {kind}", found["confidence"].to_numpy(), correct, names, coverage, ranking)


def threshold_text(
    model: str, confidence: Floats, correct: Flags, names: Sequence[str], coverage: float, ranking: Ranking
) -> str:
    """The threshold for a coverage of 0 to 1, accuracy by ranking there and at full coverage, confident mistakes.

    Raises CleansetError as `coverage.threshold` does.
    """
    least = threshold(confidence, coverage, ranking)
    answered = f"{(confidence >= least).sum()} of {len(names)} images of the eligibility list"
    lines = [f"{model} of at least {least!r} answers {answered}"]
    for each in RANKINGS:
        for share in (coverage, 1.0):
            at = at_coverage(confidence, correct, names, share, each)
            accuracy = "no accuracy" if at.accuracy is None else f"accuracy {at.accuracy:.4f}"
            counts = f"{at.mistakes} mistakes among {at.covered} images"
            lines.append(f"{each}, {100 * share:g} % coverage: {accuracy}, {counts}")
    mistakes = confident_mistakes(confidence, correct, names, coverage, ranking)
    return "\n".join([*lines, *(f"confident mistake: {name}" for name in mistakes)])
