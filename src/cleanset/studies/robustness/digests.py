"""Digests of the pixels of changed images: the computation, stage `digests`, and the command that compares them.

Stage digests stores the SHA-256 of every changed image, to find images that another machine makes differently. A digest
covers the pixels that models are shown, after any JPEG step: uint8 of shape (224, 224, 3), red first, row by row. No
model runs. Outside a study they are in a text file: a label, the digest of the images' dependencies, with the digest
of the lines below it, and a line for each image with its digest and its name.
"""

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from cleanset.classes import ClassTable
from cleanset.edition.params import Engine
from cleanset.errors import CleansetError
from cleanset.images.codec import Source
from cleanset.images.preprocessing import BASE_SIZE, Resized
from cleanset.plumbing.files import partial_shards, read_bytes, replacing, sha256, write_text
from cleanset.plumbing.json_files import read_json, write_json
from cleanset.plumbing.machine import available_cores
from cleanset.plumbing.progress import tracked
from cleanset.scoring.decoding import SharedBatches
from cleanset.scoring.shards import Shards, shards_bar
from cleanset.scoring.validity import MadeFrom, made_from_images
from cleanset.studies.robustness.answers import NAMED, installed_versions, with_family_step, with_step
from cleanset.studies.robustness.families import (
    CHANGING,
    FAMILIES,
    ChangePlan,
    OpenedStudy,
    family_named,
)
from cleanset.studies.robustness.family import Family
from cleanset.studies.robustness.images import ChangeName, Study, rows_sha256
from cleanset.tables import SHA256, Table, read_table, write_table

if TYPE_CHECKING:
    from cleanset.scoring.computation import Opened, Place, Task, Tasks

BATCH_SIZE = 128
"""Number of changed images in a batch; five batches are in memory at a time."""


def open_changing(images: Source, workers: int) -> SharedBatches:
    """Processes that make changed images of 224 x 224 pixels, in batches of BATCH_SIZE."""
    return SharedBatches(images, Resized(BASE_SIZE), batch_size=BATCH_SIZE, workers=workers, modules=CHANGING)


NAMED_DIGESTS = Table(**NAMED, sha256=SHA256)
"""The table of digests by changed image, whatever its family."""


DIGESTS = {family.name: family.table(sha256=SHA256) for family in FAMILIES}
"""The tables of digests by family."""

VERSIONS = "versions.json"
"""File next to the tables with the versions of the LIBRARIES that made them."""

MAX_SHOWN = 20
"""Maximum number of differing images that are listed; the rest is counted."""
DIGEST_DIGITS = 12

DIGESTS_REMEDY = "run dvc checkout digests to restore it, or dvc repro digests"


def read_versions(path: Path) -> dict[str, str]:
    """The versions of the libraries that made digests, as the stage wrote them. Raises CleansetError for others."""
    found: dict[str, str] = read_json(path, dict[str, str], "a version for each library", DIGESTS_REMEDY)
    return found


class TakenDigests:
    """The digests of a family's changed images, kept in shards as models are shown the images."""

    def __init__(self, shards: Shards) -> None:
        self._shards = shards
        self._open = set(shards.missing)
        self._taken: dict[ChangeName, str] = {}
        # several devices take digests at once
        self._lock = threading.Lock()

    def take(self, names: Iterable[ChangeName], digests: Iterable[str]) -> None:
        """Take the digests of some images, and keep every shard that is whole with them."""
        with self._lock:
            self._taken.update(zip(names, digests, strict=True))
            for number in sorted(self._open):
                ids = self._shards.image_ids(number)
                if all(name in self._taken for name in ids):
                    self._shards.keep(number, _digest_rows((name, self._taken.pop(name)) for name in ids))
                    self._open.remove(number)

    def remove_known(self, known: Mapping[ChangeName, str]) -> None:
        """Remove the shards if all of their digests are known, by name."""
        if all(known.items() >= digests_in(rows).items() for rows in self._shards.finished()):
            self._shards.remove()


def _digest_rows(digests: Iterable[tuple[ChangeName, str]]) -> pd.DataFrame:
    return pd.DataFrame([(*name, digest) for name, digest in digests], columns=NAMED_DIGESTS.names)


