"""Stored predictions on changed images and digests of their pixels: tables, checks, stage `digests`.

The answers to clean images, with the model's own preprocessing, are checked against the stored scores of the edition.

Stage digests stores the SHA-256 of every changed image, to find images that another machine makes differently. A digest
covers the pixels that models are shown, after any JPEG step: uint8 of shape (224, 224, 3), red first, row by row. No
model runs. Outside a study they lie in a text file: a label, the digest of the images' dependencies, with the digest
of the lines below it, and a line for each image with its digest and its name.
"""

import json
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from cleanset.classes import ClassTable
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.files import read_bytes, replacing, sha256, write_text
from cleanset.images.boxes import box_of
from cleanset.images.preprocessing import BASE_SIZE, Resized
from cleanset.json_files import read_json
from cleanset.machine import available_cores
from cleanset.progress import tracked
from cleanset.scoring.decoding import SharedBatches
from cleanset.scoring.logits import ScoreColumns, margins, top5
from cleanset.scoring.shards import Shards
from cleanset.scoring.validity import MadeFrom, code_of, library_versions
from cleanset.studies.robustness.families import CHANGING, FAMILIES, ChangePlan, OpenedStudy, StudyParams, change_plan
from cleanset.studies.robustness.family import Family
from cleanset.studies.robustness.images import ChangeName, Sources, Study, rows_sha256
from cleanset.tables import (
    CLASS,
    CROP_SCORES,
    FILE,
    LOG_ODDS,
    LOGIT,
    NAME,
    SCORES,
    SHA256,
    TOP5_CLASSES,
    TOP5_PROBABILITIES,
    Column,
    Table,
    between,
    read_table,
    write_table,
)

CORRUPTING = "imagecorruptions-imaug"
"""The library of the corruptions."""
LIBRARIES = {
    CORRUPTING: (CORRUPTING,),
    "numba": ("numba",),
    "numpy": ("numpy",),
    # one library, with and without windows
    "opencv": ("opencv-python-headless", "opencv-python"),
    "pillow": ("pillow",),
    "scikit-image": ("scikit-image",),
    "scipy": ("scipy",),
}
"""The libraries that make the pixels, and under which names each is installed."""


def installed_versions() -> dict[str, str]:
    """The versions of LIBRARIES here."""
    return {
        library: next(iter(library_versions(names).values()), "not installed") for library, names in LIBRARIES.items()
    }


ANSWERS: dict[str, Any] = {
    "top5_class": TOP5_CLASSES,
    "top5_probability": TOP5_PROBABILITIES,
    "log_odds": LOG_ODDS,  # of the top-1 class
    "largest_logit": LOGIT,
    "second_logit": LOGIT,
    "log_sum_exp": LOGIT,  # of all logits
    "class_of_edition": CLASS,  # the highest among the edition's classes
    "class_logit": LOGIT,  # of the image's class
}
STEP = Column(pa.int8(), "a severity or a frame, 0 for neither", between(0, 127))

NAMED_ANSWERS = Table(key=ChangeName._fields, file=FILE, change=NAME, step=STEP, **ANSWERS)
"""The table of answers by changed image, whatever its family."""

CHECKED_COLUMNS = ("top5_class", "top5_probability", "log_odds")
"""The columns of answers to a clean image that must equal the scores that the edition's sets were chosen by."""


def with_family_step(rows: pd.DataFrame, family: Family) -> pd.DataFrame:
    """Rows by changed image, the step under the family's own name of it, such as severity."""
    return rows.rename(columns=dict(zip(["step"], family.steps, strict=False)))


def with_step(rows: pd.DataFrame, family: Family) -> pd.DataFrame:
    """Rows of a family's table with the column `step`, 0 for a family without steps."""
    return rows.rename(columns=dict.fromkeys(family.steps, "step")) if family.steps else rows.assign(step=0)


def predictions_table(family: Family) -> Table:
    """The table of answers to a family."""
    return family.table(**ANSWERS)


ANSWER_TABLES = {family.name: predictions_table(family) for family in FAMILIES}
"""The tables of answers by family."""


