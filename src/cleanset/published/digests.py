"""The command `digests`: a table of the SHA-256 of every image of the official archive, to verify folders with.

Its first row is of the archive itself: `archive`, its size, and `md5:` with its MD5.
"""

import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from cleanset.dataset.archives import OFFICIAL_IMAGES_MD5
from cleanset.dataset.ilsvrc import VALIDATION_IMAGES, parse_image_name
from cleanset.dataset.layouts import Location, locate
from cleanset.errors import CleansetError
from cleanset.files import read_text, sha256, write_text
from cleanset.machine import available_cores
from cleanset.parsing import parse_csv
from cleanset.progress import tracked
from cleanset.published.archive_md5 import archive_md5
from cleanset.validation import shown

COLUMNS = ("image_id", "size", "sha256")
ARCHIVE = "archive"

_SIZE, _MD5, _SHA256 = re.compile("[1-9][0-9]{0,14}"), re.compile("md5:([0-9a-f]{32})"), re.compile("[0-9a-f]{64}")
_REMEDY = "expected a table that cleanset digests has written"


@dataclass(frozen=True, slots=True)
class DigestTable:
    """Size and SHA-256 by image id, and the MD5 of the archive that they were computed from."""

    archive_md5: str
    images: Mapping[str, tuple[int, str]]

    def check(self, image_id: str, data: bytes, where: str) -> None:
        """Raise CleansetError, naming `where`, unless the bytes are those of the image in the table."""
        if image_id not in self.images:
            raise CleansetError(f"{where}: {image_id} is not in the table of digests; {_REMEDY} from the whole archive")
        size, expected = self.images[image_id]
        if (found := sha256(data)) != expected:
            raise CleansetError(
                f"{where}: {image_id} has {len(data):,} bytes and SHA-256 {found}; expected {size:,} bytes and "
                f"{expected} as in the table of digests: take the original, not resized or encoded anew"
            )


@dataclass(frozen=True, slots=True)
class WrittenDigests:
    """A written table: its path, the number of images, the archive's MD5, and the SHA-256 of the table."""

    out: str
    images: int
    archive_md5: str
    sha256: str


def run(images: Path, out: Path) -> WrittenDigests:
    """Write the table of an archive to the new file `out`.

    Raises CleansetError for anything but a whole, uncompressed tar of validation images, and if `out` exists.
    """
    if images.is_dir():
        raise CleansetError(f"{images}: a folder, which no MD5 fixes; expected ILSVRC2012_img_val.tar")
    if out.exists():
        raise CleansetError(f"{out}: there is something already; expected a new file: name another, or remove it")
    with archive_md5(images) as md5_of_archive:
        locations = locate(images)
        with ThreadPoolExecutor(available_cores()) as pool:
            digests = list(tracked(pool.map(_digest, locations.values()), len(locations), "SHA-256"))
        found = md5_of_archive()
    rows = zip(locations, (at.size for at in locations.values()), digests, strict=True)
    lines = [
        ",".join(COLUMNS),
        f"{ARCHIVE},{images.stat().st_size},md5:{found}",
        *map("{0[0]},{0[1]},{0[2]}".format, rows),
    ]
    text = "".join(f"{line}\n" for line in lines)
    write_text(out, text)
    return WrittenDigests(str(out), len(locations), found, sha256(text.encode()))


def _digest(location: Location) -> str:
    return sha256(location.read())


def render(written: WrittenDigests) -> str:
    """The lines that the command prints."""
    official = (
        "ImageNet's official archive"
        if written.archive_md5 == OFFICIAL_IMAGES_MD5
        else (f"not ImageNet's official archive, whose MD5 is {OFFICIAL_IMAGES_MD5}")
    )
    return (
        f"{written.out}: {written.images:,} of {VALIDATION_IMAGES:,} images, SHA-256 of the table {written.sha256}\n"
        f"made from an archive with MD5 {written.archive_md5}: {official}"
    )


def read_digests(path: Path) -> DigestTable:
    """Read a table. Raises CleansetError, naming the line, for anything that `run` does not write."""
    text = read_text(path, _REMEDY)
    archive = ""
    images: dict[str, tuple[int, str]] = {}
    last = ""
    for line, cells in parse_csv(text, COLUMNS, str(path)):
        image_id, size, digest = cells.values()
        first = not archive
        pattern = _MD5 if first else _SHA256
        named = image_id == ARCHIVE if first else parse_image_name(f"{image_id}.JPEG") == (image_id, None)
        if not (named and _SIZE.fullmatch(size) and pattern.fullmatch(digest) and image_id > last):
            kind = f"{ARCHIVE}, its size and md5:..." if first else "sorted image ids, each with its size and SHA-256"
            raise CleansetError(f"{path}, line {line}: {shown(','.join(cells.values()))}; expected {kind}: {_REMEDY}")
        if first:
            archive = digest.removeprefix("md5:")
        else:
            images[image_id] = int(size), digest
            last = image_id
    if not images:
        raise CleansetError(f"{path}: no images; {_REMEDY}")
    return DigestTable(archive, images)
