"""The raw archives and folders: which files are images, their checksums, where each image's bytes are in any layout.

Layouts: the official tar; a flat folder; a folder per wnid or class; Kaggle's tree; a folder with one of these in it;
and in each of them the names of the copy on Hugging Face. A tar is read by offset and never unpacked.
"""

import os
import re
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Literal, NamedTuple

from cleanset.classes import ClassTable, imagenet
from cleanset.dataset.ilsvrc import OFFICIAL_IMAGES_MD5
from cleanset.errors import CleansetError, reason
from cleanset.image_ids import IMAGE_SUFFIXES, parse_image_name
from cleanset.plumbing.files import BLOCK_BYTES, blocks_of, check_regular, md5, open_file, read_text, sha256
from cleanset.plumbing.progress import tracked
from cleanset.plumbing.validation import shown

if TYPE_CHECKING:
    import pandas as pd

SOURCES = {
    "ILSVRC2012_img_val.tar": "image-net.org, after signing up: ILSVRC2012, Validation images (all tasks), 6.3 GB",
    "ILSVRC2012_devkit_t12.tar.gz": "image-net.org, after signing up: ILSVRC2012, Development kit (Task 1 & 2), 2.5 MB",
}
# these programs mark files that they read in binary mode by an asterisk
_LINES = {name: re.compile(rf"([0-9a-f]{{{digits}}}) [ *](.+)") for name, digits in (("md5", 32), ("sha256", 64))}


def read_md5_list(path: Path) -> dict[str, str]:
    """MD5 digest by file name. Raises CleansetError as `read_checksums` does."""
    return read_checksums(path, "md5", "expected a line of md5sum for each raw file")


