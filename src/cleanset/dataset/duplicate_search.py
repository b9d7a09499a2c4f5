"""Search your own images for those that cannot be read, and for duplicates: by bytes, pixels, and hashes of parts."""

from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np
import PIL

from cleanset.dataset.archives import Location
from cleanset.dataset.duplicates import (
    REFUSED_DUPLICATES,
    DuplicatePair,
    duplicates_text,
    equal_pairs,
    named_pairs,
    refuse_in_two_classes,
)
from cleanset.dataset.folder import LabelledImages
from cleanset.dataset.near_duplicates import near_pairs
from cleanset.dataset.unreadable import UNREADABLE_IMAGES, refuse_unreadable
from cleanset.errors import install_command
from cleanset.images.codec import IMAGE_FORMATS, decode, inspect, size_in_header
from cleanset.images.fingerprints import PackedFingerprint, can_fingerprint, packed_fingerprint
from cleanset.plumbing.files import sha256, write_text
from cleanset.plumbing.kept_files import KeptFiles, kept_files
from cleanset.plumbing.machine import available_cores
from cleanset.plumbing.progress import print_notice, tracked

MAX_DECODED = 5_000
"""Images that are decoded and compared: a core takes 20 ms for one. With more images, only their bytes are compared."""
_CHUNK = 16
_MIN_OF_PROCESSES = 100
"""Images for which further processes are worth their start."""

CODE = ("dataset/duplicate_search.py", "images/codec.py", "images/fingerprints.py")
"""The files of the package that decide what images are compared by, and how that is kept."""
_SHA256_DIGITS = 64
_ORIENTATIONS = 8
_NUMBERS = 4
"""Numbers of a hash."""


@dataclass(frozen=True, slots=True)
class FoundDuplicates:
    """The duplicates among images."""

    pairs: tuple[DuplicatePair, ...]
    """Sorted by the ids of the first images; in groups of near-duplicates each image with one of those before."""
    notice: str
    """What was not looked for, in a sentence; empty if all was."""
    unreadable: Mapping[str, str]
    """The problems of images that stage preprocess refuses, by image id."""

    def write(self, table: Path) -> None:
        """Write a table of all pairs, and print notices that count them and name what was not searched.

        Without pairs, no table is written and an earlier one is removed.
        """
        if self.notice:
            print_notice(self.notice)
        if self.pairs:
            write_text(table, duplicates_text(self.pairs))
            print_notice(f"the same image twice, or nearly: {named_pairs(self.pairs)}; all are in {table}")
        else:
            table.unlink(missing_ok=True)


def search(images: LabelledImages, digests: Mapping[str, str], refused: str) -> FoundDuplicates:
    """The duplicates, as `find_duplicates` finds them.

    Raises CleansetError for images that cannot be read (of many by their headers alone: stage preprocess decodes them)
    and for the same image in two classes. If a message cannot list all, they are written to a table; `refused`: what
    the paths of these tables begin with.
    """
    found = find_duplicates(images, digests)
    refuse_unreadable(found.unreadable, "images", IMAGE_FORMATS, Path(refused + UNREADABLE_IMAGES))
    refuse_in_two_classes(found.pairs, images.class_of, Path(refused + REFUSED_DUPLICATES))
    return found


def find_duplicates(images: LabelledImages, digests: Mapping[str, str]) -> FoundDuplicates:
    """The duplicates among your own images; `digests`: the SHA-256 of their bytes by image id.

    An image that cannot be read is like no other. Near-duplicates are looked for if PDQ is installed.
    """
    names = list(digests)
    if len(names) > MAX_DECODED:
        pairs = equal_pairs((name, digests[name], digests[name]) for name in names)
        notice = f"more than {MAX_DECODED:,} images: only bytes are compared now, pixels by dvc repro"
        problems = map(_header_problem, (images.locations[name] for name in names))
        return FoundDuplicates(tuple(pairs), notice, _problems_of(names, problems))
    looks = _looks([images.locations[name] for name in names], list(digests.values()))
    pairs = equal_pairs(
        (name, digests[name], look.pixels_sha256 or digests[name]) for name, look in zip(names, looks, strict=True)
    )
    known = {(pair.image_id, pair.duplicate_of) for pair in pairs}
    near = near_pairs([look.fingerprint for look in looks], [images.class_of[name] for name in names])
    pairs += [
        DuplicatePair(names[later], names[before], "nearly")
        for later, before in near
        if (names[later], names[before]) not in known
    ]
    notice = "" if can_fingerprint() else f"near-duplicates are not looked for: {install_command('review')}"
    in_order = sorted(pairs, key=lambda pair: (pair.duplicate_of, pair.image_id))
    return FoundDuplicates(tuple(in_order), notice, _problems_of(names, (look.problem for look in looks)))


def _problems_of(names: Iterable[str], problems: Iterable[str]) -> dict[str, str]:
    return {name: problem for name, problem in zip(names, problems, strict=True) if problem}


def _header_problem(location: Location) -> str:
    """Why an image cannot be read, as far as its header shows; empty if it may be whole."""
    try:
        size_in_header(location.path)
    except ValueError as error:
        return str(error)
    return ""


@dataclass(frozen=True, slots=True)
class _Look:
    """What an image is compared by, next to its bytes."""

    pixels_sha256: str
    """Empty for an image that cannot be read."""
    fingerprint: PackedFingerprint | None
    problem: str = ""
    """Why it cannot be read."""


def usual_look_files() -> KeptFiles:
    """The looks of whole images that all editions on this machine share, by the SHA-256 of their bytes."""
    hashing = version("pdqhash") if can_fingerprint() else "none"
    return kept_files("duplicates", CODE, f"{PIL.__version__} {hashing}")


def _looks(locations: list[Location], digests: list[str]) -> list[_Look]:
    """The looks of images, in processes where that is faster: hashing does not release the lock of threads."""
    kept = usual_look_files()
    known = {digest: _parsed(content) for digest in digests if (content := kept.read(digest)) is not None}
    left = [location for location, digest in zip(locations, digests, strict=True) if digest not in known]
    look = partial(_look, kept)
    if len(left) < _MIN_OF_PROCESSES:
        made = list(tracked(map(look, left), len(left), "duplicates"))
    else:
        with ProcessPoolExecutor(available_cores()) as pool:
            made = list(tracked(pool.map(look, left, chunksize=_CHUNK), len(left), "duplicates"))
    in_order = iter(made)
    return [known.get(digest) or next(in_order) for digest in digests]


def _look(kept: KeptFiles, location: Location) -> _Look:
    data = location.read()
    try:
        # what stage preprocess refuses may look the same without being it, as two transparent images
        facts = inspect(data, IMAGE_FORMATS)
    except ValueError as error:
        return _Look("", None, str(error))
    found = packed_fingerprint(decode(data)) if can_fingerprint() else None
    hashes = b"" if found is None else found.hashes.tobytes() + found.parts.tobytes()
    kept.keep(sha256(data), facts.pixels_sha256.encode() + hashes)
    return _Look(facts.pixels_sha256, found)


def _parsed(content: bytes) -> _Look:
    """A cached look: the SHA-256 of the pixels, and the hashes."""
    hashes = np.frombuffer(content[_SHA256_DIGITS:], np.uint64).reshape(-1, _NUMBERS)
    found = PackedFingerprint(hashes[:_ORIENTATIONS], hashes[_ORIENTATIONS:]) if len(hashes) else None
    return _Look(content[:_SHA256_DIGITS].decode(), found)
