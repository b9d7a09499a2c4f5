"""Downloads: files by MD5 from a DVC remote, and any file over HTTP(S).

Remotes over HTTP(S) and in local folders are read directly, all others through dvc.
"""

import http.client
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from cleanset.edition.dvc_files import object_path
from cleanset.errors import CleansetError, InputError, UnreachableError, cut, reason
from cleanset.files import BLOCK_BYTES, open_file
from cleanset.retries import retried
from cleanset.sets.fetching.repository import Remote, without_credentials
from cleanset.validation import shown

TIMEOUT_SECONDS = 30
MAX_ANSWER_CHARACTERS = 160
MAX_DOWNLOAD_BYTES = 1 << 29
"""Size limit of a file, larger than any image or manifest."""

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://")
_PLAIN_OPTIONS = {"url", "verify", "jobs", "read_timeout", "connect_timeout"}
"""Settings of a remote that ask for nothing special: no login, no headers, no certificates."""
# HTTP status codes after which another try may succeed
_PASSING = (408, 429, 500, 502, 503, 504)


class MissingError(Exception):
    """The remote answers, and has no such file."""


class NoAnswerError(Exception):
    """The remote does not answer, or refuses; its message says why."""


@dataclass(frozen=True, slots=True)
class Store:
    """A remote, with its name in messages.

    `read` gives the bytes of the file with an MD5, unchecked. It raises MissingError and NoAnswerError.
    """

    name: str
    read: Callable[[str], bytes]


def store_of(remote: Remote, repository_url: str) -> Store:
    """The store of a remote. Raises CleansetError if it takes dvc, which is not installed."""
    scheme = _SCHEME.match(remote.url)
    if scheme is None or scheme[1] == "file":
        folder = _folder(remote, repository_url)
        return Store(_shown(str(folder)), partial(_read_in_folder, folder))
    name = _shown(remote.url)
    if scheme[1] in ("http", "https") and set(remote.options) <= _PLAIN_OPTIONS:
        return Store(name, partial(_read_over_http, remote.url.rstrip("/"), name))
    return Store(name, partial(_read_with_dvc, *_dvc_files(remote, scheme[1], name)))


def _read_over_http(url: str, name: str, md5: str) -> bytes:
    address = f"{url}/{quote(object_path(md5))}"
    return retried(lambda: b"".join(_blocks(address, name, "a DVC remote", MAX_DOWNLOAD_BYTES)), NoAnswerError)


def download(address: str, path: Path, limit: int) -> None:
    """Write the file at an address, at most `limit` bytes of it. Raises CleansetError if it cannot be downloaded."""
    name = _shown(address)

    def write() -> None:
        with path.open("wb") as file:
            file.writelines(_blocks(address, name, "a file", limit))

    try:
        retried(write, NoAnswerError)
    except MissingError:
        raise UnreachableError(f"{name}: missing there; expected the address of a release") from None
    except NoAnswerError as error:
        raise UnreachableError(f"{name}: unreachable ({error}); check the network and run this again") from None


def _blocks(address: str, name: str, what: str, limit: int) -> Iterator[bytes]:
    """The answer to a GET. It ends at the limit, so that an endless one cannot fill memory or disk."""
    size = 0
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT_SECONDS) as answer:
            expected = answer.headers.get("Content-Length")
            while block := answer.read(min(BLOCK_BYTES, limit - size)):
                size += len(block)
                yield block
    except urllib.error.HTTPError as error:
        error.close()
        if error.code in (404, 410):
            raise MissingError from None
        said = f"HTTP {error.code} {error.reason}"
        if error.code in _PASSING:
            raise NoAnswerError(said) from None
        raise UnreachableError(f"{name}: refused ({said}); expected {what} that you may read") from None
    except urllib.error.URLError as error:
        raise NoAnswerError(_why(error.reason)) from None
    except (OSError, http.client.HTTPException) as error:
        raise NoAnswerError(_why(error)) from None
    except ValueError as error:  # brackets without an end, a host that IDNA refuses
        raise InputError(f"{name}: not an address ({reason(error)}); expected the address of {what}") from None
    if expected is not None and expected != str(size):  # read(n) does not look
        if size == limit:
            raise CleansetError(f"{name}: {shown(expected)} bytes; expected at most {limit:,}")
        raise NoAnswerError(f"the connection broke after {size:,} of {shown(expected)} bytes")


def _read_in_folder(folder: Path, md5: str) -> bytes:
    try:
        with open_file(folder / object_path(md5)) as file:
            return file.read(MAX_DOWNLOAD_BYTES)
    except FileNotFoundError:
        if folder.is_dir():
            raise MissingError from None
        raise NoAnswerError("no such folder on this machine") from None
    except OSError as error:
        raise NoAnswerError(_why(error)) from None


def _dvc_files(remote: Remote, scheme: str, name: str) -> tuple[Any, str]:
    """The file system of a remote of any other kind, and its path there, with this machine's settings and accounts."""
    try:
        # dvc is optional, and takes up to a second to import
        from dvc.config import Config
        from dvc.fs import get_cloud_fs

        # settings of this machine, such as an account, overrule those of the repository
        own = Config().get("remote", {}).get(remote.name, {})
        kind, settings, path = get_cloud_fs({}, **{**remote.options, **own})
        return kind(**settings), path
    except ModuleNotFoundError:
        raise CleansetError(
            f"{name}: a remote that is read through dvc, which is not installed for {scheme}; "
            f"expected dvc and its driver: pip install 'dvc[{scheme}]', which cleanset[build] has for s3 and ssh"
        ) from None
    except Exception as error:  # whatever the libraries below dvc raise
        raise CleansetError(f"{name}: not a remote that dvc can read ({reason(error)})") from None


def _read_with_dvc(files: Any, path: str, md5: str) -> bytes:
    try:
        return bytes(files.cat_file(f"{path}/{object_path(md5)}"))
    except FileNotFoundError:
        raise MissingError from None
    except Exception as error:
        raise NoAnswerError(_why(error)) from None


def _shown(url: str) -> str:
    """An address for messages, without credentials and cut where it is long."""
    return cut(without_credentials(url), MAX_ANSWER_CHARACTERS)


def _folder(remote: Remote, repository_url: str) -> Path:
    """The folder of a local remote; DVC's relative ones start at the folder `.dvc` of the repository."""
    try:
        path = Path(unquote(urlsplit(remote.url).path) if remote.url.startswith("file:") else remote.url)
    except ValueError as error:
        raise CleansetError(f"{_shown(remote.url)}: invalid address ({reason(error)}); expected a DVC remote") from None
    if path.is_absolute():
        return path
    if not repository_url.startswith("file://"):
        raise CleansetError(
            f"{_shown(repository_url)}: its DVC remote {_shown(remote.url)} is a folder of another machine; "
            "expected an address that can be read from here: ask those who publish it"
        )
    repository = Path(unquote(urlsplit(repository_url).path))
    return (repository / PurePosixPath(remote.root) / ".dvc" / path).resolve()


def _why(error: object) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer for {TIMEOUT_SECONDS} seconds"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return reason(error if isinstance(error, BaseException) else Exception(str(error)))
