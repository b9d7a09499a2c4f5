"""Writing that leaves either the whole new file or the old one, never a part."""

import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary name beside `path`; what stands there at the end becomes `path`.

    Works for a file and for a folder. When the block raises, `path` stays as it was and the
    temporary file is removed. One left over by a killed run is removed first.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    _remove(partial)
    try:
        yield partial
        if path.is_dir():
            shutil.rmtree(path)
        partial.replace(path)
    finally:
        _remove(partial)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text with `\\n` line ends, whole or not at all."""
    with replacing(path) as partial:
        partial.write_bytes(text.encode())


def sha256(data: bytes) -> str:
    """SHA-256 in lower-case hexadecimal."""
    return hashlib.sha256(data).hexdigest()
