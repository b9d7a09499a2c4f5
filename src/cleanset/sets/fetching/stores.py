"""Files by their MD5 from a DVC remote: over HTTP(S) and from folders directly, from all others through dvc."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from cleanset.edition.dvc_files import object_path
from cleanset.errors import CleansetError, reason
from cleanset.plumbing.files import open_file
from cleanset.sets.fetching.http import (
    MissingError,
    NoAnswerError,
    cause,
    check_not_internal,
    is_internal,
    read_over_http,
    shown_address,
)
from cleanset.sets.fetching.remotes import Remote

MAX_DOWNLOAD_BYTES = 1 << 29
"""Size limit of a file, larger than any image or manifest."""


@dataclass(frozen=True, slots=True)
class Store:
    """A remote."""

    name: str
    """For messages."""

    read: Callable[[str], bytes]
    """The bytes of the file with an MD5, unchecked. Raises MissingError and NoAnswerError."""

    notice: str | None = None
    """What was left out of its settings."""


def store_of(remote: Remote, repository_url: str) -> Store:
    """The store of a remote that a repository names. Raises CleansetError if it takes dvc, which is not installed.

    A remote in the DVC configuration of this account with the same url is used in its place. Raises CleansetError for
    an internal address that neither it nor, being internal or a folder itself, `repository_url` vouches for.
    """
    notice = remote.notice()
    if remote.kind in ("", "file"):
        folder = _folder(remote, repository_url)
        return Store(shown_address(str(folder)), partial(_read_in_folder, folder), notice)
    name = shown_address(remote.url)
    own = _own_remote(remote.url)
    if own is not None:
        return Store(name, partial(_read_with_dvc, *_dvc_files(own, remote.kind, name)))
    allow_internal = repository_url.startswith("file:") or is_internal(repository_url)
    if not allow_internal:
        for address in (remote.url, *remote.settings.values()):
            check_not_internal(address)
    if remote.kind in ("http", "https"):
        return Store(name, partial(_read_over_http, remote.url.rstrip("/"), name, allow_internal), notice)
    settings = {"url": remote.url, **remote.settings}
    try:
        files, path = _dvc_files(settings, remote.kind, name)
    except CleansetError as error:
        raise CleansetError(f"{error}; {notice}" if notice else str(error)) from None
    return Store(name, partial(_read_with_dvc, files, path), notice)


def _own_remote(url: str) -> Mapping[str, Any] | None:
    """The remote with this url in the user's and the machine's configuration of DVC; not in that of a project."""
    try:
        # dvc is optional
        from dvc.config import Config, ConfigError
    except ModuleNotFoundError:
        return None
    try:
        # a section without a url, which is for a remote of some project, would not be valid
        remotes: Mapping[str, Mapping[str, Any]] = Config(validate=False).get("remote", {})
    except ConfigError as error:
        raise CleansetError(f"your DVC configuration: not readable ({reason(error)}); expected DVC's form") from None
    return next((each for each in remotes.values() if each.get("url", "").rstrip("/") == url.rstrip("/")), None)


def _read_over_http(url: str, name: str, allow_internal: bool, md5: str) -> bytes:
    address = f"{url}/{quote(object_path(md5))}"
    return read_over_http(address, name, MAX_DOWNLOAD_BYTES, allow_internal=allow_internal)


def _read_in_folder(folder: Path, md5: str) -> bytes:
    try:
        with open_file(folder / object_path(md5)) as file:
            return file.read(MAX_DOWNLOAD_BYTES)
    except FileNotFoundError:
        if folder.is_dir():
            raise MissingError from None
        raise NoAnswerError("no such folder on this machine") from None
    except OSError as error:
        raise NoAnswerError(cause(error)) from None


def _dvc_files(settings: Mapping[str, Any], kind: str, name: str) -> tuple[Any, str]:
    """The file system of a remote of any other kind, and its path there, with the accounts of this machine."""
    try:
        # dvc is optional, and takes up to a second to import
        from dvc.fs import get_cloud_fs

        files, options, path = get_cloud_fs({}, **settings)
        return files(**options), path
    except ModuleNotFoundError:
        raise CleansetError(
            f"{name}: a remote that is read through dvc, which is not installed for {kind}; "
            f"expected dvc and its driver: pip install 'dvc[{kind}]', which cleanset[build] has for s3 and ssh"
        ) from None
    except Exception as error:  # whatever the libraries below dvc raise
        raise CleansetError(f"{name}: not a remote that dvc can read ({reason(error)})") from None


def _read_with_dvc(files: Any, path: str, md5: str) -> bytes:
    try:
        return bytes(files.cat_file(f"{path}/{object_path(md5)}"))
    except FileNotFoundError:
        raise MissingError from None
    except Exception as error:
        raise NoAnswerError(cause(error)) from None


def _folder(remote: Remote, repository_url: str) -> Path:
    """The folder of a local remote; DVC's relative ones start at the folder `.dvc` of the repository."""
    try:
        path = Path(unquote(urlsplit(remote.url).path) if remote.url.startswith("file:") else remote.url)
    except ValueError as error:
        raise CleansetError(
            f"{shown_address(remote.url)}: invalid address ({reason(error)}); expected a DVC remote"
        ) from None
    if path.is_absolute():
        return path
    if not repository_url.startswith("file://"):
        raise CleansetError(
            f"{shown_address(repository_url)}: its DVC remote {shown_address(remote.url)} is a folder of another "
            "machine; expected an address that can be read from here: ask those who publish it"
        )
    repository = Path(unquote(urlsplit(repository_url).path))
    return (repository / PurePosixPath(remote.root) / ".dvc" / path).resolve()