def digests_in(rows: pd.DataFrame) -> dict[ChangeName, str]:
    """The digests in rows of NAMED_DIGESTS by changed image, in their order."""
    return dict(zip(ChangeName.of_rows(rows), rows["sha256"], strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class DigestRun:
    """Computes the digests of a family's changed images, in worker processes."""

    plan: ChangePlan
    """The changed images."""
    workers: int | None = None
    """The number of processes; None: one for each core."""

    def made_from(self) -> MadeFrom:
        """Everything that the digests depend on."""
        return made_from_images(
            {
                **self.plan.as_record(),
                "jpeg": self.plan.jpeg,
                "seed": self.plan.params.seed,
                "versions": installed_versions(),
            },
            images={"rows_sha256": rows_sha256(self.plan.images)},
            classes=self.plan.classes,
            code=["studies/robustness"],
            model=None,
            settings=None,
        )

    def label(self) -> str:
        """A digest of everything that the digests depend on."""
        return self.made_from().fingerprint

    def shards(self, folder: Path) -> Shards:
        """The shards of the digests, in a folder for those that are finished."""
        names = self.plan.names()
        return Shards(folder, self.label(), names, BATCH_SIZE, classes=self.plan.classes, table=NAMED_DIGESTS)

    def complete(
        self,
        folder: Path,
        opening: "Callable[[Place], Opened[pd.DataFrame]] | None" = None,
        engine: Engine = "local",
    ) -> Shards:
        """All shards, those that nothing has taken made now; `opening`: opens the run on another machine.

        Raises CleansetError for an image that differs from the manifest.
        """
        shards = self.shards(folder)
        if not shards.missing:
            return shards
        # torch, which reading stored digests needs no more than making images does
        from cleanset.scoring.computation import Elsewhere, missing_tasks
        from cleanset.scoring.engines import Computation

        name = f"digests {self.plan.name}"
        elsewhere = None if opening is None else Elsewhere(name=name, open=opening, made_from=self.made_from())
        with shards_bar([shards], name) as done:

            def keep(number: int, found: pd.DataFrame) -> None:
                shards.keep(number, found)
                done(len(found), None)

            Computation(
                tasks=missing_tasks(shards), keep=keep, workers=lambda: [DigestWorker(self)], elsewhere=elsewhere
            ).run(engine)
        return shards

    def digests(self, names: Iterable[ChangeName]) -> Generator[str, None, None]:
        """The digest of each of the changed images, in their order.

        `names` are consumed only as far as images are made ahead.
        """
        waiting = iter(names)
        groups = iter(lambda: list(islice(waiting, BATCH_SIZE)), [])
        first = next(groups, None)
        if first is None:
            return
        with open_changing(self.plan.changed_images(), self.workers or available_cores()) as shared:
            # batches of one size: the shared memory of the workers is laid out once
            for batch in shared.batches(chain([first], groups)):
                for pixels in batch.pixels[: len(batch.image_ids)]:
                    yield sha256(pixels.transpose(1, 2, 0).tobytes())


@dataclass(frozen=True, slots=True)
class DigestWorker:
    """The worker of a run of digests, which makes the images of the next shards meanwhile."""

    run: DigestRun

    def results(self, tasks: "Tasks") -> "Generator[tuple[int, pd.DataFrame], None, None]":
        """The number and the digests of each shard. Raises CleansetError as `DigestRun.complete` does."""
        begun: deque[Task] = deque()

        def names() -> Iterator[ChangeName]:
            for task in tasks:
                begun.append(task)
                yield from task.ids

        found: list[str] = []
        # closing ends the worker processes when an image fails
        with closing(self.run.digests(names())) as digests:
            for digest in digests:
                found.append(digest)
                if len(found) == len(begun[0].ids):
                    task = begun.popleft()
                    yield task.number, _digest_rows(zip(task.ids, found, strict=True))
                    found = []

    def stop(self) -> None:
        """Wait for the end of the shard."""


@dataclass(frozen=True, slots=True)
class DigestVerification:
    """The comparison of changed images, made again, with the stored digests."""

    images: int
    """The number of images made again."""
    different: list[str]
    """A line for each image that differs."""
    made_with: dict[str, str]
    """The libraries' versions when the digests were stored."""
    installed: dict[str, str]
    """The libraries' versions now."""

    def lines(self) -> Iterator[str]:
        """The lines for people: at most MAX_SHOWN differences, then the numbers compared, then the libraries."""
        yield from self.different[:MAX_SHOWN]
        if len(self.different) > MAX_SHOWN:
            yield f"and {len(self.different) - MAX_SHOWN:,} more"
        found = f"{len(self.different):,} of {self.images:,} changed images differ"
        yield found if self.different else f"all {self.images:,} changed images are the same"
        for library in sorted({*self.made_with, *self.installed}):
            then = self.made_with.get(library, "unknown")
            now = self.installed.get(library, "unknown")
            yield f"{library} {now}" + (f"; the digests were made with {then}" if then != now else "")


def verify(study: Study, workers: int | None = None) -> DigestVerification:
    """Make every changed image of a study again, in `workers` processes, else one for each core.

    Raises CleansetError if digests are missing, or of other images or changes than the study's, and for an image that
    differs from the manifest.
    """
    opened = OpenedStudy.read(study)
    if not study.digests.is_dir():
        raise CleansetError(f"{study.digests}: missing; expected the output of stage digests: {DIGESTS_REMEDY}")
    expected: dict[str, str] = {}
    made_with = read_versions(study.digests / VERSIONS)
    plans = list(map(opened.plan, FAMILIES))
    for plan in plans:
        path = study.digests / f"{plan.name}.parquet"
        of_family = read_digests(path, plan.family, opened.classes)
        if list(of_family) != plan.names():
            raise CleansetError(
                f"{path}: made from other images or changes than the study's; expected the same: {DIGESTS_REMEDY}"
            )
        expected |= {f"{plan.name} {name}": digest for name, digest in of_family.items()}
    runs = [DigestRun(plan, workers) for plan in plans]
    found = tracked(chain.from_iterable(run.digests(run.plan.names()) for run in runs), len(expected), "verify")
    # `expected` was filled plan by plan, the order of `runs`
    different = [
        f"{name}: {now[:DIGEST_DIGITS]}...; expected {then[:DIGEST_DIGITS]}..."
        for (name, then), now in zip(expected.items(), found, strict=True)
        if now != then
    ]
    return DigestVerification(len(expected), different, made_with, installed_versions())


def read_digests(path: Path, family: Family, classes: ClassTable) -> dict[ChangeName, str]:
    """The digests in a table by changed image, sorted. Raises CleansetError as `read_table`."""
    return digests_in(with_step(read_table(path, DIGESTS[family.name], classes), family))


def run(study: Study) -> None:
    """Read images, masks and backgrounds, write data/digests/: a table for each family, and the libraries' versions.

    The changed images are the same for all models, whatever `images` says. Finished shards are kept until the end.
    Raises CleansetError for an image that differs from the manifest, and as `change_plan` does.
    """
    opened = OpenedStudy.read(study)
    tables: dict[str, pd.DataFrame] = {}
    finished: list[Shards] = []
    elsewhere = Study(study.folder.resolve())
    for plan in list(map(opened.plan, FAMILIES)):
        # the stages of models have taken them, unless these ran elsewhere
        shards = DigestRun(plan).complete(
            study.partial_digests(plan.name), partial(_open_on_node, elsewhere, plan.name), opened.engine
        )
        tables[plan.name] = with_family_step(shards.table(), plan.family)
        finished.append(shards)
    with replacing(study.digests) as folder:
        for name, table in tables.items():
            write_table(folder / f"{name}.parquet", table, DIGESTS[name], opened.classes)
        write_json(folder / VERSIONS, installed_versions())
    for shards in finished:
        shards.remove()


def _open_on_node(study: Study, family: str, place: "Place") -> "Opened[pd.DataFrame]":
    """The digests of a family of a study, as each node of a cluster opens them."""
    from cleanset.scoring.computation import Opened

    run = DigestRun(OpenedStudy.read(study).plan(family_named(family)), workers=place.cores)
    return Opened(worker=DigestWorker(run), made_from=run.made_from())


@dataclass(frozen=True, slots=True, eq=False)
class ShownPixels:
    """The digests of the changed images that models are shown outside a study, in a text file."""

    path: Path
    """The file."""
    run: DigestRun
    """Computes those that nothing has taken."""

    def stored(self) -> dict[ChangeName, str] | None:
        """The digests in the file by name; None unless it has every one of these images."""
        try:
            head, *lines = read_bytes(self.path).decode("utf-8", "replace").splitlines()
        except (FileNotFoundError, ValueError):  # ValueError: an empty file
            return None
        # the head shows that these are the lines that were written
        if head != self._head(lines):
            return None
        # from the right: only the name of a file may contain spaces
        named = ((line[:64], *line[66:].rsplit(" ", 2)) for line in lines)
        return {ChangeName(file, change, int(step)): digest for digest, file, change, step in named}

    def taken(self) -> TakenDigests | None:
        """The shards for digests that are taken while models are shown the images; None if all are stored."""
        return None if self.stored() is not None else TakenDigests(self.run.shards(self._folder))

    def finish(self) -> dict[ChangeName, str]:
        """The digests of all changed images by name; those that nothing has taken are made now. Writes the file."""
        found = self.stored()
        if found is not None:
            return found
        shards = self.run.complete(self._folder)
        digests = digests_in(shards.table())
        lines = [f"{each}  {name}" for name, each in digests.items()]
        write_text(self.path, "\n".join([self._head(lines), *lines, ""]))
        shards.remove()
        return digests

    def _head(self, lines: Sequence[str]) -> str:
        """The first line of the file: the label, and the digest of the lines below, which nobody may edit."""
        return f"{self.run.label()} {sha256(chr(10).join(lines).encode())}"

    @property
    def _folder(self) -> Path:
        return partial_shards(self.path.with_suffix(""))


def shown_pixels(opened: OpenedStudy, plan: ChangePlan) -> ShownPixels:
    """The digests of a family's changed images in the folder of a command."""
    path = opened.answers.folder / "digests" / f"{plan.name}.txt"
    return ShownPixels(path, DigestRun(plan))
