"""Releases of `cleanset publish`, used as they are: a tar here, at an HTTPS address, or of a record of Zenodo.

In the cache of fetched sets:

releases/<SHA-256 of the tar>/release/    a release, unpacked and checked
releases/<address>.json                   the SHA-256 of the tar that was downloaded
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, ValidationError

from cleanset.errors import CleansetError
from cleanset.files import blocks_of, check_new, locked, md5, replacing, sha256_of, workspace_for, write_text
from cleanset.progress import cache_folder
from cleanset.sets import verify
from cleanset.sets.archive import unpack
from cleanset.sets.description import notices_of
from cleanset.sets.fetching.fetch import FetchedSet, digest_of, read_json, writing, written_to
from cleanset.sets.fetching.stores import download
from cleanset.sets.folder import one_set, read_entries, read_release, sets_in
from cleanset.validation import first_problem

ZENODO = "https://zenodo.org"
MAX_RELEASE_BYTES, MAX_RECORD_BYTES = 1 << 36, 1 << 24
"""Limits of what is downloaded; a release with the images of 1,000 classes has 0.3 GB."""

_RECORD = re.compile(
    r"(?:(?:doi:|https?://(?:dx\.)?doi\.org/)?10\.5281/zenodo\.|https://zenodo\.org/records?/)([0-9]+)/?", re.IGNORECASE
)


class _RecordFile(BaseModel):
    key: str
    size: Annotated[int, Field(ge=0, le=MAX_RELEASE_BYTES)]
    checksum: Annotated[str, Field(pattern="^md5:[0-9a-f]{32}$")]
    links: Mapping[str, str]


class _Record(BaseModel):
    """A record, as Zenodo's API gives it."""

    files: list[_RecordFile]


def is_release(address: str | Path) -> bool:
    """Whether this is the address of a release: that of a tar, or a DOI or record of Zenodo."""
    text = str(address)
    is_tar = text.startswith(("https://", "http://")) and urlsplit(text).path.endswith((".tar", ".tar/content"))
    return is_tar or _RECORD.fullmatch(text) is not None


def run(address: str, model: str | None, out: Path | None, update: bool = False, force: bool = False) -> FetchedSet:
    """Fetch a release into the cache; return the set of a model, or its only one, perhaps copied to `out`."""
    if out is not None:
        check_new(out)
    folder = one_set(fetched(address, update or force), model)
    entries = read_entries(folder)
    found = FetchedSet(folder, entries[0].model, "", len(entries), notices_of(entries, read_release(folder)))
    return written_to(out, found)


def opened(path: Path, force: bool = False) -> Path:
    """A tar unpacked into the cache, where `force` makes it anew; any other path as it is."""
    return _unpacked(path, str(path), force) if path.suffix == ".tar" and path.is_file() else path


@writing()
def fetched(address: str, afresh: bool) -> Path:
    """The folder of a release in the cache, downloaded unless it is there."""
    releases = cache_folder() / "releases"
    known = releases / f"{digest_of(address)}.json"
    folder = _folder(str(read_json(known).get("sha256")))
    if folder.is_dir() and not afresh:
        return folder
    releases.mkdir(parents=True, exist_ok=True)
    with workspace_for(releases / "download") as workspace:
        tar = workspace / "release.tar"
        url, limit, expected = _tar_at(address, workspace)
        download(url, tar, limit)
        if expected and (found := md5(blocks_of(tar))) != expected:
            raise CleansetError(f"{address}: MD5 {found}, expected {expected} as in the record: run this again")
        folder = _unpacked(tar, address, afresh)
        write_text(known, json.dumps({"sha256": sha256_of(tar)}) + "\n")
    return folder


def _tar_at(address: str, workspace: Path) -> tuple[str, int, str]:
    """Address, size limit and MD5 of a release's tar; no MD5 where no record gives it."""
    match = _RECORD.fullmatch(address)
    if match is None:
        return address, MAX_RELEASE_BYTES, ""
    path, where = workspace / "record.json", f"{ZENODO}/api/records/{match[1]}"
    download(where, path, MAX_RECORD_BYTES)
    try:
        files = _Record.model_validate_json(path.read_bytes()).files
    except ValidationError as error:
        raise CleansetError(f"{where}: {first_problem(error)}; expected an open record of Zenodo") from None
    tars = [each for each in files if each.key.endswith(".tar")]
    if len(tars) != 1 or "self" not in tars[0].links:
        names = ", ".join(each.key for each in files) or "none"
        raise CleansetError(f"{where}: files: {names}; expected one tar of cleanset publish: give the address of a tar")
    return tars[0].links["self"], tars[0].size, tars[0].checksum.removeprefix("md5:")


def _folder(digest: str) -> Path:
    return cache_folder() / "releases" / digest[:32] / "release"


@writing()
def _unpacked(tar: Path, name: str, afresh: bool) -> Path:
    """The folder in a tar, in the cache; messages call the tar by its name. Raises CleansetError unless it verifies."""
    folder = _folder(sha256_of(tar))
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder.parent):
        if afresh or not folder.is_dir():
            with replacing(folder) as partial, unpack(tar, partial.parent) as (inside, same_bytes):
                problems = [each for at in sets_in(inside) for each in verify.run(at, decode=False).problems]
                if problems or not same_bytes or not sets_in(inside):
                    what = problems[0] if problems else "not the bytes that cleanset publish gives, or no finished set"
                    raise CleansetError(f"{name}: {what}; expected a release: tell its publisher")
                inside.rename(partial)
    return folder
