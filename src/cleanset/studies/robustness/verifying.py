"""The command `robustness verify`: the changed images of a study, made again, against their digests."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from cleanset.edition.params import read_params
from cleanset.errors import CleansetError
from cleanset.machine import available_cores
from cleanset.progress import tracked
from cleanset.studies.robustness.changed_images import ChangeName
from cleanset.studies.robustness.digests import DIGESTS, REMEDY, VERSIONS, DigestRun, read_versions
from cleanset.studies.robustness.families import Sources, family_of
from cleanset.studies.robustness.provenance import installed_versions
from cleanset.studies.robustness.settings import read_study_params
from cleanset.studies.robustness.study import FAMILIES, Study
from cleanset.tables import read_table

MAX_SHOWN = 20
"""Differing images that are named; how many there are beyond is told."""
SHOWN_DIGITS = 12


class Different(NamedTuple):
    """A changed image, by family and name, that is not as it was: the SHA-256 that was found, and the expected one."""

    name: str
    found: str
    expected: str

    def __str__(self) -> str:
        return f"{self.name}: {self.found[:SHOWN_DIGITS]}...; expected {self.expected[:SHOWN_DIGITS]}..."


@dataclass(frozen=True, slots=True)
class Verification:
    """How many changed images were made again, those that differ, and the libraries' versions, then and now."""

    images: int
    different: list[Different]
    made_with: dict[str, str]
    installed: dict[str, str]

    def lines(self) -> Iterator[str]:
        """For people: each difference, at most MAX_SHOWN of them, then what was compared, then the libraries."""
        yield from map(str, self.different[:MAX_SHOWN])
        if len(self.different) > MAX_SHOWN:
            yield f"and {len(self.different) - MAX_SHOWN:,} more"
        found = f"{len(self.different):,} of {self.images:,} changed images differ"
        yield found if self.different else f"all {self.images:,} changed images are the same"
        for library in sorted({*self.made_with, *self.installed}):
            then, now = self.made_with.get(library, "unknown"), self.installed.get(library, "unknown")
            yield f"{library} {now}" + (f"; the digests were made with {then}" if then != now else "")


def verify(study: Study, workers: int | None = None) -> Verification:
    """Make every changed image of a study again, in `workers` processes, else one for each core.

    Raises CleansetError where there are no digests, where they are of other images or changes than the study has, and
    for an image whose bytes are not those of the manifest.
    """
    wanted = read_study_params(study.params_yaml, list(read_params(study.edition.folder).models))
    if not study.digests.is_dir():
        raise CleansetError(f"{study.digests}: missing; expected what stage digests writes: {REMEDY}")
    sources, expected = Sources.read(study), dict[str, str]()
    made_with = read_versions(study.digests / VERSIONS)
    run = DigestRun(
        [family_of(name, sources, wanted) for name in FAMILIES], sources, wanted, workers or available_cores()
    )
    for family in run.families:
        path = study.digests / f"{family.name}.parquet"
        of_family = read_digests(path, family.name)
        if list(of_family) != family.names():
            raise CleansetError(f"{path}: of other images or changes than the study has; expected the same: {REMEDY}")
        expected |= {f"{family.name} {name}": digest for name, digest in of_family.items()}
    found = tracked(run.digests(run.names()), len(expected), "verify")
    pairs = zip(expected.items(), found, strict=True)
    different = [Different(name, now, then) for (name, then), now in pairs if now != then]
    return Verification(len(expected), different, made_with, installed_versions())


def read_digests(path: Path, family: str) -> dict[str, str]:
    """The digests in a table by the name of the changed image, sorted by it. Raises CleansetError as `read_table`."""
    table = DIGESTS[family]
    rows = read_table(path, table)
    steps = rows[table.key[2]].tolist() if len(table.key) > 2 else [0] * len(rows)
    names = map(ChangeName, rows["file"], rows["change"], steps)
    return dict(sorted(zip(map(str, names), rows["sha256"], strict=True)))
