"""The tokens of local pages, and the file by which a browser is opened.

Every user of a machine can connect to its ports and read the arguments of all its processes. So each page has a token,
secrets are in files that only their owner can read, and a browser is given such a file instead of the address.
"""

import errno
import hmac
import html
import os
import secrets
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cleanset.errors import CleansetError
from cleanset.plumbing.cache import state_folder
from cleanset.plumbing.file_locks import folder_lock
from cleanset.plumbing.files import replacing

MIN_SECRET_BYTES = 32
MAX_SECRET_BYTES = 4_096

OPENING = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Opening the page</title>
<meta http-equiv="refresh" content="0; url={url}"></head><body><p><a href="{url}">Open the page</a></p></body></html>
"""


def kept_tokens(secret: Path, people: Iterable[str]) -> dict[str, str]:
    """The token of each by name, the same whenever the server is started: from a secret in a file, written if missing.

    Only its owner can read the file. Whoever removes it makes all tokens invalid. Raises CleansetError for a file that
    others can read, or may have put there.
    """
    secret.parent.mkdir(parents=True, exist_ok=True)
    # two servers that start at once have the same secret
    with folder_lock(secret.parent):
        if not os.path.lexists(secret):
            with replacing(secret) as partial:
                partial.touch(mode=0o600)
                partial.write_text(secrets.token_urlsafe(32), encoding="utf-8")
        key = _private_bytes(secret)
    if not MIN_SECRET_BYTES <= len(key) <= MAX_SECRET_BYTES:
        raise CleansetError(f"{secret}: {len(key)} bytes; expected a secret: remove it for new links")
    return {name: hmac.new(key, name.encode(), "sha256").hexdigest() for name in people}


def page_tokens(folder: Path, kind: str, people: Iterable[str]) -> dict[str, str]:
    """The token of each person at one kind of page of a folder; it opens no other page.

    From a secret that this user keeps outside the folder, so that a tab left open finds its server again. Drawn where
    no secret can be kept.
    """
    kept = private_folder()
    if kept is not None:
        # no part can have a NUL, so that no two pages have the same text
        texts = {person: "\0".join((str(folder.resolve()), kind, person)) for person in people}
        with suppress(OSError):
            tokens = kept_tokens(kept / "secret", texts.values())
            return {person: tokens[text] for person, text in texts.items()}
    return drawn_tokens(people)


def drawn_tokens(people: Iterable[str]) -> dict[str, str]:
    """A new token for each person."""
    return {person: secrets.token_urlsafe(32) for person in people}


def private_folder() -> Path | None:
    """This user's folder for the secrets of pages, made if missing; None if others could read it."""
    state = state_folder()
    if state is None:
        return None
    folder = state / "pages"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        if _is_own(folder.lstat()) and _is_open_to_others(folder.lstat()):
            folder.chmod(0o700)
        status = folder.lstat()
    except OSError:
        return None
    # a link is nobody's folder, and some file systems have no modes
    is_private = stat.S_ISDIR(status.st_mode) and _is_own(status) and not _is_open_to_others(status)
    return folder if is_private else None


@contextmanager
def opening_file(url: str) -> Iterator[Path]:
    """A file that leads a browser to an address; only this user can read it, and it is removed in the end."""
    # its mode is 0700
    with tempfile.TemporaryDirectory(prefix="cleanset-") as folder:
        path = Path(folder) / "page.html"
        path.touch(mode=0o600)
        path.write_text(OPENING.format(url=html.escape(url)), encoding="utf-8")
        yield path


def _private_bytes(path: Path) -> bytes:
    """The content of a file, or its first MAX_SECRET_BYTES + 1. Raises CleansetError unless it is private."""
    expected = "expected a file of yours that only you can read, on a disk that keeps modes: remove it for new links"
    try:
        # without waiting for the writer of a pipe
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise CleansetError(f"{path}: a symlink; {expected}") from None
        raise
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise CleansetError(f"{path}: not a regular file; {expected}")
        if not _is_own(status):
            raise CleansetError(f"{path}: owned by uid {status.st_uid}; {expected}")
        if _is_open_to_others(status):
            raise CleansetError(f"{path}: mode {stat.S_IMODE(status.st_mode):o}; {expected}")
        return os.read(descriptor, MAX_SECRET_BYTES + 1)
    finally:
        os.close(descriptor)


def _is_own(status: os.stat_result) -> bool:
    return status.st_uid == os.geteuid()


def _is_open_to_others(status: os.stat_result) -> bool:
    return bool(status.st_mode & (stat.S_IRWXG | stat.S_IRWXO))
