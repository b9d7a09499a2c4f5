"""The images that were there before a line of the log, with which submitted ones are compared."""

from collections.abc import Iterator
from functools import partial

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError, install_command
from cleanset.images.fingerprints import can_fingerprint
from cleanset.plumbing.files import read_bytes, sha256
from cleanset.studies.contest.eligibility_lists import check_published, clean_images
from cleanset.studies.contest.images import KnownImage, KnownImages, MeasuredImage, Measures
from cleanset.studies.contest.log_lines import Line
from cleanset.studies.contest.objects import Objects
from cleanset.studies.contest.rules import ContestRules


class ImagesBefore:
    """The images that were there before a line: clean ones, the judges' own, those of earlier weeks and of its week."""

    def __init__(self, edition: Edition, rules: ContestRules, objects: Objects) -> None:
        self._edition = edition
        self.rules = rules
        self._objects = objects
        self._measures = Measures()
        self._clean = 0
        """The number of clean images, which are the first of the indexed ones."""
        self._clean_pixels: set[str] | None = None
        self._known: list[tuple[str, str]] = []
        """Name and SHA-256 of those whose copies are refused, without the clean ones."""
        self._week: list[tuple[str, str, str]] = []
        """Of those of the same week, with their teams."""
        self._indexed: list[KnownImage] = []
        self._index = KnownImages(())

    def add(self, line: Line) -> None:
        """Let the images of a line be there before the next one."""
        if line.kind in ("controls", "examples"):
            self._known += [(f"the judges' {digest}", digest) for digest in getattr(line.entry, line.kind)]
        elif line.kind == "submission":
            self._week += [(line.entry.team, f"{line}, {one.file}", one.sha256) for one in line.entry.images]
        elif line.kind == "publish":
            self._known += [(name, digest) for _, name, digest in self._week]
            self._week = []

    def size(self, digest: str) -> tuple[int, int]:
        """Width and height of an object."""
        found = self._verified(digest)
        return found.width, found.height

    def copies_and_lookalikes(self, line: Line) -> Iterator[str]:
        """A line for the board for each image of a submission that looks like a known one. Raises for a copy."""
        clean_pixels = self._read_clean()
        self._indexed += [self._there(*each) for each in self._known[len(self._indexed) - self._clean :]]
        if len(self._index) < len(self._indexed):
            self._index = KnownImages(self._indexed)
        others = [each[1:] for each in self._week if each[0] != line.entry.team and self._objects.has(each[2])]
        beside = KnownImages([self._there(*each) for each in others])
        for image in line.entry.images:
            path = self._objects.path(image.sha256)
            measured = self._verified(image.sha256)
            named = image.width, image.height, image.pixels_sha256
            if named != (measured.width, measured.height, measured.pixels_sha256):
                raise CleansetError(f"{line}, {image.file}: expected the size and pixels of {path}")
            # by pixels: an image of the clean set that was only saved again is not a new one
            if image.pixels_sha256 in clean_pixels:
                raise CleansetError(f"{path}: an image of the clean set; expected a new image")
            copy = self._index.copied(self._objects.read(image.sha256), measured)
            if copy is not None:
                raise CleansetError(f"{path}: a copy of {copy}; expected a new image")
            near = sorted((*self._index.lookalikes(measured), *beside.lookalikes(measured)))
            for bits, one in near[:1]:
                yield f"for the board: {line}, {image.file} looks like {one}, PDQ distance {bits}"
        if not can_fingerprint():
            yield f"images that look alike are not looked for without PDQ: {install_command('review')}"

    def _read_clean(self) -> set[str]:
        if self._clean_pixels is None:
            clean = clean_images(self._edition)
            if not clean:
                raise CleansetError(
                    f"{self._edition.folder / 'data' / 'export'}: no finished set to compare submitted images with; "
                    "run dvc pull or dvc repro in the edition"
                )
            check_published(self._edition, self.rules)
            for path in (path for path, _ in clean if path.is_file()):
                data = read_bytes(path)
                measured = self._measures.of(path, sha256(data), data)
                name = f"clean image {path.parent.name}/{path.name}"
                self._indexed.append(KnownImage(name, measured, partial(read_bytes, path)))
            self._clean = len(self._indexed)
            self._clean_pixels = {entry.pixels_sha256 for _, entry in clean}
        return self._clean_pixels

    def _there(self, name: str, digest: str) -> KnownImage:
        # an object that was there before is read only if nothing is kept of it: check verifies all
        measured = self._measures.kept(digest) or self._verified(digest)
        return KnownImage(name, measured, partial(self._objects.read, digest))

    def _verified(self, digest: str) -> MeasuredImage:
        """What is known of an object, whose bytes are verified once. Raises CleansetError if it cannot be submitted."""
        path = self._objects.path(digest)
        kept = self._measures.kept(digest) if digest in self._objects.verified else None
        found = kept or self._measures.of(path, digest, self._objects.read(digest))
        if found.problem is not None:
            raise CleansetError(f"{path}: {found.problem}")
        return found
