"""One attack on one model: what its result depends on, its workers and budget, when it is continued, and its files.

Groups of images are searched and judged by the workers of all devices; finished groups are kept until the end. What is
opened, for a stage or for `attacks evaluate`, is in `attack_stage` and `evaluated_models`. Groups are counted in their
order, whoever computes them and whenever they are finished: so a budget of queries gives the same images with one
worker and with several, and after an interruption.
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any

import numpy as np
import pandas as pd
import torch

from cleanset.edition.params import Engine
from cleanset.plumbing.files import replacing, sha256_of
from cleanset.plumbing.json_files import JsonMapping, JsonObject, with_digest, write_json
from cleanset.plumbing.machine import available_cores
from cleanset.plumbing.progress import print_notice
from cleanset.scoring.computation import (
    Elsewhere,
    Opened,
    Place,
    Task,
    Worker,
    further_workers,
    missing_tasks,
    worker_devices,
)
from cleanset.scoring.devices import Device, choose_devices, computing_threads, device_of
from cleanset.scoring.differentiable import PixelNetwork, searching
from cleanset.scoring.engines import Computation
from cleanset.scoring.scorer import ignore
from cleanset.scoring.shards import Shards, shards_bar
from cleanset.scoring.validity import MadeFrom, library_versions, made_from_images, print_again, read_finished
from cleanset.studies.attacks.base import Known, globally_seeded, seed_of
from cleanset.studies.attacks.candidate_files import MAX_WRITERS, Writers
from cleanset.studies.attacks.fresh import Asked
from cleanset.studies.attacks.judge import unwritten
from cleanset.studies.attacks.results import ATTACKED, SHARD, attacked_rows, png_name
from cleanset.studies.attacks.study import AttackedFolder, AttackParams, Budget
from cleanset.studies.attacks.targets import Target
from cleanset.studies.attacks.threats import PROBE
from cleanset.studies.robustness.answers import CORRUPTING, installed_versions
from cleanset.studies.robustness.families import CHANGING
from cleanset.studies.robustness.images import first_images, images_sha256, rows_sha256
from cleanset.tables import Table, read_table, write_table


class Spending:
    """The queries and seconds that the groups of an attack have taken; seconds are the sum over the workers.

    `finished`: the queries of the groups that an earlier run has finished, by number.
    """

    def __init__(self, budget: Budget, finished: Mapping[int, int], clock: Callable[[], float] = monotonic) -> None:
        self._budget = budget
        self._queries = dict(finished)
        self._clock = clock
        self._begun = dict[int, float]()
        self._seconds = 0.0

    def may_begin(self, number: int) -> bool:
        """Whether a group may begin; at least one group is attacked, however small the budget is."""
        queries = self._budget.queries
        seconds = self._budget.seconds
        if number == 0:
            return True
        if seconds is not None and self.seconds() >= seconds:
            return False
        # those of groups that are not finished yet are unknown
        return queries is None or sum(each for before, each in self._queries.items() if before < number) < queries

    def begin(self, number: int) -> None:
        """A worker of this machine begins a group: the seconds since count before it is finished."""
        self._begun[number] = self._clock()

    def finish(self, number: int, queries: int, seconds: float) -> None:
        """A group is finished, which took a worker this many seconds."""
        self._begun.pop(number, None)
        self._seconds += seconds
        self._queries[number] = queries

    def seconds(self) -> float:
        """Seconds that groups of this run have taken so far, of all workers together."""
        now = self._clock()
        return self._seconds + sum(now - begun for begun in self._begun.values())

    def counted_groups(self) -> int:
        """The number of groups that count: the first ones that are finished, within the budget of queries."""
        number = 0
        spent = 0
        while number in self._queries and (number == 0 or self._budget.queries is None or spent < self._budget.queries):
            spent += self._queries[number]
            number += 1
        return number


@dataclass(frozen=True, slots=True)
class Attacking:
    """An attack, by its name in the params, on a model, and where its results are written.

    `further`: facts that the results depend on besides record, images, model and code, by name. `table`: the table of
    the results.
    """

    params: AttackParams
    name: str
    target: Target
    folder: AttackedFolder
    further: JsonMapping = field(default_factory=dict)
    table: Table = ATTACKED

    def record(self, images: pd.DataFrame) -> JsonObject:
        """The provenance record of the results of some rows of STUDY_IMAGES.

        The only facts about the machine in it are the device and libraries of the search.
        """
        params = self.params
        target = self.target
        lpips = self.target.judge.lpips
        attack = None if self.name == PROBE else params.attack(self.name)
        parameters = params.probe if attack is None else attack
        # scikit-image computes SSIM
        libraries = [
            *(() if attack is None else attack.libraries), "scikit-image", *(() if lpips is None else ("lpips",))
        ]  # fmt: skip
        return {
            "attack": self.name,
            "role": target.name,
            **({} if target.wrapped is None else {"wrapped": target.wrapped.model_dump()}),
            "parameters": parameters.model_dump(),
            "budget": params.budget.model_dump(),
            "seed": params.seed,
            "search_precision": params.search_precision,
            "searched_on": device_of(target.how.device).name,
            "weights_sha256": target.model.weights_sha256,
            "images": len(images),
            "images_sha256": images_sha256(images),
            "versions": library_versions() | library_versions(libraries),
            **({} if lpips is None else {"lpips_weights_sha256": lpips.weights_sha256}),
        }

    def made_from(self, images: pd.DataFrame) -> MadeFrom:
        """The record, and the other dependencies of the results: classes, code, other images, and the further facts."""
        target = self.target
        attack = self.params.attack(self.name)
        further = {**self.further}
        if target.how.precision != "float64":
            further["batch_size"] = target.how.batch_size
        if attack.reads_other_images:
            further["begins_with_sha256"] = rows_sha256(target.images)
        # the library alone does not decide a corruption's pixels
        if CORRUPTING in attack.libraries:
            further["changed_by"] = installed_versions()
        return made_from_images(
            self.record(images),
            images={"rows_sha256": rows_sha256(images)},
            classes=target.classes,
            code=["scoring", "studies/robustness", "studies/attacks"],
            model=target.model,
            # of the search, whose device the record names
            settings=None,
            further=further,
        )

    def run(self, search: "Search", images: pd.DataFrame, others: "OtherSearches", *, keep_facts: bool = False) -> None:
        """Attack some rows of STUDY_IMAGES, and write the results; finished groups are kept until the end.

        `search`: searches in this process; `others`: in further ones. `keep_facts`: write all dependencies of the
        results into the record, which identifies them without DVC.
        """
        made_from = self.made_from(images)
        files = images["file"].tolist()
        shards = self._shards(made_from, files)
        count = self._search_missing(search, shards, others, made_from)
        if count < len(images):
            print_notice(f"{self.text}: budget exhausted after {count} of {len(images)} images")
        # again: after a spent budget there are fewer images, and so fewer groups
        finished = self._shards(made_from, files[:count])
        self.write(
            finished.table(), {**self.record(images), "attacked": count, **(made_from.facts if keep_facts else {})}
        )
        shards.remove()

    @property
    def text(self) -> str:
        """The attack and the model, as progress and errors name them."""
        return f"{self.name} {self.target.name}"

    def _shards(self, made_from: MadeFrom, files: Sequence[str]) -> Shards:
        size = self.params.attack(self.name).group_size
        return Shards(
            self.folder.partial,
            made_from.fingerprint,
            files,
            size,
            classes=self.target.classes,
            min_images=size,
            table=SHARD,
        )

    def results(self) -> pd.DataFrame:
        """The table of the results."""
        return read_table(self.folder.table, self.table, self.target.classes)

    def asked(self) -> list[Asked]:
        """The files of the results."""
        found = self.results()
        words = f"{self.target.name} {self.name}"
        return [
            Asked(self.name, file, self.folder.folder / png, seed_of(self.params.seed, "judged", words, file))
            for file, png in zip(found["file"], found["png"], strict=True)
        ]

    def run_unfinished(self, search: "Search", others: "OtherSearches") -> None:
        """Attack the first images of each class as `run` does, unless the results of an earlier run are there."""
        if not self.is_finished():
            self.run(search, self.first_images(), others, keep_facts=True)

    def is_finished(self) -> bool:
        """Whether the results of an earlier run of the same are there, with all files; prints why not."""
        made_from = self.made_from(self.first_images())
        found = read_finished(self.folder.record, made_from, self.folder.table)
        return found is not None and not self._has_other_files()

    def first_images(self) -> pd.DataFrame:
        """The first images of each class, as far as the params have the attack try them: rows of STUDY_IMAGES."""
        return first_images(self.target.images, self.params.images_of(self.name, self.target.name))

    def _has_other_files(self) -> bool:
        """Whether a PNG is missing, or is not the one that was judged; prints the first."""
        found = self.results()
        for png, digest in zip(found["png"], found["png_sha256"], strict=True):
            path = self.folder.folder / png
            if not path.is_file() or sha256_of(path) != digest:
                print_again(path, "missing, or changed since it was judged")
                return True
        return False

    def write(self, shards: pd.DataFrame, record: JsonObject) -> None:
        """Write the table, the PNGs and the record, from rows of SHARD: all or nothing."""
        ids = {file: each.image_id for file, each in self.target.files.items()}
        with replacing(self.folder.folder) as unfinished:
            for file, content in zip(shards["image_id"], shards["content"], strict=True):
                path = unfinished / png_name(file)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            replace(self, folder=AttackedFolder(unfinished)).save(attacked_rows(shards, ids), record)

    def save(self, rows: pd.DataFrame, record: JsonObject) -> None:
        """Write the table and the record."""
        write_table(self.folder.table, rows, self.table, self.target.classes)
        if "code" in record:  # all facts, as nothing else pins the results
            record = with_digest(record, self.folder.table)
        write_json(self.folder.record, record)

    def _search_missing(self, search: "Search", shards: Shards, others: "OtherSearches", made_from: MadeFrom) -> int:
        """Attack the missing groups, on all devices; return how many images from the first count."""
        # what was spent before an interruption counts
        finished = {number: int(table["queries"].sum()) for number, table in shards.finished_by_number()}
        spending = Spending(self.params.budget, finished)
        left = missing_tasks(shards)
        elsewhere = Elsewhere(name=self.text, open=others.open, made_from=made_from) if others.open else None

        def workers() -> list[Worker[FoundGroup]]:
            further = further_workers(elsewhere, others.devices, len(left), SEARCHING) if elsewhere else []
            return [search, *further]

        count = len(worker_devices(others.devices, len(left))) if elsewhere else 1
        with shards_bar([shards], self.text, count) as done:

            def keep(number: int, found: FoundGroup) -> None:
                table = found.table
                shards.keep(number, table)
                spending.finish(number, int(table["queries"].sum()), found.seconds)
                done(len(table), None)

            Computation(
                tasks=left,
                keep=keep,
                workers=workers,
                elsewhere=elsewhere,
                on_gpus=others.devices[0].is_separate,
                limit=spending,
            ).run(others.engine)
        return sum(len(shards.image_ids(number)) for number in range(spending.counted_groups()))

    def rows(self, known: Known, network: PixelNetwork, files: Sequence[str], writers: Writers) -> pd.DataFrame:
        """The rows of SHARD for a group of images; a random model draws the same for it whenever it is asked."""
        attack = self.params.attack(self.name)
        target = self.target
        seed = self.params.seed
        words = f"{target.name} {self.name}"
        group = [target.subject(file) for file in files]
        group_seed = seed_of(seed, "searched", words, *files)
        network.reseed(group_seed)
        # a custom random model draws from the global generators
        with searching(network.precision), globally_seeded(group_seed, network.device):
            results = attack.results(network, group, known)
        pairs = [*zip(group, results, strict=True)]
        # all at once: next to a GPU they are made while it judges
        begun = [writers.begin(unwritten(subject, result, attack.ball)) for subject, result in pairs]
        found = []
        for (subject, result), written in zip(pairs, begun, strict=True):
            file = subject.name
            own_seed = seed_of(seed, "judged", words, file)
            row = target.judge.verdict(subject, result, target.before(file), written, own_seed)
            found.append(stored_row(target, file, row))
        return pd.DataFrame(found, columns=SHARD.names)


SEARCHING = (__name__, *CHANGING)
"""Modules that a worker process of attacks imports, next to the one that opens the attack there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundGroup:
    """What was found for a group of images: rows of SHARD, and the seconds that it took."""

    table: pd.DataFrame
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The worker of an attack: searches and judges groups of images on one device, with one thread of the CPU."""

    attacking: Attacking
    known: Known
    check: Callable[[Sequence[str]], None] = ignore
    """Raises CleansetError for files whose clean images do not get the stored scores."""

    writers: int = 0
    """Processes next to the device that make the files of candidates; 0: this one makes them."""

    def results(self, tasks: Iterable[Task]) -> Generator[tuple[int, FoundGroup], None, None]:
        """The number of each group, and what was found for it."""
        attacking = self.attacking
        known = replace(self.known, name=attacking.name)
        # before any generator is seeded: loading other models draws from them
        attacking.params.attack(attacking.name).prepare(known)
        network = attacking.target.queried_network()
        with computing_threads(1), Writers(self.writers) as writers:
            for task in tasks:
                begin = monotonic()
                self.check(task.ids)
                table = attacking.rows(known, network, task.ids, writers)
                yield task.number, FoundGroup(table=table, seconds=monotonic() - begin)

    def stop(self) -> None:
        """Wait for the end of the group."""


def writers_beside(device: torch.device) -> int:
    """The processes that make files next to a device: its share of the cores; none if these compute."""
    if not device_of(device).is_separate:
        return 0
    return max(1, min(MAX_WRITERS, available_cores() // len(choose_devices("auto"))))


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherSearches:
    """Further workers of an attack."""

    devices: Sequence[Device]
    """The devices of this machine; the first worker has the first."""

    open: Callable[[Place], Opened[FoundGroup]] | None
    """Opens the attack in another process, or on another machine; None: no further workers."""

    engine: Engine = "local"
    """With ray, the workers of a cluster search in place of those of this machine."""


def stored_row(target: Target, file: str, row: dict[str, Any]) -> dict[str, object]:
    """A row of SHARD from a verdict."""
    # float32 halves the table; verdicts were taken in float64
    logits = {name: row[name].astype(np.float32).tolist() for name in ("logits_before", "logits_after")}
    return {"image_id": file, **target.stored(file), **row, **logits}