def answer_columns(logits: NDArray[np.float64], classes: Iterable[int]) -> ScoreColumns:
    """The columns of ANSWERS but class_logit, from logits of shape (n, 1000) and the edition's class indices.

    Raises ValueError if a logit is not finite.
    """
    found = top5(logits)
    of_edition = np.asarray(sorted(classes), np.int16)
    found |= {name: values.astype(np.float32) for name, values in margins(logits).items()}
    # argmax takes the lower of equal ones
    return found | {"class_of_edition": of_edition[np.argmax(logits[:, of_edition], axis=1)]}


@dataclass(frozen=True, slots=True)
class ReadAnswers:
    """Function from logits and the names of changed images to the columns of ANSWERS."""

    classes: Sequence[int]
    """The class indices that an answer may be restricted to."""
    class_of: Mapping[str, int]
    """The class index of each image, by file."""

    def __call__(self, logits: NDArray[np.float64], names: Sequence[ChangeName]) -> ScoreColumns:
        """The columns. Raises ValueError if a logit is not finite."""
        chosen = logits[np.arange(len(logits)), [self.class_of[name.file] for name in names]]
        return answer_columns(logits, self.classes) | {"class_logit": chosen.astype(np.float32)}


def check_clean(
    role: str, images: pd.DataFrame, clean: pd.DataFrame, scores: pd.DataFrame, crop_scores: pd.DataFrame
) -> None:
    """Raise CleansetError unless each image got the stored scores, bit for bit.

    `images` are rows of STUDY_IMAGES, `clean` the answers to them by file, in the same order, `scores` and
    `crop_scores` the stored ones of whole images and of crops.
    """
    stored = {
        (image_id, box_of(crop)): row
        for table in (scores.assign(crop=None), crop_scores)
        for image_id, crop, *row in table[["image_id", "crop", *CHECKED_COLUMNS]].itertuples(index=False)
    }
    answers = clean[list(CHECKED_COLUMNS)].itertuples(index=False)
    for file, image_id, crop, answer in zip(images["file"], images["image_id"], images["crop"], answers, strict=True):
        if (found := stored.get((image_id, box_of(crop)))) is None:
            raise CleansetError(f"{file}: {role} has no stored scores of it; run dvc repro in the edition")
        for column, left, right in zip(CHECKED_COLUMNS, answer, found, strict=True):
            if not np.array_equal(left, right):
                raise CleansetError(
                    f"{file}: {role} gives {column} {_digits(left)}, the stored scores {_digits(right)}; "
                    f"expected the same bits: run dvc repro --force score@{role} in the edition"
                )


def _digits(values: object) -> str:
    """One value or several, float32 with the nine digits that tell any two apart."""
    return " ".join(f"{value:.9g}" for value in np.atleast_1d(np.asarray(values)).tolist())


CheckClean = Callable[[pd.DataFrame, pd.DataFrame], None]
"""Takes rows of STUDY_IMAGES and the answers to them, clean, in the same order; raises CleansetError if these differ
from stored ones."""


def check_of_stored(edition: Edition, role: str, classes: ClassTable) -> CheckClean:
    """The check that clean answers of a role are its stored scores; `classes`: the edition's class table."""
    whole = read_table(edition.scores(role), SCORES, classes)
    crops = read_table(edition.crop_scores(role), CROP_SCORES, classes)
    return lambda images, clean: check_clean(role, images, clean, scores=whole, crop_scores=crops)


BATCH_SIZE = 128
"""Number of changed images in a batch; five batches are in memory at a time."""

NAMED_DIGESTS = Table(key=ChangeName._fields, file=FILE, change=NAME, step=STEP, sha256=SHA256)
"""The table of digests by changed image, whatever its family."""


DIGESTS = {family.name: family.table(sha256=SHA256) for family in FAMILIES}
"""The tables of digests by family."""

