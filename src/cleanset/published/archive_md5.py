"""The MD5 of an archive, computed beside other work on it.

MD5 of 6.7 GB takes one core ten seconds. hashlib releases the interpreter's lock, so the images can be read and decoded
meanwhile on the others.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from cleanset.dataset.archives import OFFICIAL_IMAGES_MD5, SOURCES
from cleanset.errors import CleansetError
from cleanset.files import check_regular, md5, open_file

_BLOCK_BYTES = 16 * 2**20
"""After each block the thread waits for the interpreter's lock, up to 5 ms; 1 MiB takes only 2 ms to hash."""


@contextmanager
def archive_md5(path: Path) -> Iterator[Callable[[], str]]:
    """Begin to compute the MD5 of a file; give a function that waits for it. Leaving the block stops the computation.

    Raises CleansetError for a missing file and for anything but a regular one.
    """
    check_archive_there(path)
    stopped = threading.Event()

    def blocks() -> Iterator[bytes]:
        with open_file(path) as file:
            while (block := file.read(_BLOCK_BYTES)) and not stopped.is_set():
                yield block

    with ThreadPoolExecutor(1) as pool:
        computed = pool.submit(lambda: md5(blocks()))
        try:
            yield computed.result
        finally:
            stopped.set()


def check_archive_there(path: Path) -> None:
    """Raise CleansetError for a missing file, saying where to get it, and for anything but a regular one."""
    try:
        check_regular(path)
    except FileNotFoundError:
        source = SOURCES["ILSVRC2012_img_val.tar"]
        raise CleansetError(
            f"{path}: missing; expected ImageNet's validation images, the tar or a folder of them: download it from "
            f"{source}"
        ) from None


def check_md5(path: Path, found: str, expected: str) -> None:
    """Raise CleansetError unless an archive has the expected MD5."""
    if found != expected:
        which = "the official archive" if expected == OFFICIAL_IMAGES_MD5 else "the table of digests"
        raise CleansetError(
            f"{path}: MD5 {found}, expected {expected} of {which}: download it again, or give --images a folder with "
            "its images, which are taken as they are"
        )
