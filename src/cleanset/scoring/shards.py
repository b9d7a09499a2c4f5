"""Finished parts of a long computation, kept on the disk until the whole is there."""

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from cleanset.errors import CleansetError
from cleanset.files import sha256
from cleanset.tables import SCORES, read_table, write_table

LEAST = 512
"""Pictures. On a slow machine little is lost with a part; on a fast one a part costs nothing."""


def fingerprint(facts: Mapping[str, object], code: Sequence[str]) -> str:
    """One name for everything that a result depends on: named facts, and the source files at `code`."""
    sources = [sha256(Path(path).read_bytes()) for path in code]
    return hashlib.sha256(json.dumps([facts, sources], sort_keys=True).encode()).hexdigest()[:32]


class Shards:
    """Score tables of consecutive pictures in `folder`, under the fingerprint of what they depend on.

    Those of another fingerprint are removed. A shard's size is a multiple of the batch size, so that
    a picture stands in the same batch whether or not the computation was interrupted.
    """

    def __init__(
        self, folder: Path, fingerprint: str, image_ids: Sequence[str], batch_size: int, least: int = LEAST
    ) -> None:
        self._all, self._folder = folder, folder / fingerprint
        size = batch_size * max(1, least // batch_size)
        self._image_ids = [image_ids[start : start + size] for start in range(0, len(image_ids), size)]
        if folder.is_dir():
            for other in folder.iterdir():
                if other != self._folder:
                    shutil.rmtree(other)
        self.missing = [number for number in range(len(self._image_ids)) if not self._is_finished(number)]

    def image_ids(self, number: int) -> Sequence[str]:
        """The pictures of a shard."""
        return self._image_ids[number]

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:05d}.parquet"

    def _is_finished(self, number: int) -> bool:
        if not self._path(number).is_file():
            return False
        try:
            table = read_table(self._path(number), SCORES)
        except (CleansetError, OSError):  # cut off when the machine lost its power
            return False
        return table["image_id"].tolist() == list(self._image_ids[number])

    def keep(self, number: int, scores: pd.DataFrame) -> None:
        """Put a finished shard on the disk."""
        write_table(self._path(number), scores, SCORES)

    def table(self) -> pd.DataFrame:
        """All shards as one table."""
        tables = [read_table(self._path(number), SCORES) for number in range(len(self._image_ids))]
        return pd.concat(tables, ignore_index=True)

    def remove(self) -> None:
        """Remove everything that was kept."""
        shutil.rmtree(self._all, ignore_errors=True)