VERSIONS = "versions.json"
"""File beside the tables with the versions of the LIBRARIES that made them."""

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
    sources: Sources
    """What they are made of."""
    wanted: StudyParams
    """The study's params, which have seed and JPEG quality."""
    workers: int | None = None
    """The number of processes; None: one for each core."""

    def label(self) -> str:
        """A digest of everything that the digests depend on."""
        record = {
            **self.plan.as_record(),
            "rows_sha256": rows_sha256(self.plan.images),
            "classes_sha256": self.plan.classes.keys_sha256,
            "jpeg": self.plan.family.jpeg(self.wanted),
            "seed": self.wanted.seed,
            "versions": installed_versions(),
            "code": code_of("studies/robustness"),
        }
        return MadeFrom(record).fingerprint

    def shards(self, folder: Path) -> Shards:
        """The shards of the digests, in a folder for those that are finished."""
        names = self.plan.names()
        return Shards(folder, self.label(), names, BATCH_SIZE, classes=self.sources.classes, table=NAMED_DIGESTS)

    def complete(self, folder: Path) -> Shards:
        """All shards, those that nothing has taken made now.

        Raises CleansetError for an image that differs from the manifest.
        """
        shards = self.shards(folder)
        names = [name for number in shards.missing for name in shards.image_ids(number)]
        # closing ends the worker processes when an image fails
        with closing(self.digests(names)) as digests:
            made = iter(tracked(digests, len(names), f"digests {self.plan.name}"))
            for number in shards.missing:
                shards.keep(number, _digest_rows((name, next(made)) for name in shards.image_ids(number)))
        return shards

    def digests(self, names: Sequence[ChangeName]) -> Generator[str, None, None]:
        """The digest of each of the changed images, in their order."""
        if not names:
            return
        changed = self.plan.changed_images(self.sources.files_in(self.plan.images), self.wanted)
        # batches of one size: the shared memory of the workers is laid out once
        groups = [names[start : start + BATCH_SIZE] for start in range(0, len(names), BATCH_SIZE)]
        workers = self.workers or available_cores()
        with SharedBatches(
            changed, Resized(BASE_SIZE), batch_size=BATCH_SIZE, workers=workers, modules=CHANGING
        ) as shared:
            for batch in shared.batches(groups):
                for pixels in batch.pixels[: len(batch.image_ids)]:
                    yield sha256(pixels.transpose(1, 2, 0).tobytes())


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
    wanted = opened.params
    if not study.digests.is_dir():
        raise CleansetError(f"{study.digests}: missing; expected the output of stage digests: {DIGESTS_REMEDY}")
    sources = opened.sources()
    expected: dict[str, str] = {}
    made_with = read_versions(study.digests / VERSIONS)
    plans = [change_plan(family, sources, wanted) for family in FAMILIES]
    for plan in plans:
        path = study.digests / f"{plan.name}.parquet"
        of_family = read_digests(path, plan.family, opened.classes)
        if list(of_family) != plan.names():
            raise CleansetError(
                f"{path}: of other images or changes than the study has; expected the same: {DIGESTS_REMEDY}"
            )
        expected |= {f"{plan.name} {name}": digest for name, digest in of_family.items()}
    runs = [DigestRun(plan, sources, wanted, workers) for plan in plans]
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
    wanted = opened.params
    sources = opened.sources()
    tables: dict[str, pd.DataFrame] = {}
    finished: list[Shards] = []
    for plan in [change_plan(family, sources, wanted) for family in FAMILIES]:
        # the stages of models have taken them, unless these ran elsewhere
        shards = DigestRun(plan, sources, wanted).complete(study.partial_digests(plan.name))
        tables[plan.name] = with_family_step(shards.table(), plan.family)
        finished.append(shards)
    with replacing(study.digests) as folder:
        for name, table in tables.items():
            write_table(folder / f"{name}.parquet", table, DIGESTS[name], opened.classes)
        write_text(folder / VERSIONS, json.dumps(installed_versions(), indent=2) + "\n")
    for shards in finished:
        shards.remove()


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
        # the head tells that these are the lines that were written
        if head != self._head(lines):
            return None
        # from the right: only the name of a file may contain spaces
        named = ((line[:64], *line[66:].rsplit(" ", 2)) for line in lines)
        return {ChangeName(file, change, int(step)): digest for digest, file, change, step in named}

    def taken(self) -> TakenDigests | None:
        """The shards for digests that are taken while models are shown the images; None where all are stored."""
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
        return self.path.with_suffix(".partial-shards")