def read_checksums(path: Path, kind: Literal["md5", "sha256"], remedy: str) -> dict[str, str]:
    """Digest by file name, from a list in the format of md5sum or sha256sum.

    Raises CleansetError, which ends in `remedy`, if it is missing, and for any other line or a name that occurs twice.
    """
    digests: dict[str, str] = {}
    text = read_text(path, remedy)
    for number, line in enumerate(text.splitlines(), start=1):
        match = _LINES[kind].fullmatch(line)
        if match is None:
            raise CleansetError(
                f"{path}, line {number}: {shown(line)}; expected the output of {kind}sum: digest, two spaces, path"
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
            f"{path}: broken symlink to {path.readlink()}; expected an absolute path, or one relative to {path.parent}"
        )
    if path.exists():
        check_regular(path)
    else:
        source = SOURCES.get(path.name)
        remedy = f"download it from {source}; put it there or link to it" if source else _CORRECT
        raise CleansetError(f"{path}: missing; {remedy}")
    if name not in digests:
        raise CleansetError(f"{listed_in}: no line for {name}; add the output of md5sum {name}")
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

    Stage preprocess compares the tar with that MD5. In a folder of the same images, every image is compared by its
    SHA-256.
    """
    return PurePosixPath(images).suffix == ".tar" and digests.get(images) == OFFICIAL_IMAGES_MD5


KAGGLE_IMAGES = Path("ILSVRC/Data/CLS-LOC/val")
MAX_STORED_BYTES = 64 * 2**20
"""Largest accepted file; the largest of the 50,000 images has under 16 MiB."""
MAX_PEEKED = 3
"""Folders that are looked into for official names."""


class Location(NamedTuple):
    """`size` bytes at `offset` in a file; for one of ImageNet's images, perhaps the wnid in folder or name.

    A tuple of text and numbers: 16 worker processes read 50,000 objects, or paths, in five processor seconds.
    """

    file: str
    offset: int
    size: int
    wnid: str | None = None

    @property
    def path(self) -> Path:
        """The path of the file."""
        return Path(self.file)

    def read(self) -> bytes:
        """The bytes. Raises CleansetError if the file has become shorter, or has become a pipe."""
        with open_file(self.path) as file:
            file.seek(self.offset)
            data = file.read(self.size)
        if len(data) != self.size:
            raise CleansetError(f"{self.path}: ends {self.size - len(data)} bytes early; fetch it again")
        return data


def locate(images: Path) -> dict[str, Location]:
    """The location of every image of ImageNet under `images`, by image id, sorted.

    Raises CleansetError for a name that is not a validation image's, for an image id that occurs
    twice, and for anything in a tar that is not a plain file inside it.
    """
    if images.is_dir():
        found = _in_folder(images)
    elif images.exists():
        check_regular(images)
        found = _in_tar(images)
    else:
        raise CleansetError(f"{images}: missing; expected the validation images, a tar or a folder")
    locations: dict[str, Location] = {}
    for where, name, location in found:
        parsed = parse_image_name(name)
        if parsed is None:
            raise CleansetError(
                f"{where}: not the name of a validation image; expected ILSVRC2012_val_00000001.JPEG or alike: give "
                "the tar or the folder of the validation images alone"
            )
        image_id, wnid = parsed
        if image_id in locations:
            raise CleansetError(f"{where}: {image_id} occurs twice; remove one of the two")
        if wnid and wnid not in imagenet().indices:
            raise CleansetError(f"{where}: {wnid} is not one of the 1,000 wnids; take the name of the official image")
        if wnid and location.wnid not in (None, wnid):
            raise CleansetError(
                f"{where}: {wnid} in the name, {location.wnid} as the folder; expected the same: move or rename it"
            )
        locations[image_id] = location._replace(wnid=wnid or location.wnid)
    if not locations:
        raise CleansetError(
            f"{images}: holds no image; expected ILSVRC2012_val_00000001.JPEG and so on, in it or in folders of "
            "classes: give the folder that has them, such as val in it"
        )
    # sorted: neither the order of a tar nor that of a folder may decide anything
    return dict(sorted(locations.items()))


_Found = tuple[str, str, Location]
"""Name in error messages, file name, location with the wnid of its folder."""


def _in_tar(archive: Path) -> Iterator[_Found]:
    for where, path, location in files_in_tar(archive, "ILSVRC2012_img_val.tar", _OFFICIAL):
        yield where, path.name, location._replace(wnid=_wnid(path.parent.name))


_OFFICIAL = "take the official archive"


def files_in_tar(archive: Path, expected: str, remedy: str) -> Iterator[tuple[str, PurePosixPath, Location]]:
    """The files in an uncompressed tar, with the place of each in messages, its path in the tar, and its location.

    Raises CleansetError, with what was `expected` and a `remedy`, for any other file, and for anything in it that is
    not a plain file inside it.
    """
    try:
        # "r:" takes no compression: images are read later at their offsets in the file
        with tarfile.open(archive, "r:") as tar:
            for member in tar:
                where = f"{archive}, member {shown(member.name)}"
                check_member(where, member, remedy)
                check_size(where, member.size)
                if not member.isdir():
                    yield where, PurePosixPath(member.name), Location(str(archive), member.offset_data, member.size)
            _check_end(archive, tar.offset)
    except CleansetError:
        raise
    except Exception as error:  # tarfile raises whatever damaged headers lead it to
        raise CleansetError(
            f"{archive}: not an uncompressed tar ({reason(error)}); expected {expected}: decompress it or fetch it "
            "again"
        ) from None


def check_not_sparse(where: str, member: tarfile.TarInfo, remedy: str = _OFFICIAL) -> None:
    """Raise CleansetError, naming `where` and `remedy`, for a sparse member."""
    if member.issparse() or any(key.startswith("GNU.sparse") for key in member.pax_headers):
        raise CleansetError(f"{where}: a sparse file; expected plain files only: {remedy}")


def check_member(where: str, member: tarfile.TarInfo, remedy: str = _OFFICIAL) -> None:
    """Raise CleansetError, naming `where` and `remedy`, unless it is a folder or a plain file inside of its archive."""
    check_not_sparse(where, member, remedy)
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts:
        raise CleansetError(f"{where}: a path outside the archive; {remedy}")
    if not (member.isreg() or member.isdir()):
        raise CleansetError(f"{where}: a link or device; expected plain files only: {remedy}")


def _check_end(archive: Path, offset: int) -> None:
    """Raise CleansetError unless there is an end mark at `offset`, where tarfile stopped.

    It takes any block without a header for the end, also where a download broke off.
    """
    with archive.open("rb") as file:
        file.seek(offset)
        block = file.read(tarfile.BLOCKSIZE)
    if block != bytes(tarfile.BLOCKSIZE):
        raise CleansetError(f"{archive}: no end mark after {offset:,} bytes: truncated or damaged; fetch it again")


def _in_folder(folder: Path) -> Iterator[_Found]:
    """The validation images in a folder or in its folders, of classes or one such as val.

    Other files, which people keep with ImageNet's, are passed over, unless they end like an image.
    """
    if (folder / KAGGLE_IMAGES).is_dir():
        folder = folder / KAGGLE_IMAGES
    elif not _holds_images(folder):
        inner = [Path(each.path) for each in visible_entries(folder) if each.is_dir() and _holds_images(each.path)]
        if len(inner) > 1:
            raise CleansetError(f"{folder}: validation images in {', '.join(map(str, inner))}; expected one: give it")
        folder = inner[0] if inner else folder
    for entry in visible_entries(folder):
        wnid = _wnid(entry.name) if entry.is_dir() else None
        for file in visible_entries(entry.path) if entry.is_dir() else [entry]:
            # in a folder of another name only official names count
            is_other = wnid is None and entry.is_dir()
            if parse_image_name(file.name) or (not is_other and file.name.lower().endswith(IMAGE_SUFFIXES)):
                size = check_regular(Path(file.path)).st_size
                check_size(file.path, size)
                yield file.path, file.name, Location(file.path, 0, size, wnid)


def _holds_images(folder: str | Path) -> bool:
    """Whether a folder, or one of the first folders in it, has official names; train has too many files to read all."""
    entries = visible_entries(folder)
    inner = [each for each in entries if each.is_dir()][:MAX_PEEKED]
    names = (each.name for found in (entries, *(visible_entries(each.path) for each in inner)) for each in found)
    return any(parse_image_name(name) for name in names)


LEFT_BY_SYSTEMS = re.compile(
    r"(?i)\..*|desktop\.ini|(eh)?thumbs(_vista)?\.db|picasa\.ini|icon\r|synoindex.*|synophoto.*|[@#]eadir|__macosx"
    r"|[@#](recycle|snapshot|tmp|recently-snapshot|__thumb|sharebin|syno.*)"
    r"|\$recycle\.bin|recycler|system volume information|lost\+found"
    r"|found\.[0-9]{3}|network trash folder|temporary items|thevolumesettingsfolder|__pycache__"
)
"""Names of files and folders that are hidden, or that systems put among images, such as folders of thumbnails."""


def visible_entries(folder: str | Path) -> list[os.DirEntry[str]]:
    """The entries of a folder, sorted, without those that are hidden or left by systems."""
    with os.scandir(folder) as entries:
        return sorted(
            (each for each in entries if not LEFT_BY_SYSTEMS.fullmatch(each.name)), key=lambda each: each.name
        )


def _wnid(name: str) -> str | None:
    return name if name in imagenet().indices else None


def check_size(where: str, size: int, remedy: str = "take the official file") -> None:
    """Raise CleansetError, naming `where` and the remedy, for a file that is too large to belong here."""
    if not 0 <= size <= MAX_STORED_BYTES:
        raise CleansetError(f"{where}: {size:,} bytes; expected at most {MAX_STORED_BYTES:,}: {remedy}")


def to_table(locations: Mapping[str, Location], images: Path) -> "pd.DataFrame":
    """Locations as the columns of table LOCATIONS, files relative to `images`."""
    import pandas as pd  # decoding processes have no use for it

    rows = [(name, at.path.relative_to(images).as_posix(), at.offset, at.size) for name, at in locations.items()]
    return pd.DataFrame(rows, columns=["image_id", "file", "offset", "size"])


def from_table(table: "pd.DataFrame", images: Path) -> dict[str, Location]:
    """The locations in a table of `to_table`, by image id."""
    # in text, since paths take ten times as long; "." is the archive itself
    files = [str(images) if file == "." else f"{images}/{file}" for file in table["file"].tolist()]
    locations = map(Location, files, table["offset"].tolist(), table["size"].tolist())
    return dict(zip(table["image_id"].tolist(), locations, strict=True))


def located(images: Path, ids: Iterable[str], classes: ClassTable) -> Mapping[str, Location]:
    """The locations of ImageNet's images, which may be in any layout; others are where their `ids` say, if they are.

    Raises CleansetError as `locate` does.
    """
    return locate(images) if classes.is_imagenet else in_place(images, ids)


def in_place(images: Path, ids: Iterable[str]) -> dict[str, Location]:
    """The locations of the images that are in a folder where their ids say."""
    paths = {image_id: images / image_id for image_id in ids}
    return {name: Location(str(path), 0, path.stat().st_size) for name, path in paths.items() if path.is_file()}


class VerifiedImages:
    """The images of an index, read from `images` and checked against the index's SHA-256.

    Their locations are taken from the table that preprocess wrote, at `locations`, and looked up if that is missing
    or no longer true; so the index holds no location, and is the same for every layout.
    """

    def __init__(self, images: Path, locations: Path, index: "pd.DataFrame", classes: ClassTable) -> None:
        self._images = images
        self._classes = classes
        self._sha256_of: dict[str, str] = dict(zip(index["image_id"].tolist(), index["sha256"].tolist(), strict=True))
        self._looked_up = not locations.is_file()
        if self._looked_up:
            self._locations: Mapping[str, Location] = located(self._images, self._sha256_of, self._classes)
        else:
            from cleanset.tables import LOCATIONS, read_table  # needs pyarrow, which a set's users may lack

            self._locations = from_table(read_table(locations, LOCATIONS, self._classes), self._images)

    def digest(self, image_id: str) -> str:
        """The SHA-256 of an image's bytes in the index."""
        return self._sha256_of[image_id]

    def read(self, image_id: str) -> bytes:
        """The bytes of an image. Raises CleansetError if it is missing or not the indexed one."""
        used = self._locations
        try:
            return self._read(image_id)
        except (CleansetError, OSError):
            # looked up before this image was asked for: another search would find the same
            if self._looked_up and self._locations is used:
                raise
        if not self._looked_up:  # else another thread has looked them up in the meantime
            self._locations = located(self._images, self._sha256_of, self._classes)
            self._looked_up = True
        return self._read(image_id)

    def _read(self, image_id: str) -> bytes:
        location = self._locations.get(image_id)
        if location is None:
            raise CleansetError(f"{self._images}: {image_id} is missing; the index has it: put it there")
        data = location.read()
        found = sha256(data)
        expected = self._sha256_of[image_id]
        if found != expected:
            anew = "dvc repro --force preprocess" if self._classes.is_imagenet else "cleanset edition --accept"
            raise CleansetError(
                f"{self._images}: {image_id} has SHA-256 {found}, expected {expected} as in the index: "
                f"fetch the images again, or run {anew} if the new ones are meant"
            )
        return data
