"""Your own images by their bytes: under other names, in other folders, or in a tar."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path, PurePath

from cleanset.dataset.archives import LEFT_BY_SYSTEMS, MAX_STORED_BYTES, Location, files_in_tar, in_place
from cleanset.dataset.folder import files_below
from cleanset.errors import CleansetError
from cleanset.image_ids import IMAGE_SUFFIXES
from cleanset.plumbing.files import check_regular, sha256
from cleanset.plumbing.progress import found_in_threads


def locate_by_content(images: Path, wanted: Mapping[str, str]) -> dict[str, Location]:
    """The location of each image whose bytes are under `images`, a folder of any layout or an uncompressed tar.

    `wanted`: the SHA-256 by image id. An image that is where its id says is taken from there. For one whose bytes are
    nowhere the location is the file of that name, with other bytes, or missing. Raises CleansetError if there is
    neither a folder nor a tar.
    """
    if images.is_dir():
        found_in_place = in_place(images, wanted)
    elif images.exists():
        check_regular(images)
        found_in_place = {}
    else:
        raise CleansetError(f"{images}: missing; expected the images of the set, a folder or a tar")
    found = _sha256_of(found_in_place)
    right = {name: location for name, location in found_in_place.items() if found[name] == wanted[name]}
    lost = wanted.keys() - right.keys()
    if not lost:
        return right
    places = {location.file for location in right.values()} if images.is_dir() else set()
    others = {f"{each.file} {each.offset}": each for each in _candidates(images) if each.file not in places}
    by_content = {digest: others[key] for key, digest in sorted(_sha256_of(others).items(), reverse=True)}
    by_content |= {wanted[name]: location for name, location in right.items()}
    moved = {name: by_content[wanted[name]] for name in lost if wanted[name] in by_content}
    return found_in_place | right | moved


def moved_images(images: Path, listed: Collection[str], pinned: Mapping[str, str]) -> dict[str, str]:
    """The image ids in the folder `images` that listed images have today, of those that are not where they were.

    They are known by their bytes: `pinned` is the SHA-256 by the image ids of before. The first of several files with
    the same bytes is taken. Files that are listed themselves are not looked at.
    """
    lost = {name: pinned[name] for name in sorted(listed) if name in pinned and not (images / name).exists()}
    if not lost or not images.is_dir():
        return {}
    known = set(listed)
    others = {each.path.relative_to(images).as_posix(): each for each in _candidates(images)}
    names_of: dict[str, list[str]] = defaultdict(list)
    for name, digest in _sha256_of({name: others[name] for name in sorted(others) if name not in known}).items():
        names_of[digest].append(name)
    return {name: names_of[digest].pop(0) for name, digest in lost.items() if names_of[digest]}


def _candidates(images: Path) -> Iterator[Location]:
    """Every image in a folder, however deep, or in a tar."""
    if images.is_dir():
        paths = (images / name for name in files_below(images, ".", 1))
        found = (Location(str(path), 0, path.stat().st_size) for path in paths if _is_image(path) and path.is_file())
        yield from (each for each in found if each.size <= MAX_STORED_BYTES)
        return
    for _, path, location in files_in_tar(images, "a tar of the images of the set", "pack the images themselves"):
        if _is_image(path) and not any(map(LEFT_BY_SYSTEMS.fullmatch, path.parts)):
            yield location


def _is_image(path: PurePath) -> bool:
    return path.suffix.lower() in IMAGE_SUFFIXES


def _sha256_of(locations: Mapping[str, Location]) -> dict[str, str]:
    digests = found_in_threads(lambda each: sha256(each.read()), locations.values(), "SHA-256")
    return dict(zip(locations, digests, strict=True))
