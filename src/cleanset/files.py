"""Writing that never leaves a part: after a kill a file is the new or the old one, a folder that or none."""

import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cleanset.errors import CleansetError


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary name beside `path`; what stands there at the end becomes `path`.

    Works for a file and for a folder. When the block raises, `path` stays as it was and the
    temporary file is removed. One left over by a killed run is removed first. A full disk is reported
    under the name of `path`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial, old = (path.with_name(path.name + ending) for ending in (".partial", ".old.partial"))
    _remove(partial)
    _remove(old)
    try:
        yield partial
        if path.is_dir():
            path.replace(old)
        try:
            partial.replace(path)
        except OSError:
            if old.exists():
                old.replace(path)
            raise
    except OSError as error:
        if error.filename is None:  # writing itself failed, as on a full disk
            error.filename = str(path)
        raise
    finally:
        _remove(partial)
        _remove(old)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """As `replacing`, for a folder that must be new or empty; raises CleansetError if it is not."""
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise CleansetError(f"{path}: there is something already; expected a new or empty folder")
    with replacing(path.resolve()) as partial:
        yield partial


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text with `\\n` line ends, whole or not at all."""
    with replacing(path) as partial:
        partial.write_bytes(text.encode())


def sha256(data: bytes) -> str:
    """SHA-256 in lower-case hexadecimal."""
    return hashlib.sha256(data).hexdigest()
