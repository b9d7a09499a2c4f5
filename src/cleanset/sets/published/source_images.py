"""A user's copy of ImageNet's images, verified: by the archive's MD5, or by a table of digests (`cleanset digests`).

MD5 of 6.7 GB takes one core ten seconds. hashlib releases the interpreter's lock, so the images are read and decoded
meanwhile on the others.

The table has the SHA-256 of every image of the official archive. Its first row describes the archive itself: `archive`,
its size, and `md5:` with its MD5.
"""

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from cleanset.classes import imagenet
from cleanset.dataset.archives import SOURCES, Location, locate
from cleanset.dataset.ilsvrc import OFFICIAL_IMAGES_MD5
from cleanset.errors import CleansetError
from cleanset.image_ids import VALIDATION_IMAGES, is_image_id
from cleanset.images.codec import ImageFacts, inspect
from cleanset.plumbing.csv_files import csv_text, read_rows
from cleanset.plumbing.files import check_regular, md5, open_file, sha256, sha256_of, write_text
from cleanset.plumbing.progress import found_in_threads
from cleanset.plumbing.validation import SHA256_FORM, first_names, shown
from cleanset.sets.description import NOT_VERIFIED
from cleanset.sets.published.lists import DIGESTS_FILE, ilsvrc_class
from cleanset.vocabulary import SourceCheck

_BLOCK_BYTES = 16 * 2**20
"""After each block the thread waits for the interpreter's lock, up to 5 ms; 1 MiB takes only 2 ms to hash."""


@contextmanager
def archive_md5(path: Path) -> Iterator[Callable[[], str]]:
    """Begin to compute the MD5 of a file; give a function that waits for it. Leaving the block stops the computation.

    Raises CleansetError for a missing file and for anything but a regular one.
    """
    check_archive_there(path)
    stopped = threading.Event()

    def blocks() -> Iterator[bytes]:
        with open_file(path) as file:
            while (block := file.read(_BLOCK_BYTES)) and not stopped.is_set():
                yield block

    with ThreadPoolExecutor(1) as pool:
        computed = pool.submit(lambda: md5(blocks()))
        try:
            yield computed.result
        finally:
            stopped.set()


def check_archive_there(path: Path) -> None:
    """Raise CleansetError for a missing file, saying where to get it, and for anything but a regular one."""
    try:
        check_regular(path)
    except FileNotFoundError:
        source = SOURCES["ILSVRC2012_img_val.tar"]
        raise CleansetError(
            f"{path}: missing; expected ImageNet's validation images, the tar or a folder of them: download it from "
            f"{source}"
        ) from None


def check_md5(path: Path, found: str, expected: str) -> None:
    """Raise CleansetError unless an archive has the expected MD5."""
    if found != expected:
        which = "the official archive" if expected == OFFICIAL_IMAGES_MD5 else "the table of digests"
        raise CleansetError(
            f"{path}: MD5 {found}, expected {expected} of {which}: download it again, or give --images a folder with "
            "its images, which are taken unchanged"
        )


DIGEST_COLUMNS = ("image_id", "size", "sha256")
ARCHIVE = "archive"

_SIZE = re.compile("[1-9][0-9]{0,14}")
_MD5 = re.compile("md5:([0-9a-f]{32})")
_REMEDY = "expected a table that cleanset digests has written"


@dataclass(frozen=True, slots=True)
class DigestTable:
    """Size and SHA-256 by image id, and the MD5 of the archive that they were computed from."""

    archive_md5: str
    images: Mapping[str, tuple[int, str]]

    def check(self, image_id: str, data: bytes, where: str) -> None:
        """Raise CleansetError, naming `where`, unless the bytes match the image in the table."""
        if image_id not in self.images:
            raise CleansetError(f"{where}: {image_id} is not in the table of digests; {_REMEDY} from the whole archive")
        size, expected = self.images[image_id]
        if (found := sha256(data)) != expected:
            raise CleansetError(
                f"{where}: {image_id} has {len(data):,} bytes and SHA-256 {found}; expected {size:,} bytes and "
                f"{expected} as in the table of digests: take the original, not resized or encoded again"
            )


def run(images: Path, out: Path) -> str:
    """Write the table of an archive to the new file `out`; return a summary.

    Raises CleansetError for anything but a whole, uncompressed tar of validation images, and if `out` exists.
    """
    if images.is_dir():
        raise CleansetError(f"{images}: a folder, which no MD5 fixes; expected ILSVRC2012_img_val.tar")
    if out.exists():
        raise CleansetError(f"{out}: exists already; expected a new file: name another, or remove it")
    with archive_md5(images) as md5_of_archive:
        locations = locate(images)
        digests = found_in_threads(lambda each: sha256(each.read()), locations.values(), "SHA-256")
        found = md5_of_archive()
    rows = zip(locations, (at.size for at in locations.values()), digests, strict=True)
    text = csv_text(DIGEST_COLUMNS, [(ARCHIVE, images.stat().st_size, f"md5:{found}"), *rows])
    write_text(out, text)
    official = "ImageNet's official archive"
    if found != OFFICIAL_IMAGES_MD5:
        official = f"not ImageNet's official archive, whose MD5 is {OFFICIAL_IMAGES_MD5}"
    return (
        f"{out}: {len(locations):,} of {VALIDATION_IMAGES:,} images, SHA-256 of the table {sha256(text.encode())}\n"
        f"made from an archive with MD5 {found}: {official}"
    )


