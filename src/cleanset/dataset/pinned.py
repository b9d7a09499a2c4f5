"""`images.sha256`, the digests that pin your own images; `sha256sum --check` reads it in their folder."""

from collections.abc import Mapping
from pathlib import Path

from cleanset.dataset.archives import Location, read_checksums
from cleanset.errors import CleansetError
from cleanset.plumbing.files import sha256
from cleanset.plumbing.progress import found_in_threads
from cleanset.plumbing.validation import first_names, join_names

ACCEPT = "run cleanset edition --accept in the folder of the edition"


def digests_of(locations: Mapping[str, Location]) -> dict[str, str]:
    """The SHA-256 of the bytes of each image, by image id.

    Raises CleansetError for a file that cannot be read, and that counts the pointers of git LFS among the images.
    """

    from cleanset.images.codec import is_lfs_pointer  # needs Pillow, which reading a list of digests does not

    def digest(location: Location) -> tuple[str, bool]:
        data = location.read()
        return sha256(data), is_lfs_pointer(data)

    found = dict(zip(locations, found_in_threads(digest, locations.values(), "images.sha256"), strict=True))
    if pointers := [name for name, (_, is_pointer) in found.items() if is_pointer]:
        raise CleansetError(
            f"{len(pointers):,} of {len(found):,} images are pointers of git LFS: {first_names(pointers, 3)}; expected "
            "the images themselves: run git lfs pull in the repository that they are in"
        )
    return {name: sha for name, (sha, _) in found.items()}


def pinned_text(digests: Mapping[str, str]) -> str:
    """The text of images.sha256."""
    return "".join(f"{digests[image_id]}  {image_id}\n" for image_id in sorted(digests))


def read_pinned(path: Path) -> dict[str, str]:
    """The SHA-256 of each image, by image id. Raises CleansetError if the file is missing or has any other line."""
    return read_checksums(path, "sha256", f"expected the digests of the images: {ACCEPT}")


def difference(pinned: Mapping[str, str], found: Mapping[str, str]) -> str:
    """The images that have changed, are missing or additional, counted and named; empty if all are as pinned.

    `pinned`, `found`: the SHA-256 by image id.
    """
    kinds = {
        "changed": [name for name in pinned.keys() & found.keys() if pinned[name] != found[name]],
        "missing": pinned.keys() - found.keys(),
        "additional": found.keys() - pinned.keys(),
    }
    return "; ".join(f"{len(ids):,} {kind}: {join_names(sorted(ids))}" for kind, ids in kinds.items() if ids)


def check_pinned(where: str, pinned: Mapping[str, str], found: Mapping[str, str]) -> None:
    """Raise CleansetError, naming `where`, unless the images that were found are those that are pinned."""
    differs = difference(pinned, found)
    if differs:
        raise CleansetError(f"{where}: {differs}; expected the images of images.sha256: restore them, or {ACCEPT}")
