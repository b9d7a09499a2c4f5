"""The SHA-256 of every changed image of a study: which of them another machine, or another library, makes otherwise.

A digest is that of the pixels that models are shown, after the JPEG step where there is one: uint8 of shape
(224, 224, 3), red first, row by row. No model runs.
"""

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from PIL import Image

from cleanset.errors import CleansetError
from cleanset.files import read_text, sha256
from cleanset.images.base import BASE_SIZE, Resized
from cleanset.parsing import parse_json
from cleanset.scoring.decoding import SharedBatches
from cleanset.scoring.shards import Shards, fingerprint
from cleanset.studies.robustness.answers import by_name
from cleanset.studies.robustness.changed_images import ChangedImages
from cleanset.studies.robustness.families import Family, Sources
from cleanset.studies.robustness.provenance import changing_code, installed_versions
from cleanset.studies.robustness.settings import StudyParams
from cleanset.tables import FILE, FRAME, NAME, SEVERITY, SHA256, Table

BATCH_SIZE = 128
"""Changed images that are in memory at a time, five times over."""

NAMED_DIGESTS = Table(image_id=FILE, sha256=SHA256)
"""By the family and name of a changed image."""
DIGESTS = {
    "corruptions": Table(key=("file", "change", "severity"), file=FILE, change=NAME, severity=SEVERITY, sha256=SHA256),
    "perturbations": Table(key=("file", "change", "frame"), file=FILE, change=NAME, frame=FRAME, sha256=SHA256),
    "scenarios": Table(key=("file", "change"), file=FILE, change=NAME, sha256=SHA256),
}
"""By family: by image, change, and severity or frame."""

VERSIONS = "versions.json"
"""Beside the tables: the versions of LIBRARIES that made them."""

OnProgress = Callable[[int, float], None]


REMEDY = "run dvc checkout digests to restore it, or dvc repro digests"


def read_versions(path: Path) -> dict[str, str]:
    """The versions of the libraries that made digests, as the stage wrote them. Raises CleansetError for others."""
    found = parse_json(read_text(path, REMEDY), str(path), f"versions by library: {REMEDY}")
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        raise CleansetError(f"{path}: no versions; expected them by library: {REMEDY}")
    return found


@dataclass(frozen=True, slots=True)
class FamilyImages:
    """The changed images of several families, by family and name; a callable that can be pickled."""

    changed: Mapping[str, ChangedImages]

    def __call__(self, name: str) -> Image.Image:
        """The changed image. Raises CleansetError if its file's bytes are not those of the manifest."""
        family, _, rest = name.partition(" ")
        return self.changed[family](rest)


@dataclass(frozen=True, slots=True, eq=False)
class DigestRun:
    """The making of the digests of some families, in so many worker processes for all of them."""

    families: Sequence[Family]
    sources: Sources
    wanted: StudyParams
    workers: int

    def names(self) -> list[str]:
        """Family and name of every changed image, family by family, sorted within each."""
        return [f"{family.name} {name}" for family in self.families for name in family.names()]

    def record(self) -> dict[str, Any]:
        """What the digests depend on."""
        return {
            **{family.name: family.as_record() for family in self.families},
            "jpeg": self.wanted.jpeg,
            "seed": self.wanted.seed,
            "versions": installed_versions(),
        }

    def shards(self, folder: Path) -> Shards:
        """The shards of the digests, in a folder for those that are finished."""
        label = fingerprint(json.dumps(self.record()), changing_code())
        return Shards(folder, label, self.names(), BATCH_SIZE, table=NAMED_DIGESTS)

    def fill(self, shards: Shards, on_progress: OnProgress = lambda *_: None) -> None:
        """Compute the missing shards. Raises CleansetError for an image whose bytes are not those of the manifest."""
        names = [name for number in shards.missing for name in shards.image_ids(number)]
        with closing(self.digests(names)) as found:
            for number in shards.missing:
                rows = []
                for name in shards.image_ids(number):
                    rows.append((name, next(found)))
                    on_progress(1, 0.0)
                shards.keep(number, pd.DataFrame(rows, columns=NAMED_DIGESTS.names))

    def digests(self, names: Sequence[str]) -> Generator[str, None, None]:
        """The digest of each of the changed images, in their order."""
        groups = [names[start : start + BATCH_SIZE] for start in range(0, len(names), BATCH_SIZE)]
        with SharedBatches(self._images(), Resized(BASE_SIZE), BATCH_SIZE, self.workers) as shared:
            for batch in shared.batches(groups):
                for pixels in batch.pixels[: len(batch.image_ids)]:
                    yield sha256(pixels.transpose(1, 2, 0).tobytes())

    def _images(self) -> FamilyImages:
        files = self.sources.files_in
        return FamilyImages({each.name: each.changed_images(files(each.images), self.wanted) for each in self.families})


def tables_of(digests: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The columns of DIGESTS by family, from rows of NAMED_DIGESTS."""
    families = digests["image_id"].str.partition(" ")
    return {
        name: by_name(digests.assign(image_id=families[2])[families[0] == name], table)
        for name, table in DIGESTS.items()
    }
