"""The folder judges/: controls, examples, their images and masks, and how well each judge answers the controls."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from cleanset.errors import CleansetError
from cleanset.files import read_bytes, sha256
from cleanset.studies.contest.entries import JudgeExample
from cleanset.studies.contest.files import ContestFiles
from cleanset.studies.contest.folder_checks import decode_submitted, file_sha256
from cleanset.studies.contest.judging import ControlScore, JudgeAnswer, control_score
from cleanset.studies.contest.outlines import check_inside, overlap
from cleanset.studies.contest.reading import IMAGES, MASKS, mask_path, read_examples, read_mask, visible
from cleanset.validation import shown

FORMATS = ("PNG", "JPEG")


def own_digests(contest: Path) -> dict[Path, str]:
    """The SHA-256 of each file in judges/images/, sorted by path."""
    return {path: file_sha256(path) for path in visible(contest / "judges" / IMAGES) if path.is_file()}


def image_paths(
    contest: Path, files: ContestFiles, wanted: Iterable[str], digests: Mapping[Path, str] | None = None
) -> dict[str, Path]:
    """The files by SHA-256: submitted images where their manifests have them, others in judges/images/.

    `digests`: the result of `own_digests`, if it is known. Raises CleansetError for an image without a file.
    """
    found = {
        image.sha256: contest / str(submission) / IMAGES / image.file
        for submission in files.submissions
        for image in submission.manifest.images
    }
    own = {digest: path for path, digest in (own_digests(contest) if digests is None else digests).items()}
    for digest in sorted(wanted):
        if not found.setdefault(digest, own.get(digest, Path())).is_file():
            raise CleansetError(
                f"{contest / 'judges' / IMAGES}: no file with SHA-256 {digest[:12]}…; expected every control, example "
                "and submitted image: add it, or dvc pull"
            )
    return found


def read_image(paths: Mapping[str, Path], digest: str) -> bytes:
    """The bytes of an image. Raises CleansetError if the file has changed."""
    data = read_bytes(paths[digest])
    if sha256(data) != digest:
        raise CleansetError(f"{paths[digest]}: SHA-256 {sha256(data)}; expected {digest}: the file has changed")
    return data


def check_judges_folder(contest: Path, files: ContestFiles) -> None:
    """Check that controls and examples answer for both groups, and that their images exist and masks fit.

    Outlines of examples and in answers to controls must be inside their images.

    Raises CleansetError for the first problem.
    """
    folder = contest / "judges"
    for digest, control in sorted(files.controls.items()):
        _check_groups(f"{folder / 'controls.yaml'}: {digest[:12]}…", control.contains, files.rules.classes)
    examples = read_checked_examples(contest, files)
    wanted = files.controls.keys() | examples.keys()
    digests = own_digests(contest)
    paths = image_paths(contest, files, wanted, digests)
    sizes = {digest: decode_submitted(paths[digest], paths[digest].read_bytes()).size for digest in sorted(wanted)}
    given = [(f"{each}: ", *entry) for each in files.answers for entry in each.answers.items()]
    for where, digest, answer in [*given, *((f"{folder / 'examples.yaml'}: ", *entry) for entry in examples.items())]:
        if digest in sizes and answer.outline is not None:
            try:
                check_inside(answer.outline, *sizes[digest])
            except ValueError as error:
                raise CleansetError(f"{where}{digest[:12]}…: {error}") from None
    for path in visible(folder / IMAGES):
        if digests.get(path) not in wanted:
            raise CleansetError(
                f"{path}: neither a control nor an example; expected a line in controls.yaml or examples.yaml"
            )
    for path in visible(folder / MASKS):
        _check_mask(path, files, sizes)


def read_checked_examples(contest: Path, files: ContestFiles) -> Mapping[str, JudgeExample]:
    """The examples for judges by their SHA-256. Raises CleansetError for one that does not answer for both groups."""
    examples = read_examples(contest)
    for digest, example in sorted(examples.items()):
        where = f"{contest / 'judges' / 'examples.yaml'}: {digest[:12]}…"
        _check_groups(where, example.contains, files.rules.classes)
    return examples


def _check_groups(where: str, given: Mapping[str, object], groups: Collection[str]) -> None:
    if set(given) != set(groups):
        raise CleansetError(
            f"{where}: contains {', '.join(map(shown, sorted(given))) or 'nothing'}; "
            f"expected {', '.join(sorted(groups))}"
        )


def _check_mask(path: Path, files: ContestFiles, sizes: Mapping[str, tuple[int, int]]) -> None:
    if path.suffix != ".png" or path.stem not in files.controls:
        raise CleansetError(f"{path}: a mask without a control; expected <SHA-256 of a control's image>.png: remove it")
    _mask_of_size(path, sizes[path.stem])


def _mask_of_size(path: Path, size: tuple[int, int]) -> NDArray[np.bool_]:
    """The mask of an image of `size`, width and height. Raises CleansetError for one of another size."""
    mask = read_mask(path)
    # outlines are filled at the size of the mask: one of another size would lower every IoU without an error
    height, width = mask.shape
    if (width, height) != size:
        raise CleansetError(f"{path}: {width} x {height} pixels; expected those of its image, {size[0]} x {size[1]}")
    return mask


@dataclass(frozen=True, slots=True)
class JudgeScore:
    """One judge's number of answers to submitted images, accuracy on controls, and IoU of outlines with known masks."""

    judge: str
    images: int
    controls: ControlScore
    overlaps: tuple[float, ...]

    @property
    def mean_overlap(self) -> float | None:
        """The mean IoU, 0 to 1; a missing outline counts as 0. None without a mask."""
        return sum(self.overlaps) / len(self.overlaps) if self.overlaps else None


def judge_scores(files: ContestFiles, masks: Mapping[str, NDArray[np.bool_]]) -> list[JudgeScore]:
    """The scores of all judges of the roster, by id. `masks`: of control images, by SHA-256."""
    found = []
    for judge in sorted(files.roster):
        answers: dict[str, JudgeAnswer] = {}
        for each in files.answers:
            if each.judge == judge:
                answers |= each.answers
        known = sorted(answers.keys() & files.controls.keys() & masks.keys())
        overlaps = tuple(_overlap(answers[each], masks[each]) for each in known)
        submitted = len(answers.keys() - files.controls.keys())
        found.append(JudgeScore(judge, submitted, control_score(answers, files.controls), overlaps))
    return found


def _overlap(answer: JudgeAnswer, mask: NDArray[np.bool_]) -> float:
    return overlap(answer.outline, mask) if answer.outline is not None else 0.0


def read_masks(contest: Path, files: ContestFiles) -> dict[str, NDArray[np.bool_]]:
    """The masks of the control images that have one. Raises CleansetError for one that does not fit its image."""
    masks = {each: path for each in sorted(files.controls) if (path := mask_path(contest, each)).exists()}
    paths = image_paths(contest, files, masks)
    sizes = {each: decode_submitted(paths[each], read_image(paths, each)).size for each in masks}
    return {each: _mask_of_size(path, sizes[each]) for each, path in masks.items()}


def as_table(scores: list[JudgeScore]) -> Table:
    """The scores as a table with a row for each judge."""
    table = Table("judge", "images", "controls", "correct", "accuracy", "mean IoU")
    for each in scores:
        accuracy, mean = each.controls.accuracy, each.mean_overlap
        table.add_row(
            each.judge, str(each.images), str(each.controls.answered), str(each.controls.correct),
            "–" if accuracy is None else f"{accuracy:.2f}", "–" if mean is None else f"{mean:.2f}",
        )  # fmt: skip
    return table
