"""A release by its tar, its address or its DOI: downloaded, compared with its record, unpacked, verified, and kept."""

import json
from pathlib import Path

from cleanset.errors import CleansetError, DamagedError, InputError
from cleanset.plumbing.cache import cache_folder, writing_cache
from cleanset.plumbing.file_locks import locked
from cleanset.plumbing.files import day_written, md5_of, replacing, sha256_of, workspace_for, write_text
from cleanset.plumbing.json_files import parse_json
from cleanset.plumbing.progress import print_notice
from cleanset.sets import verify
from cleanset.sets.archive import unpack
from cleanset.sets.fetching import repository
from cleanset.sets.fetching.http import download, shown_address
from cleanset.sets.fetching.kept_set import kept_json, short_name
from cleanset.sets.folder import sets_in

ZENODO_API = "https://zenodo.org/api/records/"
MAX_RELEASE_BYTES = 1 << 36
"""Limit of a tar; one with the images of 1,000 classes has 0.3 GB."""


@writing_cache()
def opened(place: str | Path, afresh: bool = False) -> Path:
    """The folder of a release, in the cache; any other path unchanged. `afresh`: ignore what is in the cache.

    Raises CleansetError for a release that is not the file of its record, or has a set that does not verify.
    """
    if not repository.is_release(place) or Path(place).is_dir():
        return Path(place)
    if Path(place).is_file():
        return _unpacked(Path(place), str(place), afresh)
    if "://" not in str(place) and repository.record_number(str(place)) is None:
        raise InputError(f"{place}: missing; expected the tar of a release, its address, or a DOI")
    known = cache_folder() / "releases" / f"{short_name(str(place))}.json"
    folder = _release_folder(str(kept_json(known).get("sha256")))
    if is_new := afresh or not folder.is_dir():
        known.parent.mkdir(parents=True, exist_ok=True)
        with workspace_for(known) as workspace:
            tar = _downloaded(str(place), workspace)
            folder = _unpacked(tar, str(place), afresh)
            write_text(known, json.dumps({"sha256": sha256_of(tar)}) + "\n")
    print_origin(shown_address(str(place)), known, is_asked=is_new)
    return folder


def _downloaded(address: str, workspace: Path) -> Path:
    """The tar of a release, compared with the size and MD5 in its record if it is in one."""
    tar = workspace / "release.tar"
    record = workspace / "record.json"
    number = repository.record_number(address)
    if number is None:
        download(address, tar, MAX_RELEASE_BYTES, named=address)
        return tar
    download(ZENODO_API + number, record, repository.MAX_TEXT_BYTES, named=ZENODO_API)
    files = parse_json(record.read_text("utf-8", "replace"), ZENODO_API + number, "a record of Zenodo")
    try:
        ((url, size, digest),) = (
            (each["links"]["self"], min(int(each["size"]), MAX_RELEASE_BYTES), each["checksum"])
            for each in files["files"]
            if each["key"].endswith(".tar")
        )
    except (LookupError, TypeError, ValueError, AttributeError):
        raise CleansetError(
            f"{ZENODO_API}{number}: not Zenodo's answer for an open record with one tar; expected one of "
            "cleanset publish: give the address of the tar"
        ) from None
    download(url, tar, max(size, 0), named=ZENODO_API)
    if (found := f"md5:{md5_of(tar)}") != digest:
        raise DamagedError(f"{address}: {found}, expected {digest} as in the record: run this again")
    return tar


def print_origin(address: str, known: Path, *, is_asked: bool) -> None:
    """Print the day on which an address was last asked, and whether that is now; `known`: what is kept of it."""
    again = "asked now" if is_asked else "not asked again: cleanset fetch --update does"
    print_notice(f"{address}: as of {day_written(known)}, {again}")


def _release_folder(digest: str) -> Path:
    return cache_folder() / "releases" / digest[:32] / f"release-{digest[:16]}"


def _unpacked(tar: Path, name: str, afresh: bool) -> Path:
    """The folder in a tar, which messages call `name`, verified and in the cache."""
    folder = _release_folder(sha256_of(tar))
    # without the lock, because what is unpacked is whole and only read: a cache that can only be read will do
    if folder.is_dir() and not afresh:
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder.parent):
        if afresh or not folder.is_dir():
            with replacing(folder) as partial, unpack(tar, partial.parent) as (inside, same_bytes):
                problems = [each for at in sets_in(inside) for each in verify.run(at, decode=False).problems]
                if problems or not same_bytes or not sets_in(inside):
                    what = problems[0] if problems else "not the bytes that cleanset publish gives, or no finished set"
                    raise DamagedError(f"{name}: {what}; expected a release: tell its publisher")
                inside.rename(partial)
    return folder
