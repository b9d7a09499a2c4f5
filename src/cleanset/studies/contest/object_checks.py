"""Checks of what lines name beside themselves: their objects, copied images, outlines, and models of the edition.

Each image is compared with what was there before: the clean set, the judges' own images, earlier submissions.
"""

from collections.abc import Iterator
from functools import cached_property, partial

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.images.outlines import check_outline
from cleanset.plumbing.files import read_bytes, sha256
from cleanset.studies.contest.entries import PUBLISH, short
from cleanset.studies.contest.images import KnownImage, KnownImages, MeasuredImage, Measures, copied
from cleanset.studies.contest.lists import check_published, clean_images
from cleanset.studies.contest.log import Line, Log
from cleanset.studies.contest.models import check_sees
from cleanset.studies.contest.objects import Objects


class ObjectChecks:
    """The checks of a log's lines against their objects, line by line."""

    def __init__(self, edition: Edition, log: Log, objects: Objects) -> None:
        self._edition = edition
        self._log = log
        self._objects = objects
        self._measures = Measures()
        self._published = max((each.n for each in log.lines if each.kind == PUBLISH), default=0)
        self._there: list[tuple[str, str]] = []
        """Name and SHA-256 of the judges' and of submitted images."""

    def check(self, new: int) -> Iterator[str]:
        """Notes for the board on the lines from a number on. Raises CleansetError for the first problem in them."""
        for line in (each for each in self._log.lines if each.n not in self._log.void):
            if line.n >= new:
                yield from self._check_line(line)
            if line.kind in ("controls", "examples"):
                self._there += [(f"the judges' {digest}", digest) for digest in getattr(line.entry, line.kind)]
            elif line.kind == "submission":
                self._there += [(f"{one.file} in {line}", one.sha256) for one in line.entry.images]

    def _check_line(self, line: Line) -> Iterator[str]:
        if line.kind == "submission":
            # before its week is published nobody but the organizers has the images
            if line.n < self._published or all(self._objects.path(each.sha256).is_file() for each in line.entry.images):
                yield from self._submission(line)
        elif line.kind in ("controls", "examples", "answers"):
            for digest, one in getattr(line.entry, line.kind).items():
                size = self._verified(digest)
                outline = getattr(one, "outline", None)
                try:
                    if outline is not None:
                        check_outline(outline, size.width, size.height)
                except ValueError as error:
                    raise CleansetError(f"{line}: {short(digest)}: {error}") from None
        elif line.kind == "defence" and line.entry.model is not None:
            check_sees(self._edition, line.entry.model.role, self._log.rules.limits)
        elif line.kind == "defence":
            for digest in line.entry.program.files.values():
                self._objects.read(digest)

    def _verified(self, digest: str) -> MeasuredImage:
        """What is known of an object, whose bytes are read. Raises CleansetError if it cannot be submitted."""
        self._objects.read(digest)
        found = self._known("", digest).measured
        if found.problem is not None:
            raise CleansetError(f"{self._objects.path(digest)}: {found.problem}")
        return found

    def _known(self, name: str, digest: str) -> KnownImage:
        read = partial(self._objects.read, digest)
        return KnownImage(name, self._measures.of(self._objects.path(digest), digest, read), read)

    def _submission(self, line: Line) -> Iterator[str]:
        before = KnownImages([*self._clean, *(self._known(*each) for each in self._there)])
        for image in line.entry.images:
            path = self._objects.path(image.sha256)
            measured = self._verified(image.sha256)
            named = image.width, image.height, image.pixels_sha256
            if named != (measured.width, measured.height, measured.pixels_sha256):
                raise CleansetError(f"{line}, {image.file}: expected the size and pixels of {path}")
            like = before.like(measured)
            copy = copied(self._objects.read(image.sha256), measured, like)
            if copy is not None:
                raise CleansetError(f"{path}: a copy of {copy}; expected a new image")
            for each in like[:1]:
                yield f"for the board: {image.file} in {line} looks like {each.name}"

    @cached_property
    def _clean(self) -> list[KnownImage]:
        """The images of the finished sets."""
        clean = clean_images(self._edition)
        if not clean:
            raise CleansetError(
                f"{self._edition.folder / 'data' / 'export'}: no finished set to compare submitted images with; "
                "run dvc pull or dvc repro in the edition"
            )
        check_published(self._edition, self._log.rules)
        found = []
        for path, _ in clean:
            read = partial(read_bytes, path)
            name = f"clean image {path.parent.name}/{path.name}"
            found.append(KnownImage(name, self._measures.of(path, sha256(read()), read), read))
        return found
