"""The photographs that random_background places objects on: a folder of them, and what is refused in it."""

import os
from collections.abc import Iterator
from pathlib import Path

from cleanset.errors import CleansetError, reason

PHOTOGRAPH_SUFFIXES = (".jpg", ".jpeg", ".png")


def photograph_paths(folder: Path) -> list[Path]:
    """The photographs in a folder and the folders in it, also those that links lead to, sorted by path.

    Nothing is decoded, so that a wrong folder shows at once. Raises CleansetError for a folder that is missing or has
    no photographs, for a loop of links, and for a link that leads nowhere.
    """
    if not folder.is_dir():
        found = "a loop of links" if _is_loop(folder) else "a file" if folder.exists() else "missing"
        raise CleansetError(f"{folder}: {found}; expected a folder of photographs for random_background")
    paths = sorted(_paths(folder, ()))
    if not paths:
        raise CleansetError(f"{folder}: no photographs; expected at least one JPEG or PNG for random_background")
    return paths


def _paths(folder: Path, above: tuple[tuple[int, int], ...]) -> Iterator[Path]:
    """The photographs in a folder; `above` identifies the folders that it lies in."""
    status = folder.stat()
    here = status.st_dev, status.st_ino
    if here in above:
        raise CleansetError(f"{folder}: a link back to a folder that it lies in; expected photographs: remove it")
    try:
        entries = sorted(os.scandir(folder), key=lambda each: each.name)
    except OSError as error:
        raise CleansetError(f"{folder}: cannot be listed ({reason(error)}); expected a folder of photographs") from None
    for entry in entries:
        path = folder / entry.name
        if path.is_dir():
            yield from _paths(path, (*above, here))
        elif path.suffix.lower() in PHOTOGRAPH_SUFFIXES:
            if not path.exists():
                raise CleansetError(f"{path}: a link that leads nowhere; expected a photograph: remove it")
            yield path


def _is_loop(path: Path) -> bool:
    try:
        path.resolve(strict=True)
    except (OSError, RuntimeError):  # RuntimeError: a loop, before Python 3.13
        return path.is_symlink()
    return False
