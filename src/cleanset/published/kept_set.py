"""The published set in the cache, made once from one's own images.

published/<key>/
    lock         held by the process that makes the set
    <model>/     the set, from the moment that it is whole

The key is a digest of whatever decides the content: the published files, further reviews, the choice, the version of
cleanset, and the images, by the MD5 of the archive, or by path, size and time of the files of a folder.
"""

import fcntl
import json
from importlib.metadata import version
from pathlib import Path

from cleanset.dataset.layouts import locate
from cleanset.errors import CleansetError
from cleanset.exports.folder import read_entries
from cleanset.exports.manifest import COLUMNS, MANIFEST
from cleanset.files import remove_abandoned, replacing, sha256
from cleanset.machine import cache_folder
from cleanset.published import image_set
from cleanset.published.choice import PublishedChoice
from cleanset.published.inputs import digests_of_inputs
from cleanset.published.selected_images import SelectedImages, select_images
from cleanset.published.source_images import SourceImages


def kept_set(choice: PublishedChoice, images: Path, digests: Path | None = None, force: bool = False) -> Path:
    """The folder of the set in the cache, made there unless it is there already; `force` makes it again.

    Once a set has been made from an archive, a later call does not read the archive again. Raises CleansetError as
    image_set.run does, and if the cache cannot be written.
    """
    source = SourceImages(images, digests)
    chosen = select_images(choice)
    home = cache_folder() / "published" / _key(chosen, source)
    whole = home / choice.model
    if not force and _is_whole(whole):
        return whole
    try:
        home.mkdir(parents=True, exist_ok=True)
        lock = (home / "lock").open("ab")
    except OSError as error:
        raise CleansetError(
            f"{home}: {error.strerror}; expected a cache that can be written: set CLEANSET_CACHE to another folder"
        ) from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # looked at again under the lock: another process may have made it meanwhile
        if force or not _is_whole(whole):
            remove_abandoned(home)
            with replacing(whole) as folder:
                image_set.write_set(folder, chosen, source, str(whole))
    return whole


def _key(chosen: SelectedImages, source: SourceImages) -> str:
    described = {
        "inputs": [(each.path, each.sha256) for each in digests_of_inputs(chosen.votes)],
        "model": chosen.choice.model,
        "unreviewed": chosen.choice.unreviewed,
        "cleanset": [version("cleanset"), image_set.VERSION, *COLUMNS],
        "digests": source.table_sha256,
        "images": source.expected_md5 if source.is_archive else _state_of_folder(source.images, chosen),
    }
    return sha256(json.dumps(described, sort_keys=True).encode())[:16]


def _state_of_folder(images: Path, chosen: SelectedImages) -> list[object]:
    """Path of the folder; size and time of each image that the set may need."""
    locations = locate(images)
    found = [locations[name].path for name in sorted(chosen.candidates["image_id"]) if name in locations]
    states = ((path, path.stat()) for path in found)
    return [str(images.resolve()), *([path.name, status.st_size, status.st_mtime_ns] for path, status in states)]


def _is_whole(folder: Path) -> bool:
    """Whether no image is missing; the bytes are checked whenever an image is read."""
    if not (folder / MANIFEST).is_file():
        return False
    try:
        return all((folder / entry.file).is_file() for entry in read_entries(folder))
    except CleansetError:  # a damaged manifest
        return False
