"""Checks of what lines name beside themselves: their objects, copied images, outlines, and models of the edition.

Each image is compared with what was there before: the clean set, the judges' own images, earlier submissions.
"""

from collections.abc import Iterator
from functools import partial

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.images.outlines import check_outline
from cleanset.plumbing.files import read_bytes
from cleanset.studies.contest.entries import PUBLISH, AnswerFile, AnyLine, Defence, Line, SubmissionManifest, short
from cleanset.studies.contest.images import KnownImages, copied, image_entry, rgb
from cleanset.studies.contest.lists import check_published, clean_images
from cleanset.studies.contest.log import Log
from cleanset.studies.contest.models import check_sees
from cleanset.studies.contest.objects import Objects
from cleanset.studies.contest.rules import ContestLimits


def check_objects(edition: Edition, log: Log, new: int, objects: Objects) -> Iterator[str]:
    """Notes for the board on the lines from a number on. Raises CleansetError for the first problem in them."""
    lines = [each for each in log.lines if each.n not in log.void]
    known = KnownImages()
    # other lines need no image that was there before
    compares = any(each.kind == "submission" and each.n >= new for each in lines)
    if compares:
        check_published(edition, log.rules)
        clean = clean_images(edition)
        if not clean:
            raise CleansetError(f"{edition.folder}: no finished set to compare images with: run dvc pull or dvc repro")
        for path, _ in clean:
            known.add(f"clean image {path.parent.name}/{path.name}", partial(read_bytes, path))
    published = max((each.n for each in log.lines if each.kind == PUBLISH), default=0)
    for line in lines:
        if line.kind in ("controls", "examples") and (compares or line.n >= new):
            for digest in getattr(line.entry, line.kind):
                known.add(f"the judges' {digest}", partial(objects.read, digest))
        elif line.kind == "submission" and compares:
            # before its week is published nobody but the organizers has the images
            there = all(objects.path(each.sha256).exists() for each in line.entry.images)
            if there or line.n < published:
                yield from _check_submission(line, objects, known, is_new=line.n >= new)
        elif line.n >= new:
            _check_line(edition, log.rules.limits, line, objects)


def _check_submission(
    line: Line[SubmissionManifest], objects: Objects, known: KnownImages, *, is_new: bool
) -> Iterator[str]:
    for image in line.entry.images if is_new else ():
        path = objects.path(image.sha256)
        data = objects.read(image.sha256)
        if image.model_dump() != image_entry(image.file, data, path):
            raise CleansetError(f"{line}, {image.file}: expected the size and pixels of {path}")
        like = known.like(rgb(data, path))
        copy = copied(rgb(data, path), like)
        if copy is not None:
            raise CleansetError(f"{path}: a copy of {copy}; expected a new image")
        for each in like[:1]:
            yield f"for the board: {image.file} in {line} looks like {each.name}"
    for image in line.entry.images:
        known.add(f"{image.file} in {line}", partial(objects.read, image.sha256))


def _check_line(edition: Edition, limits: ContestLimits, line: AnyLine, objects: Objects) -> None:
    match line.entry:
        case AnswerFile(answers=answers):
            for digest, answer in answers.items():
                try:
                    if answer.outline is not None:
                        check_outline(answer.outline, *rgb(objects.read(digest), digest).size)
                except ValueError as error:
                    raise CleansetError(f"{line}: {short(digest)}: {error}") from None
        case Defence(model=model, program=program):
            if model is not None:
                check_sees(edition, model.role, limits)
            for digest in program.files.values() if program is not None else ():
                objects.read(digest)
