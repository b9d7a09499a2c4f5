"""The raw archives: their checksums, and whether they are the official ones."""

import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from cleanset.errors import CleansetError
from cleanset.files import BLOCK_BYTES, blocks_of, check_regular, md5, read_text
from cleanset.progress import tracked
from cleanset.validation import shown

SOURCES = {
    "ILSVRC2012_img_val.tar": "image-net.org, after signing up: ILSVRC2012, Validation images (all tasks), 6.3 GB",
    "ILSVRC2012_devkit_t12.tar.gz": "image-net.org, after signing up: ILSVRC2012, Development kit (Task 1 & 2), 2.5 MB",
}
OFFICIAL_IMAGES_MD5 = "29b22e2961454d5413ddabcf34fc5622"
"""MD5 of ILSVRC2012_img_val.tar, as image-net.org gives it."""

_LINE = re.compile(r"([0-9a-f]{32}) [ *](.+)")


def read_md5_list(path: Path) -> dict[str, str]:
    """MD5 digest by file name, from a list in md5sum's format.

    Raises CleansetError for any other line, and for a name that occurs twice.
    """
    digests: dict[str, str] = {}
    text = read_text(path, "expected a line of md5sum for each raw file")
    for number, line in enumerate(text.splitlines(), start=1):
        match = _LINE.fullmatch(line)
        if match is None:
            raise CleansetError(
                f"{path}, line {number}: {shown(line)}; expected what md5sum prints: digest, two spaces, path"
            )
        if match[2] in digests:
            raise CleansetError(
                f"{path}, line {number}: {shown(match[2])} a second time; expected one line: remove one"
            )
        digests[match[2]] = match[1]
    return digests


def check_archive(path: Path, name: str, digests: dict[str, str], listed_in: Path) -> None:
    """Check that the raw file at `path` has the MD5 that `digests`, read from `listed_in`, gives for `name`.

    Raises CleansetError if the file is missing, not listed, or has another digest.
    """
    if path.is_symlink() and not path.exists():
        raise CleansetError(
            f"{path}: a link to {path.readlink()}, which does not exist; expected an absolute path, or one "
            f"relative to {path.parent}"
        )
    if path.exists():
        check_regular(path)
    else:
        source = SOURCES.get(path.name)
        remedy = f"download it from {source}; put it there or link to it" if source else _CORRECT
        raise CleansetError(f"{path}: missing; {remedy}")
    if name not in digests:
        raise CleansetError(f"{listed_in}: no line for {name}; add what md5sum {name} prints")
    found = _md5(path)
    if found != digests[name]:
        raise CleansetError(
            f"{path}: MD5 {found}, expected {digests[name]} as in raw.md5: fetch it again, "
            "or correct raw.md5 if these bytes are meant"
        )


_CORRECT = "put it there or correct params.yaml"


def _md5(path: Path) -> str:
    count = -(-path.stat().st_size // BLOCK_BYTES)
    return md5(tracked(blocks_of(path), count, f"MD5 of {path.name}"))


def are_official(images: str, digests: Mapping[str, str]) -> bool:
    """Whether `images` (`dataset.images`) is a tar that `digests`, the MD5 by path of raw.md5, fixes as the official.

    Stage preprocess compares the tar with that MD5. A folder of the same images has none: there every image is
    compared by its SHA-256.
    """
    return PurePosixPath(images).suffix == ".tar" and digests.get(images) == OFFICIAL_IMAGES_MD5
