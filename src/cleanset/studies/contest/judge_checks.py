"""Checks of what lies in judges/: controls, examples, their images and masks."""

from collections.abc import Collection, Mapping
from pathlib import Path

from PIL import Image

from cleanset.errors import CleansetError
from cleanset.studies.contest.entries import Example
from cleanset.studies.contest.files import ContestFiles
from cleanset.studies.contest.folder_checks import decoded
from cleanset.studies.contest.judge_images import MASKS, image_paths, own_digests
from cleanset.studies.contest.outlines import check_inside
from cleanset.studies.contest.reading import IMAGES, read_examples, visible
from cleanset.validation import shown


def check_judges_folder(contest: Path, files: ContestFiles) -> None:
    """Check that controls and examples answer for both groups, that their images are there, and that masks fit.

    And that outlines, of examples and in answers to controls, are inside their images.

    Raises CleansetError for the first problem.
    """
    folder = contest / "judges"
    for digest, control in sorted(files.controls.items()):
        _check_groups(f"{folder / 'controls.yaml'}: {digest[:12]}…", control.contains, files.rules.classes)
    examples = checked_examples(contest, files)
    wanted = files.controls.keys() | examples.keys()
    digests = own_digests(contest)
    paths = image_paths(contest, files, wanted, digests)
    sizes = {digest: decoded(paths[digest], paths[digest].read_bytes()).size for digest in sorted(wanted)}
    given = [(f"{each}: ", *entry) for each in files.answers for entry in each.answers.items()]
    for where, digest, answer in [*given, *((f"{folder / 'examples.yaml'}: ", *entry) for entry in examples.items())]:
        if digest in sizes and answer.outline is not None:
            try:
                check_inside(answer.outline, *sizes[digest])
            except ValueError as error:
                raise CleansetError(f"{where}{digest[:12]}…: {error}") from None
    for path in visible(folder / IMAGES):
        if digests.get(path) not in wanted:
            raise CleansetError(f"{path}: no control and no example; expected a line in controls.yaml or examples.yaml")
    for path in visible(folder / MASKS):
        _check_mask(path, files, sizes)


def checked_examples(contest: Path, files: ContestFiles) -> Mapping[str, Example]:
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
        raise CleansetError(f"{path}: the mask of no control; expected <SHA-256 of a control's image>.png: remove it")
    try:
        with Image.open(path, formats=["PNG"]) as mask:
            size = mask.size
            white = mask.convert("L").point(lambda value: 255 if value > 127 else 0).getbbox()
    except (OSError, ValueError, SyntaxError) as error:
        raise CleansetError(f"{path}: {error}; expected a PNG, white where the object is") from None
    if size != sizes[path.stem]:
        raise CleansetError(f"{path}: {size[0]} x {size[1]} pixels; expected those of its image, {sizes[path.stem]}")
    if white is None:
        raise CleansetError(f"{path}: nothing in it is white; expected white where the object is")