def read_digests(path: Path) -> DigestTable:
    """Read a table. Raises CleansetError, naming the line, for anything that `run` does not write."""
    archive, last = "", ""
    images: dict[str, tuple[int, str]] = {}
    for where, cells in read_rows(path, DIGEST_COLUMNS, dict[str, str], _REMEDY, is_own=True):
        image_id, size, digest = cells.values()
        first = not archive
        pattern = _MD5 if first else SHA256_FORM
        named = image_id == ARCHIVE if first else is_image_id(image_id, imagenet())
        if not (named and _SIZE.fullmatch(size) and pattern.fullmatch(digest) and image_id > last):
            kind = f"{ARCHIVE}, its size and md5:..." if first else "sorted image ids, each with its size and SHA-256"
            raise CleansetError(f"{where}: {shown(','.join(cells.values()))}; expected {kind}: {_REMEDY}")
        if first:
            archive = digest.removeprefix("md5:")
        else:
            images[image_id] = int(size), digest
            last = image_id
    if not images:
        raise CleansetError(f"{path}: no images; {_REMEDY}")
    return DigestTable(archive, images)


MAX_NAMED_IMAGES = 10
"""Missing images that a message names."""
MAX_SHARE_OF_ONE_SIDE = 0.9
"""Share of images with one short, or one long, side above which a folder was resized.

67 % of 500 original images have a long side of 500 pixels, and 22 % a short one of 375; no side is more frequent.
"""


CHECKED: dict[SourceCheck, str] = {
    "archive_md5": "verified: the archive has the expected MD5",
    "image_sha256": "verified: every image has the SHA-256 of the table of digests",
    "none": NOT_VERIFIED,
}
"""How images were verified, in words."""


class SourceImages:
    """The images of a set, read from a tar or a folder, and compared with a table of digests, if given.

    Raises CleansetError for a missing archive and for an invalid table.
    """

    def __init__(self, images: Path, digests: Path | None) -> None:
        self.images = images
        self.is_archive = not images.is_dir()
        if self.is_archive:
            check_archive_there(images)
        path = digests or (DIGESTS_FILE if DIGESTS_FILE.is_file() else None)
        self.table = table = read_digests(path) if path else None
        self.table_sha256 = sha256_of(path) if path else ""
        self.expected_md5 = table.archive_md5 if table else OFFICIAL_IMAGES_MD5
        checks: tuple[SourceCheck, SourceCheck] = ("archive_md5", "image_sha256" if table else "none")
        self.check: SourceCheck = checks[0] if self.is_archive else checks[1]
        self._locations: Mapping[str, Location] = {}

    @property
    def is_official(self) -> bool:
        """Whether the images are ImageNet's, as far as can be known."""
        return self.check == "none" or self.expected_md5 == OFFICIAL_IMAGES_MD5

    def locate(self, needed: pd.DataFrame) -> None:
        """Look the images up. Raises CleansetError if one is missing, or in the folder of another class."""
        self._locations = locate(self.images)
        missing = sorted(set(needed["image_id"]) - self._locations.keys())
        if missing:
            raise CleansetError(
                f"{self.images}: missing images: {len(missing):,} of {len(needed):,}: "
                f"{first_names(missing, MAX_NAMED_IMAGES)}; expected ImageNet's validation images: add them"
            )
        for image_id in needed["image_id"]:
            found, expected = self._locations[image_id].wnid, imagenet().keys[ilsvrc_class(image_id)]
            if found not in (None, expected):
                raise CleansetError(
                    f"{self.images}: {image_id} in the folder or with the name of {found}; expected {expected}, its "
                    "ILSVRC2012 label: move it"
                )

    def read(self, image_id: str) -> tuple[bytes, ImageFacts]:
        """The bytes of an image, and its measurements. Raises CleansetError if they are not the original."""
        data = self._locations[image_id].read()
        if self.table is not None:
            self.table.check(image_id, data, str(self.images))
        try:
            return data, inspect(data)
        except ValueError as error:
            raise CleansetError(
                f"{self.images}: {image_id} cannot be decoded ({error}); expected the JPEG of ImageNet: fetch it again"
            ) from None


def check_sides(images: Path, measured: Sequence[ImageFacts]) -> None:
    """Raise CleansetError if nearly all images have one short or one long side: then they were resized."""
    for name, shorter in (("short", min), ("long", max)):
        side, count = Counter(shorter(each.width, each.height) for each in measured).most_common(1)[0]
        if count > MAX_SHARE_OF_ONE_SIDE * len(measured):
            raise CleansetError(
                f"{images}: {count:,} of {len(measured):,} images have a {name} side of {side} pixels: resized; "
                "expected the originals, whose sides differ: take these"
            )
