"""Finished parts of a long computation, kept on disk until all of it is done."""

import re
import shutil
from collections.abc import Callable, Container, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Any

import pandas as pd

from cleanset.classes import ClassTable
from cleanset.errors import CleansetError
from cleanset.plumbing.files import remove_abandoned
from cleanset.plumbing.progress import rate_bar
from cleanset.scoring.parts import FinishedPart
from cleanset.tables import SCORES, Table, read_table, rows_of_table, text_of_table, write_table

OnProgress = Callable[[int, float | None], None]
"""Called with the number of images just finished, and the share of the time that was spent waiting for data; None if
it is not known."""

# images in a shard, unless a batch is larger: few enough to lose little work, enough to cost nothing
MIN_SHARD_IMAGES = 512


def shard_size(batch_size: int, min_images: int = MIN_SHARD_IMAGES) -> int:
    """The images of a shard: whole batches."""
    return batch_size * max(1, min_images // batch_size)


def _shard_folders(folder: Path) -> list[Path]:
    """The folders with shards in `folder`, one for each fingerprint. Raises CleansetError if it holds anything else."""
    if not folder.exists() and not folder.is_symlink():
        return []
    if folder.is_symlink() or not folder.is_dir():
        raise CleansetError(f"{folder}: not a folder; expected the folder of finished shards: remove it and run again")
    found = sorted(folder.iterdir())
    for each in found:
        if not each.is_symlink():
            remove_abandoned(each)
        if each.is_symlink() or not each.is_dir() or not all(_SHARD.fullmatch(path.name) for path in each.iterdir()):
            raise CleansetError(f"{each}: not a folder of finished shards; expected nothing else there: move it away")
    return found


# name of a shard, or of the temporary file that it is written in
_SHARD = re.compile(r"\d{5,}\.parquet|\.\d{5,}\.parquet\..+\.partial")


def finished_shards(folder: Path, fingerprint: str) -> FinishedPart:
    """The shards in `folder` that were made from the same inputs; nothing is removed, and of each its end is read."""
    images = 0
    seconds = 0.0
    for path in (folder / fingerprint).glob("[0-9]*.parquet"):
        # one that a power failure has truncated is computed again
        with suppress(CleansetError):
            seconds += float(text_of_table(path, _SECONDS) or 0)
            images += rows_of_table(path)
    return FinishedPart(images=images, seconds=seconds)


_SECONDS = "seconds"
"""Name of the text with the seconds since the shard before, or since the run began to compute."""


class Stopwatch:
    """Seconds since the last lap, or since it was made."""

    def __init__(self) -> None:
        self._last = monotonic()

    def lap(self) -> float:
        """The seconds, which then begin again."""
        before = self._last
        self._last = monotonic()
        return self._last - before


class Shards:
    """Score tables of consecutive images in `folder`, under the fingerprint of their inputs.

    Shards of other fingerprints are removed; anything else in `folder`, or a file in its place, raises CleansetError. A
    shard's size is a multiple of the batch size, so that an image is in the same batch whether or not the computation
    was interrupted. `classes` are the classes of the images. `table` is SCORES, or a table with another key: an image
    id is then the tuple of its columns. `only`: the image ids that are scored, where several models share the division
    of one list; None: all.
    """

    def __init__(
        self,
        folder: Path,
        fingerprint: str,
        image_ids: Sequence[Hashable],
        batch_size: int,
        *,
        classes: ClassTable,
        min_images: int = MIN_SHARD_IMAGES,
        table: Table = SCORES,
        only: Container[object] | None = None,
    ) -> None:
        self._all = folder
        self._folder = folder / fingerprint
        self._table = table
        self._classes = classes
        self.stopwatch = Stopwatch()
        size = shard_size(batch_size, min_images)
        self._image_ids = [image_ids[start : start + size] for start in range(0, len(image_ids), size)]
        if only is not None:
            self._image_ids = [[each for each in ids if each in only] for ids in self._image_ids]
        for other in _shard_folders(folder):
            if other != self._folder:
                shutil.rmtree(other)
        self.missing = [number for number in range(len(self._image_ids)) if not self._is_finished(number)]

    def image_ids(self, number: int) -> Sequence[Any]:
        """The image ids of a shard."""
        return self._image_ids[number]

    def finished_images(self) -> int:
        """Number of images in the shards that were finished when these were opened."""
        return sum(map(len, self._image_ids)) - sum(len(self._image_ids[number]) for number in self.missing)

    def total_images(self) -> int:
        """Number of images in all shards, finished or not."""
        return sum(map(len, self._image_ids))

    def finished(self) -> Iterator[pd.DataFrame]:
        """The tables of the shards that are finished now, in order."""
        return (table for _, table in self.finished_by_number())

    def finished_by_number(self) -> Iterator[tuple[int, pd.DataFrame]]:
        """The numbers and tables of the shards that are finished now, in order."""
        for number, ids in enumerate(self._image_ids):
            if ids and self._is_finished(number):
                yield number, self._read(number)

    def _read(self, number: int) -> pd.DataFrame:
        return read_table(self._path(number), self._table, self._classes)

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:05d}.parquet"

    def _is_finished(self, number: int) -> bool:
        if not self._image_ids[number]:
            return True
        if not self._path(number).is_file():
            return False
        try:
            table = self._read(number)
        except (CleansetError, OSError):  # truncated by a power failure
            return False
        columns = [table[name].tolist() for name in self._table.key]
        found = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
        return bool(found == list(self._image_ids[number]))

    def keep(self, number: int, scores: pd.DataFrame) -> None:
        """Write a finished shard, with the seconds since the one before."""
        seconds = {_SECONDS: f"{self.stopwatch.lap():.6f}"}
        write_table(self._path(number), scores, self._table, self._classes, texts=seconds)

    def table(self) -> pd.DataFrame:
        """The scores of all shards in one table."""
        tables = [self._read(number) for number, ids in enumerate(self._image_ids) if ids]
        return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=self._table.names)

    def remove(self) -> None:
        """Remove all shards."""
        shutil.rmtree(self._all, ignore_errors=True)


@contextmanager
def shards_bar(shards: Sequence[Shards], text: str, workers: int = 1) -> Iterator[OnProgress]:
    """A bar named `text` of the images in some shards, which begins with those that an earlier run has finished."""
    total = sum(each.total_images() for each in shards)
    finished = sum(each.finished_images() for each in shards)
    # computed together, they share the seconds
    stopwatch = Stopwatch()
    for each in shards:
        each.stopwatch = stopwatch
    with rate_bar(total, text, finished=finished, workers=workers) as done:
        yield done
