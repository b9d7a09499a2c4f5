"""The folders that one command leaves to the next, for all editions: downloads and results, and what it has seen.

Only two lines of platformdirs, which a plain installation lacks, would be used.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cleanset.errors import CleansetError

PACKAGE = Path(__file__).parents[1]
"""The folder of this package."""


def cache_folder() -> Path:
    """The absolute folder of downloads and read text, for all editions: CLEANSET_CACHE, else ~/.cache/cleanset.

    Raises CleansetError for a user without a home folder, as in a container whose uid has no entry in passwd.
    """
    if named := os.environ.get("CLEANSET_CACHE"):
        return Path(named).absolute()
    try:
        home = Path.home()
    except RuntimeError:
        raise CleansetError(
            f"the cache: no home folder (HOME is not set, and uid {os.getuid()} is not in passwd); expected a folder "
            "for what is downloaded and unpacked: set CLEANSET_CACHE to one"
        ) from None
    return (home / ".cache" / "cleanset").absolute()


def state_folder() -> Path | None:
    """The absolute folder of what cannot be made again, in XDG_STATE_HOME, else ~/.local/state; None without a home."""
    named = os.environ.get("XDG_STATE_HOME")
    try:
        base = Path(named) if named else Path.home() / ".local" / "state"
    except RuntimeError:
        return None
    return base.absolute() / "cleanset"


@contextmanager
def writing_cache() -> Iterator[None]:
    """Name the cache and the remedy if a system error in the block comes from it: no room, no permission."""
    try:
        yield
    except OSError as error:
        cache = cache_folder()
        # a write names no file
        at = Path(error.filename).absolute() if isinstance(error.filename, str) else cache
        if error.strerror is None or not (at.is_relative_to(cache) or cache.is_relative_to(at)):
            raise
        raise CleansetError(
            f"{cache}: {error.strerror}; expected a folder for sets, with room, that can be written: free "
            "some, or set CLEANSET_CACHE to another folder"
        ) from None
