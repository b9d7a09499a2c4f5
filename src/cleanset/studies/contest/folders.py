"""The folders of submissions, defences and judges checked against their manifests; the manifest of a submission."""

import os
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.files import sha256
from cleanset.images.codec import pixels_sha256
from cleanset.sets.folder import read_entries
from cleanset.sets.manifest import MANIFEST
from cleanset.studies.contest.files import (
    ContestFiles,
    Defence,
    JudgeExample,
    Submission,
    SubmissionManifest,
    SubmittedImage,
)
from cleanset.studies.contest.images import KnownImage, copied, decode_submitted
from cleanset.studies.contest.outlines import check_inside
from cleanset.studies.contest.reading import (
    DEFENCE_YAML,
    IMAGES,
    MANIFEST_YAML,
    MASKS,
    NOTES,
    file_sha256,
    image_paths,
    own_digests,
    read_examples,
    refuse_link,
    visible,
)
from cleanset.studies.contest.rules import ContestRules
from cleanset.validation import first_problem, shown

MAX_IMAGE_BYTES = 100_000_000


def clean_pixels(edition: Edition) -> frozenset[str]:
    """The SHA-256 of the pixels of every image in the edition's finished sets. Raises CleansetError without a set."""
    folders = sorted(path.parent for path in (edition.folder / "data" / "export").glob(f"*/{MANIFEST}"))
    if not folders:
        raise CleansetError(
            f"{edition.folder / 'data' / 'export'}: no finished set to compare submitted images with; "
            "run dvc pull or dvc repro in the edition"
        )
    return frozenset(entry.pixels_sha256 for folder in folders for entry in read_entries(folder))


def check_submission(
    folder: Path, submission: Submission, rules: ContestRules, clean: Collection[str], known: Sequence[KnownImage]
) -> None:
    """Check a submission's folder: all images of the manifest and no others, decodable, and new.

    `clean`: digests of the clean set's pixels. `known`: images whose copies are refused. Raises CleansetError for the
    first problem.
    """
    named = {image.file for image in submission.manifest.images}
    if len(named) < len(submission.manifest.images):
        raise CleansetError(f"{folder / MANIFEST_YAML}: a file named twice; expected each image once")
    for path in visible(folder):
        if path.name not in (MANIFEST_YAML, IMAGES, f"{IMAGES}.dvc"):
            raise CleansetError(f"{path}: not in the manifest; expected {MANIFEST_YAML} and {IMAGES}/ only: remove it")
    for path in visible(folder / IMAGES):
        if path.name not in named:
            raise CleansetError(f"{path}: not in the manifest; expected the images that it names only: remove it")
    for image in submission.manifest.images:
        _check_image(folder / IMAGES / image.file, image, rules.limits.max_side, clean)
        copy = copied(folder / IMAGES / image.file, known)
        if copy is not None:
            raise CleansetError(f"{folder / IMAGES / image.file}: a copy of {copy}; expected a new image")


def _check_image(path: Path, image: SubmittedImage, max_side: int, clean: Collection[str]) -> None:
    refuse_link(path)
    if not path.is_file():
        raise CleansetError(f"{path}: missing; expected every image that the manifest names: add it, or dvc pull")
    if path.stat().st_size > MAX_IMAGE_BYTES:
        raise CleansetError(f"{path}: {path.stat().st_size:,} bytes; expected at most {MAX_IMAGE_BYTES:,}")
    data = path.read_bytes()
    if sha256(data) != image.sha256:
        raise CleansetError(f"{path}: SHA-256 {sha256(data)}; expected {image.sha256} of the manifest")
    found = decode_submitted(path, data)
    if max(found.size) > max_side:
        raise CleansetError(f"{path}: {found.width} x {found.height} pixels; expected at most {max_side} a side")
    if found.size != (image.width, image.height):
        raise CleansetError(
            f"{path}: {found.width} x {found.height} pixels; expected {image.width} x {image.height} of the manifest"
        )
    digest = pixels_sha256(found)
    if digest != image.pixels_sha256:
        raise CleansetError(f"{path}: pixels_sha256 {digest}; expected {image.pixels_sha256} of the manifest")
    # by pixels: an image of the clean set that was only saved again is not a new one
    if digest in clean:
        raise CleansetError(f"{path}: an image of the clean set; expected another: only new images are submitted")


def manifest_entry(path: Path) -> dict[str, str | int]:
    """The entry of an image in a manifest. Raises CleansetError for an image that cannot be submitted."""
    data = path.read_bytes()
    found = decode_submitted(path, data)
    digests = {"sha256": sha256(data), "pixels_sha256": pixels_sha256(found)}
    return {"file": path.name, **digests, "width": found.width, "height": found.height}


def manifest_yaml(target: str, submitted: str, images: Sequence[Path]) -> str:
    """The manifest of a submission as YAML. Raises CleansetError for images that no contest accepts."""
    for path in images:
        if not path.is_file():
            raise CleansetError(f"{path}: no such file; expected a PNG or JPEG")
    entries = [manifest_entry(path) for path in images]
    try:
        SubmissionManifest.model_validate({"submitted": submitted, "target": target, "images": entries})
    except ValidationError as error:
        raise CleansetError(f"manifest: {first_problem(error)}") from None
    lines = [f'submitted: "{submitted}"', f"target: {target}", "images:"]
    for entry in entries:
        first, *others = (f"{key}: {_quoted(value)}" for key, value in entry.items())
        lines += [f"  - {first}", *(f"    {each}" for each in others)]
    return "\n".join(lines) + "\n"


def _quoted(value: str | int) -> str:
    """A value in YAML; text in quotes, since a digest may look like a number."""
    return f'"{value}"' if isinstance(value, str) else str(value)


def check_defence(folder: Path, defence: Defence) -> None:
    """Check that a defence's files are there with their SHA-256, and no others. Raises CleansetError."""
    expected = {each.path: each.sha256 for each in defence.files}
    for path in _files_below(folder):
        name = path.relative_to(folder).as_posix()
        if name not in expected and name != DEFENCE_YAML:
            raise CleansetError(f"{path}: not among the files of {DEFENCE_YAML}; expected it there with its SHA-256")
    for name, digest in sorted(expected.items()):
        path = folder / name
        if not path.is_file():
            raise CleansetError(f"{path}: missing; expected every file that {DEFENCE_YAML} names: add it, or dvc pull")
        found = file_sha256(path)
        if found != digest:
            raise CleansetError(f"{path}: SHA-256 {found}; expected {digest} of {DEFENCE_YAML}: the file has changed")


def copy_defence(folder: Path, to: Path, defence: Defence) -> None:
    """Copy what the digest of a defence is of, and nothing else: what lies beside it is not there when it runs.

    Raises CleansetError as `check_defence` does, of the copy.
    """
    for name in (DEFENCE_YAML, *(each.path for each in defence.files)):
        copy = to / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / name, copy)
        # neither permissions nor dates are in the digest
        copy.chmod(0o555)
        os.utime(copy, (0, 0))
    check_defence(to, defence)


def _files_below(folder: Path) -> Iterator[Path]:
    for path in visible(folder):
        if path.is_dir():
            yield from _files_below(path)
        elif path.suffix != ".dvc" and path.name != NOTES:
            yield path


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
        # that those of controls have the size of their images was seen when they were read
        if path.suffix != ".png" or path.stem not in files.controls:
            raise CleansetError(
                f"{path}: a mask without a control; expected <SHA-256 of a control's image>.png: remove it"
            )


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
