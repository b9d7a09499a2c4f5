"""Check lines before they are entered: against each other, as `cross_checks` does, their objects, and copied images.

Each object is compared with what was there before its line: the clean set, the judges' own images, earlier submissions.
"""

from collections.abc import Iterator, Sequence, Set

from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.plumbing.validation import shown
from cleanset.studies.contest.entries import Defence, short
from cleanset.studies.contest.files import repeats
from cleanset.studies.contest.images_before import ImagesBefore
from cleanset.studies.contest.judging import ControlImage, JudgeAnswer, points_outside
from cleanset.studies.contest.log_lines import PUBLISH, Line
from cleanset.studies.contest.log_state import mask_of, state
from cleanset.studies.contest.objects import Objects
from cleanset.studies.contest.rules import ContestRules
from cleanset.studies.contest.runs import over_on
from cleanset.studies.contest.signers import voided
from cleanset.studies.contest.standing import standing


def check_lines(edition: Edition, lines: Sequence[Line], new: int, objects: Objects) -> list[str]:
    """The lines from a number on, as they are shown, and for each image that looks like a known one a line more.

    Raises CleansetError for the first problem: against other lines, in an object, or of a copied image.
    """
    files = state(lines)
    standing(files, lines[-1].day)
    left = [f"left out: {each}" for each in repeats(files.submissions) if each.submission.number >= new]
    return [
        *(f"{each}, {each.digest}" for each in lines[new:]),
        *left,
        *_problems_and_notes(edition, lines, new, objects),
    ]


def _problems_and_notes(edition: Edition, lines: Sequence[Line], new: int, objects: Objects) -> Iterator[str]:
    """See `check_lines`; each object is compared with what was there before its line."""
    void = voided(lines)
    _check_counts([each for each in lines if each.n not in void])
    last = max((each.n for each in lines if each.kind == PUBLISH), default=0)
    before = ImagesBefore(edition, lines[0].entry, objects)
    controls = {sha for each in lines if each.kind == "controls" for sha in each.entry.controls}
    for line in (each for each in lines if each.n not in void):
        # before its week is published nobody but the organizers has the images
        is_there = line.n < last or line.kind != "submission" or all(map(objects.has, _digests(line)))
        if line.n >= (new or 1) and is_there:
            yield from _problems_of(edition, line, before, controls, objects)
        before.add(line)


def _check_counts(lines: Sequence[Line]) -> None:
    over = over_on(lines[0].entry, (each.entry for each in lines if each.kind == "stake"))
    for line in (each for each in lines if each.kind == "run" and each.day < over):
        if line.entry.unpublished is not None and line.entry.unpublished.figures is not None:
            raise CleansetError(
                f"{line}: counts on the unpublished list, though a defence is staked until {over}; expected a run "
                "without counts, and no stake after one with counts"
            )


def _digests(line: Line) -> list[str]:
    return [each.sha256 for each in line.entry.images]


def _problems_of(
    edition: Edition, line: Line, before: ImagesBefore, controls: Set[str], objects: Objects
) -> Iterator[str]:
    match line.kind:
        case "submission":
            yield from before.copies_and_lookalikes(line)
        case "controls" | "examples":
            for digest, one in getattr(line.entry, line.kind).items():
                _check_own_image(f"{line}: {short(digest)}", one, before.rules, before.size(digest))
        case "answers":
            for digest in sorted(controls & line.entry.answers.keys()):
                _check_outline(f"{line}: {short(digest)}", line.entry.answers[digest], before.size(digest))
        case "defence":
            for each in line.entry.files:
                objects.read(each.sha256)
            _check_public(edition, line.entry)


def _check_own_image(where: str, one: ControlImage | JudgeAnswer, rules: ContestRules, size: tuple[int, int]) -> None:
    if one.contains.keys() != rules.classes.keys():
        given, expected = (", ".join(map(shown, sorted(each))) for each in (one.contains, rules.classes))
        raise CleansetError(f"{where}: contains {given or 'nothing'}; expected {expected}")
    if isinstance(one, JudgeAnswer):
        _check_outline(where, one, size)
    elif size[0] != size[1]:
        raise CleansetError(f"{where}: {size[0]} x {size[1]} pixels; expected a square image, as submitted ones are")
    # outlines are filled at the size of the mask: one of another size would lower every IoU without an error
    elif one.mask is not None and (shape := mask_of(one.mask).shape)[::-1] != size:
        raise CleansetError(
            f"{where}: a mask of {shape[1]} x {shape[0]} pixels; expected its image's {size[0]} x {size[1]}"
        )


def _check_outline(where: str, answer: JudgeAnswer, size: tuple[int, int]) -> None:
    for problem in points_outside(answer.outline or (), *size):
        raise CleansetError(f"{where}: {problem}")


def _check_public(edition: Edition, defence: Defence) -> None:
    expected = None if defence.model is None else read_params(edition.folder).network(defence.model.role).sha256
    given = {each.sha256 for each in defence.files if each.role == "weights"}
    given |= set() if defence.public is None else {defence.public.sha256}
    if defence.open and expected is not None and expected not in given:
        raise CleansetError(
            f"{defence.name}: open, with weights of SHA-256 {', '.join(sorted(given))}; expected {expected}, "
            "as for its model in the edition's params.yaml"
        )
