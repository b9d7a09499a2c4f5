"""Checks of what lines name besides themselves: their objects, copied images, outlines, and models of the edition.

Each submitted image is compared with what was there before: the clean set, the judges' own images, earlier
submissions. A copy has the same pixels but for a level on average, and is refused. Images that look alike, such as a
known one scaled, turned or encoded again with a low quality, may still be new, so that they are listed for the board.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from PIL import Image

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.images.codec import decode_file, pixels_sha256
from cleanset.images.outlines import check_outline
from cleanset.images.shown_otherwise import problem_for_viewers
from cleanset.plumbing.files import read_bytes, sha256
from cleanset.statistics.basics import Singles
from cleanset.studies.contest.entries import PUBLISH, AnswerFile, AnyLine, Defence, Line, SubmissionManifest, short
from cleanset.studies.contest.log import Log, Objects
from cleanset.studies.contest.models import check_sees
from cleanset.studies.contest.rules import ContestLimits
from cleanset.studies.contest.runs import checked_clean_images

MAX_CHANGE = 1.0
"""Mean absolute difference of pixels, of 255, up to which an image is the known one."""
MAX_SMALL_CHANGE = 4.0
"""Mean absolute difference of small copies, of 255, up to which images look alike.

An average of pixels changes by no more than they do on average: no copy is beyond it.
"""
_SMALL = (8, 8)
"""Width and height of small copies, in pixels."""


def rgb(data: bytes, where: object) -> Image.Image:
    """The image in the bytes of a file, in RGB. Raises CleansetError if it cannot be decoded."""
    return decode_file(data, where, "a PNG or JPEG that can be decoded").convert("RGB")


def image_entry(name: str, data: bytes, where: object) -> dict[str, str | int]:
    """An image of a submission, as the log has it. Raises CleansetError for an image that cannot be submitted."""
    image = decode_file(data, where, "a PNG or JPEG that can be decoded")
    problem = problem_for_viewers(image, data)
    if problem is not None:
        raise CleansetError(f"{where}: {problem}")
    size = {"width": image.width, "height": image.height}
    return {"file": name, "sha256": sha256(data), "pixels_sha256": pixels_sha256(image), **size}


def _small(image: Image.Image) -> Singles:
    return np.asarray(image.resize(_SMALL, Image.Resampling.BOX), np.float32)


class KnownImage(NamedTuple):
    """An image that was there before; `read`: its bytes, which are asked for only if it may have been copied."""

    name: str
    size: tuple[int, int]
    small: Singles
    read: Callable[[], bytes]


def known_image(name: str, read: Callable[[], bytes]) -> KnownImage:
    """An image whose copies are refused. Raises CleansetError, with its name, if it cannot be decoded."""
    image = rgb(read(), name)
    return KnownImage(name, image.size, _small(image), read)


def lookalikes(image: Image.Image, known: Sequence[KnownImage]) -> list[KnownImage]:
    """The known images that look like another, also turned or mirrored; the most similar first."""
    own = _small(image)
    ways = [np.rot90(each, times) for each in (own, own[:, ::-1]) for times in range(4)]
    small = np.array([each.small for each in known]).reshape(-1, *own.shape)
    change = np.min([np.abs(small - each).mean((1, 2, 3), dtype=np.float64) for each in ways], axis=0)
    return [known[place] for place in np.argsort(change, kind="stable") if change[place] <= MAX_SMALL_CHANGE]


def copied(image: Image.Image, known: Iterable[KnownImage]) -> str | None:
    """The known image that an image is a copy of, by its name and with the evidence; None for a new image."""
    pixels = np.asarray(image, np.int16)
    for each in known:
        if each.size == image.size:
            change = float(np.abs(pixels - np.asarray(rgb(each.read(), each.name))).mean())
            if change <= MAX_CHANGE:
                return f"{each.name}, which differs by {change:.2g} of 255 on average"
    return None


def check_objects(edition: Edition, log: Log, new: int, objects: Objects) -> Iterator[str]:
    """Notes for the board on the lines starting with a number. Raises CleansetError for the first problem in them."""
    lines = [each for each in log.lines if each.n not in log.void]
    known: list[KnownImage] = []
    # other lines need no image that was there before
    compares = any(each.kind == "submission" and each.n >= new for each in lines)
    if compares:
        clean = checked_clean_images(edition, log.rules)
        if not clean:
            raise CleansetError(f"{edition.folder}: no finished set to compare images with: run dvc pull or dvc repro")
        for path, _ in clean:
            known.append(known_image(f"clean image {path.parent.name}/{path.name}", partial(read_bytes, path)))
    published = max((each.n for each in log.lines if each.kind == PUBLISH), default=0)
    for line in lines:
        if line.kind in ("controls", "examples") and (compares or line.n >= new):
            digests = getattr(line.entry, line.kind)
            known += [known_image(f"the judges' {each}", partial(objects.read, each)) for each in digests]
        elif line.kind == "submission" and compares:
            # before its week is published nobody but the organizers has the images
            there = all(objects.path(each.sha256).exists() for each in line.entry.images)
            if there or line.n < published:
                yield from _check_submission(line, objects, known, is_new=line.n >= new)
        elif line.n >= new:
            _check_line(edition, log.rules.limits, line, objects)


def _check_submission(
    line: Line[SubmissionManifest], objects: Objects, known: list[KnownImage], *, is_new: bool
) -> Iterator[str]:
    for image in line.entry.images:
        name = f"{image.file} in {line}"
        if is_new:
            path = objects.path(image.sha256)
            data = objects.read(image.sha256)
            if image.model_dump() != image_entry(image.file, data, path):
                raise CleansetError(f"{name}: not the size and pixels of {path}; expected these: void the line")
            like = lookalikes(rgb(data, path), known)
            copy = copied(rgb(data, path), like)
            if copy is not None:
                raise CleansetError(f"{path}: a copy of {copy}; expected a new image: take it out")
            for each in like[:1]:
                yield f"for the board: {name} looks like {each.name}"
        known.append(known_image(name, partial(objects.read, image.sha256)))


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
