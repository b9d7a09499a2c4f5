"""One attack on one model, what its result depends on and when it is continued; the signs of gradient masking.

attacks, further_attacks, wrapped_attacks: the candidates are searched for in any precision and judged in float64.
attack_warnings, further_warnings, wrapped_warnings: the signs are probed on some of the images.

The files of an attack are judged once more with the model loaded anew in a fresh process, in another order. A model
that remembers earlier queries starts with an empty memory there, so the verdicts of the fresh process count: everyone
else will get the same answers to these files.
"""

import json
from base64 import b64encode
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import torch

from cleanset.classes import ClassTable
from cleanset.edition.params import Engine
from cleanset.errors import CleansetError
from cleanset.files import read_text, replacing, sha256_of, write_text
from cleanset.json_files import JsonMapping, JsonObject, with_digest
from cleanset.machine import available_cores
from cleanset.measure.run import NamedModel, load
from cleanset.measure.specs import CommandModel, ModuleModel, Spec, file_stems, is_same_model
from cleanset.progress import print_notice
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
from cleanset.scoring.decoding import worker_processes
from cleanset.scoring.devices import Device, choose_devices, computing_threads, device_of
from cleanset.scoring.differentiable import PixelNetwork, searching
from cleanset.scoring.engine import Settings
from cleanset.scoring.engines import Computation
from cleanset.scoring.models import LoadedModel
from cleanset.scoring.scorer import ignore
from cleanset.scoring.shards import Shards, shards_bar
from cleanset.scoring.validity import MadeFrom, code_of, library_versions, print_again, read_finished
from cleanset.studies.attacks.base import (
    Ball,
    Known,
    Result,
    Subject,
    globally_seeded,
    logits_of,
    seed_of,
    to_unit,
)
from cleanset.studies.attacks.candidate_files import MAX_WRITERS, Writers, candidate_file
from cleanset.studies.attacks.changes import GUESSED
from cleanset.studies.attacks.fresh import ITSELF, Asked, FreshModel, StoredLogits
from cleanset.studies.attacks.gradient_attacks import PgdAttack, SpsaAttack
from cleanset.studies.attacks.probing import of_command, probe
from cleanset.studies.attacks.results import ATTACKED, NAMED_ATTACKED, SHARD, attacked_rows, png_name
from cleanset.studies.attacks.signs import SeenSign, other_answer, precision_changes_answers
from cleanset.studies.attacks.spending import Spending
from cleanset.studies.attacks.study import AllParams, AttackedFolder, AttackParams, AttackRequest, AttackStudy
from cleanset.studies.attacks.targets import (
    AttackedModel,
    Judge,
    Searching,
    guess_of,
    lpips_of,
    open_target,
    other_models,
    scores_check,
    unwritten,
    with_straight_through,
)
from cleanset.studies.attacks.threats import PROBE
from cleanset.studies.attacks.tries import Tries
from cleanset.studies.attacks.warnings import Candidate, WarningRecord, write_warnings
from cleanset.studies.robustness.answers import CORRUPTING, installed_versions
from cleanset.studies.robustness.families import CHANGING
from cleanset.studies.robustness.image_sets import OpenedImages
from cleanset.studies.robustness.images import StudyFile, first_images, images_sha256, rows_sha256
from cleanset.tables import Table, read_table, write_table

SETTLED = "judged_anew"
"""Key of a record: the sign that was seen when the files were judged in a fresh process, or null."""


def run_attack(study: AttackStudy, model: str, name: str, attack_params: AttackParams | None = None) -> None:
    """Read the images and the model's weights, write data/attacks/<name>/<model>/.

    `model` is a role of the edition or the name of a further or a wrapped model, `name` an attack's.
    `attack_params` default to the params.yaml of the attacks. Finished groups are kept beside the results until the
    end, so that an interrupted run is continued. Raises CleansetError, too, where a clean image does not get the stored
    scores, bit for bit.
    """
    worker_processes(SEARCHING)
    # a node of a cluster has another working folder
    opening = partial(open_attack, AttackStudy(study.folder.resolve()), attack_params, model, name)
    opened = opening(None)
    attacking = opened.search.attacking
    devices = choose_devices(opened.params.edition.score.device)
    engine = opened.params.attacks.engine or opened.params.edition.engine
    others = OtherSearches(devices=devices, open=partial(_open_at, opening), engine=engine)
    attacking.run(opened.search, opened.images, others)
    # networks of a zoo remember nothing
    if opened.params.source(model) == "module" and (
        sign := settle([attacking], partial(_opened, study, attack_params, model), is_custom=True)
    ):
        print_notice(f"{name} {model}: {sign.text}")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedAttack:
    """An attack on a model of a study, as its files have it."""

    params: AllParams
    search: "Search"
    images: pd.DataFrame
    """Rows of STUDY_IMAGES: the images that are attacked."""


def open_attack(
    study: AttackStudy, attack_params: AttackParams | None, model: str, name: str, device: Device | None
) -> OpenedAttack:
    """Read everything that an attack needs; `device`: None for the first one of the params."""
    params = AllParams.read(study, attack_params)
    settings = params.attacks
    roles = list(params.edition.models)
    if settings.is_left_out(name, model, roles):
        raise CleansetError(
            f"{name} {model}: {name} reads stored predictions, which only the edition's models have; expected another "
            f"attack, or one of {', '.join(roles)}"
        )
    target = open_target(study, params, model, is_measured=True, device=device)
    others = cache(partial(other_models, study, params, target.name))
    known = Known(settings.seed, target.others, cache(lambda: target.sources(others())))
    attack = settings.attack(name)
    further: JsonObject = {}
    if attack.reads_predictions:
        known = replace(known, guess=guess_of(study.robustness, params.robustness, target))
        predictions = {family: study.robustness.answers.predictions(family, target.name) for family in GUESSED}
        further["predictions_sha256"] = {family: sha256_of(path) for family, path in predictions.items()}
    if attack.reads_other_models:
        further["made_on"] = {role: [each.weights_sha256, each.code] for role, each in others().items()}
    attacking = Attacking(settings, name, target, study.results(name, model), further=further)
    check = scores_check(study, params.edition, target)
    search = Search(attacking=attacking, known=known, check=check, writers=writers_beside(target.how.device))
    return OpenedAttack(params=params, search=search, images=attacking.first_images())


def _open_at(opening: Callable[[Device], OpenedAttack], place: Place) -> "Opened[FoundGroup]":
    opened = opening(place.device)
    return Opened(worker=opened.search, made_from=opened.search.attacking.made_from(opened.images))


def _opened(study: AttackStudy, attack_params: AttackParams | None, model: str) -> LoadedModel:
    # read anew: a class of the params is made when they are, and cannot be sent to another process
    return open_target(study, AllParams.read(study, attack_params), model).model


@dataclass(frozen=True, slots=True)
class Attacking:
    """An attack, by its name in the params, on a model, and where its results are written.

    `further`: facts that the results depend on beside record, images, model and code, by name. `table`: the table of
    the results.
    """

    params: AttackParams
    name: str
    target: AttackedModel
    folder: AttackedFolder
    further: JsonMapping = field(default_factory=dict)
    table: Table = ATTACKED

    def record(self, images: pd.DataFrame) -> JsonObject:
        """The provenance record of the results of some rows of STUDY_IMAGES.

        Of the machine it has only the device and libraries of the search.
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
        facts = {
            "code": code_of("scoring", "studies/robustness", "studies/attacks"),
            "rows_sha256": rows_sha256(images),
            "classes_sha256": target.classes.keys_sha256,
            "model_code": target.model.code,
            **self.further,
        }
        if target.how.precision != "float64":
            facts["batch_size"] = target.how.batch_size
        if attack.reads_other_images:
            facts["begins_with_sha256"] = rows_sha256(target.images)
        # the library alone does not decide a corruption's pixels
        if CORRUPTING in attack.libraries:
            facts["changed_by"] = installed_versions()
        return MadeFrom(self.record(images) | facts)

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
            print_notice(f"{self.text}: the budget is spent after {count} of {len(images)} images")
        # anew: after a spent budget there are fewer images, and so fewer groups
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
        write_text(self.folder.record, json.dumps(record, indent=2) + "\n")

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
        # all at once: beside a GPU they are made while it judges
        begun = [writers.begin(unwritten(subject, result, attack.ball)) for subject, result in pairs]
        found = []
        for (subject, result), written in zip(pairs, begun, strict=True):
            file = subject.name
            own_seed = seed_of(seed, "judged", words, file)
            row = target.judge.verdict(subject, result, target.before(file), written, own_seed)
            found.append(_stored_row(target, file, row))
        return pd.DataFrame(found, columns=SHARD.names)

    def keep_probe(self, subjects: Sequence[Subject], searches: Mapping[str, Tries]) -> None:
        """Judge what the probe found near each image, and write it as the results of an attack.

        Of the candidates that the searches found misclassified the first one that is misclassified when judged, too;
        otherwise that of the first search. The remark of a row is the name of the search.
        """
        target = self.target
        ball = Ball("Linf", self.params.probe.eps)
        words = f"{target.name} {self.name}"
        rows = []
        for place, subject in enumerate(subjects):
            names = [name for name, each in searches.items() if each.success[place]] or [*searches][:1]
            queries = sum(each.queries[place] for each in searches.values())
            results = [Result(searches[name].candidates[place], queries, notices=(name,)) for name in names]
            before = target.before(subject.name)
            seed = seed_of(self.params.seed, "judged", words, subject.name)
            files = [partial(candidate_file, unwritten(subject, each, ball)) for each in results]
            row = target.judge.verdict(subject, results[0], before, files[0], seed)
            for each, file in zip(results[1:], files[1:], strict=True):
                if row["is_error"]:
                    break
                another = target.judge.verdict(subject, each, before, file, seed)
                row = another if another["is_error"] else row
            rows.append(_stored_row(target, subject.name, row))
        images = target.images.set_index("file").loc[[subject.name for subject in subjects]].reset_index()
        self.write(pd.DataFrame(rows, columns=SHARD.names), self.record(images))

    def candidates(self, *, with_png: bool) -> tuple[Candidate, ...]:
        """What the probe found, from its results; `with_png`: with the images that break a correct one."""
        return tuple(
            Candidate(
                file=row["file"],
                search=row["notices"][0],
                was_correct=row["was_correct"],
                is_error=row["is_error"],
                l2=row["l2"],
                linf=row["linf"],
                png_sha256=row["png_sha256"],
                png=self._base64(row["png"]) if with_png and row["was_correct"] and row["is_error"] else None,
            )
            for row in self.results().to_dict("records")
        )

    def _base64(self, png: str) -> str:
        return b64encode((self.folder.folder / png).read_bytes()).decode("ascii")


SEARCHING = (__name__, *CHANGING)
"""Modules that a worker process of attacks imports."""


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
    """Processes beside the device that make the files of candidates; 0: this one makes them."""

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
    """The processes that make files beside a device: its share of the cores; none where these compute."""
    if not device_of(device).is_separate:
        return 0
    return max(1, min(MAX_WRITERS, available_cores() // len(choose_devices("auto"))))


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherSearches:
    """Further workers of an attack."""

    devices: Sequence[Device]
    """The devices of this machine, of which the first worker has the first."""

    open: Callable[[Place], Opened[FoundGroup]] | None
    """Opens the attack in another process, or on another machine; None: no further workers."""

    engine: Engine = "local"
    """With ray, the workers of a cluster search in place of those of this machine."""


def _stored_row(target: AttackedModel, file: str, row: dict[str, Any]) -> dict[str, object]:
    """A row of SHARD from a verdict."""
    # float32 halves the table; verdicts were taken in float64
    logits = {name: row[name].astype(np.float32).tolist() for name in ("logits_before", "logits_after")}
    return {"image_id": file, **target.stored(file), **row, **logits}


def other_answers(stored: StoredLogits, anew: StoredLogits, verdicts: int) -> SeenSign | None:
    """The sign that files get another answer from the model loaded anew; `verdicts`: how many another verdict, too."""
    answers = [np.stack([each[key] for key in stored]) for each in (stored, anew)]
    when = f"from the model loaded anew, {verdicts} of them another verdict, which counts"
    return other_answer("depends_on_others", answers, when, "files")


def settle(attacks: Sequence[Attacking], opened: Callable[[], LoadedModel], *, is_custom: bool) -> SeenSign | None:
    """Judge the files of all attacks on a model once more, in a fresh process; write its verdicts into the results.

    Returns the sign that answers depend on more than the image. Files judged so before are not judged again. The
    code of a custom model may remember anything: one whose answers differ gets a process for each attack, and one for
    the images themselves.
    """
    every = [(each, json.loads(read_text(each.folder.record, "run the attack again"))) for each in attacks]
    before = next((SeenSign(**record[SETTLED]) for _, record in every if record.get(SETTLED)), None)
    attacks = [each for each, record in every if SETTLED not in record]
    records = [record for _, record in every if SETTLED not in record]
    if not attacks:
        return before
    target = attacks[0].target
    seed = attacks[0].params.seed
    tables = [each.results() for each in attacks]
    parts = [each.asked() for each in attacks]
    files = list(dict.fromkeys(each.file for part in parts for each in part))
    parts.append([Asked(ITSELF, each, Path(), seed_of(seed, "judged", f"{target.name} ", each)) for each in files])
    fresh = FreshModel(
        load=opened,
        how=replace(target.how, precision=target.judge.precision),
        files=target.files,
        # the code of others may write what it has seen to the disk
        attacked_at=_attacked_at(attacks) if is_custom else None,
    )
    stored = {
        (name, file): np.asarray(logits, np.float64)
        for attack, table in zip(attacks, tables, strict=True)
        for name, column in ((ITSELF, "logits_before"), (attack.name, "logits_after"))
        for file, logits in zip(table["file"], table[column], strict=True)
    }
    anew, seen = fresh.answers([[each for part in parts for each in part]])
    if is_custom and (seen or other_answers(stored, anew, 0)):
        # what the process has seen of one attack may decide its answers to the next
        anew, seen = fresh.answers(parts)
    verdicts = 0
    for attack, table in zip(attacks, tables, strict=True):
        labels = np.array([target.label(each) for each in table["class_index"].tolist()])
        for column, flag, name in (
            ("logits_before", "was_correct", ITSELF),
            ("logits_after", "is_error", attack.name),
        ):
            logits = [anew[name, file] for file in table["file"]]
            flags = (np.stack(logits).argmax(axis=1) == labels) == (name == ITSELF)
            verdicts += int((flags != table[flag].to_numpy(bool)).sum())
            table[column], table[flag] = [each.astype(np.float32).tolist() for each in logits], flags
    # the fresh verdicts are told first: they are what changes numbers
    seen = other_answers(stored, anew, verdicts) or seen or before
    for attack, table, record in zip(attacks, tables, records, strict=True):
        attack.save(table, record | {SETTLED: None if seen is None else asdict(seen)})
    return seen


def _attacked_at(attacks: Sequence[Attacking]) -> float:
    """When the first query of some attacks may have been asked, in seconds since 1970: of a continued run, an earlier
    one's.
    """
    results = (path for each in attacks for path in each.folder.folder.rglob("*"))
    return min((attacks[0].target.opened_at, *(path.stat().st_ctime for path in results)))


def run_warnings(study: AttackStudy, model: str, attack_params: AttackParams | None = None) -> None:
    """Read the images and the model's weights, write data/attack_warnings/<model>.json.

    `model` is a role of the edition or the name of a further or a wrapped model.
    """
    params = AllParams.read(study, attack_params)
    target = open_target(study, params, model)
    asked = first_images(target.images, params.attacks.probe.images)
    scores_check(study, params.edition, target)(asked["file"].tolist())
    others = target.sources(other_models(study, params, model))
    with TemporaryDirectory() as folder:
        kept = Attacking(params.attacks, PROBE, target, AttackedFolder(Path(folder) / PROBE))
        record = probed(kept, others)
        if record.candidates and params.source(model) == "module":
            sign = settle([kept], partial(_opened, study, attack_params, model), is_custom=True)
            record = _with_sign(sign, record)
        if record.candidates:
            record = record.model_copy(update={"candidates": kept.candidates(with_png=True)})
    write_warnings(study.warnings(model), record)


def probed(kept: Attacking, others: Mapping[str, PixelNetwork], *, is_command: bool = False) -> WarningRecord:
    """The signs on the first images of each class, with PGD and SPSA in one ball, and images made on other models.

    What they find is judged and written by `kept`. A command, which has neither logits nor gradients, is only asked the
    same again.
    """
    target = kept.target
    settings = kept.params
    asked = settings.probe
    images = first_images(target.images, asked.images)
    subjects = [target.subject(file) for file in images["file"]]
    network = target.network()
    pgd = PgdAttack(eps=asked.eps, steps=asked.steps, group=asked.group)
    spsa = SpsaAttack(
        eps=asked.eps, steps=asked.spsa_steps, samples=asked.spsa_samples, learning_rate=asked.eps / 4, after=None
    )
    seed = seed_of(settings.seed, "searched", f"{target.name} warnings", *images["file"])
    network.reseed(seed)
    known = Known(settings.seed, sources=lambda: others)
    with searching(network.precision), globally_seeded(seed, network.device):
        found = of_command(network, subjects) if is_command else probe(network, subjects, known, pgd, [spsa])
        if not {"random_answers", "depends_on_others"} & {each.sign for each in found.seen}:
            logits = logits_of(network, to_unit([subject.pixels for subject in subjects], network))
            judged = np.stack([target.before(subject.name) for subject in subjects])
            names = [subject.name for subject in subjects]
            sign = precision_changes_answers(logits, judged, network.precision, names)
            found.seen.extend([] if sign is None else [sign])
    if found.searches:
        kept.keep_probe(subjects, found.searches)
    return WarningRecord(
        role=target.name,
        images=len(subjects),
        files=tuple(subject.name for subject in subjects),
        parameters=asked.model_dump(),
        warnings=tuple(found.seen),
        not_told=tuple(found.not_told),
        candidates=kept.candidates(with_png=False) if found.searches else (),
        baselines=found.baselines,
    )


def evaluate(
    specs: Sequence[Spec],
    others: Sequence[Spec],
    images: OpenedImages,
    settings: Settings,
    request: AttackRequest,
    classes: ClassTable,
) -> tuple[dict[tuple[str, str], pd.DataFrame], dict[str, WarningRecord], dict[tuple[str, str], str]]:
    """Attack any models outside DVC: by attack and model the rows of NAMED_ATTACKED, by model its warnings.

    The last: by attack and model the problem that prevented a run; the results of all others stay.

    `others`: the models that images are made on; `classes`: the class table of the images. Raises CleansetError if
    nothing can be run.
    """
    worker_processes(SEARCHING)
    results = dict[tuple[str, str], pd.DataFrame]()
    problems = dict[tuple[str, str], str]()
    records = dict[str, WarningRecord | None]()
    # each is loaded once for this, whatever number of models is attacked
    facts_of_others = cache(partial(facts_of_models, others, settings, classes))
    for spec, stem in zip(specs, file_stems([spec.text for spec in specs]), strict=True):
        evaluated = EvaluatedModel(
            spec=spec, stem=stem, others=others, images=images.images, files=images.files, settings=settings,
            request=request, classes=classes,
        )  # fmt: skip
        try:
            named = load(spec, settings, classes)
        except CleansetError as error:
            problems |= {(name, spec.text): str(error) for name in request.params.attacks}
            continue
        target = evaluated.target(named, settings.devices[0])
        is_command = isinstance(spec, CommandModel)
        finished = list[Attacking]()
        for name in request.params.attacks:
            try:
                search = evaluated.search(name, named, target, facts_of_others)
                # a program decides itself how many cores it takes
                opening = None if is_command else partial(_open_evaluated, evaluated, name)
                search.attacking.run_unfinished(search, OtherSearches(devices=settings.devices, open=opening))
            except CleansetError as error:
                problems[name, spec.text] = str(error)
            else:
                finished.append(search.attacking)
        if finished:
            is_custom = isinstance(spec, CommandModel | ModuleModel)
            anew = partial(_anew, spec, settings, classes)
            kept = evaluated.attacking(PROBE, target)
            try:
                found = probed(kept, evaluated.sources(target), is_command=is_command) if request.warnings else None
                record = settled_with_probe(finished, kept, found, anew, is_custom=is_custom)
            except CleansetError as error:
                problems["verdicts and warnings", spec.text] = str(error)
            else:
                records[spec.text] = record
                results |= {(each.name, spec.text): each.results() for each in finished}
    if not results:
        raise CleansetError(next(iter(problems.values())))
    return results, {model: each for model, each in records.items() if each is not None}, problems


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatedModel:
    """A model that is attacked outside DVC; it can be sent to another process, which loads the model anew."""

    spec: Spec
    stem: str
    """The name of its folders."""
    others: Sequence[Spec]
    """The models that images are made on."""
    images: pd.DataFrame
    """Rows of STUDY_IMAGES."""
    files: Mapping[str, StudyFile]
    """Where each image lies, by file."""
    settings: Settings
    request: AttackRequest
    classes: ClassTable

    def target(self, named: NamedModel, device: Device) -> AttackedModel:
        """The model under attack on a device."""
        params = self.request.params
        lpips = lpips_of(self.request.lpips_folder, params, device.torch)
        return AttackedModel(
            name=named.name,
            model=named.loaded,
            images=self.images,
            files=self.files,
            classes=self.classes,
            judge=Judge(named.loaded, device.torch, lpips, self.settings.precision),
            how=Searching(device.torch, params.search_precision, self.settings.batch_size),
            seed=params.seed,
            searched=with_straight_through(named.loaded.network, self.request.straight_through),
        )

    def search(
        self, name: str, named: NamedModel, target: AttackedModel, facts_of_others: Callable[[], JsonMapping]
    ) -> Search:
        """The worker of an attack in this process."""
        facts: JsonObject = {
            "identity": named.identity,
            "judged_in": self.settings.precision,
            "straight_through": [*self.request.straight_through],
        }
        if self.request.params.attack(name).reads_other_models:
            facts["made_on"] = facts_of_others()
        # loaded anew for each attack: what a random source has drawn before must not count
        known = Known(self.request.params.seed, target.others, cache(partial(self.sources, target)))
        attacking = self.attacking(name, target, further=facts)
        return Search(attacking=attacking, known=known, writers=writers_beside(target.how.device))

    def attacking(self, name: str, target: AttackedModel, further: JsonMapping = MappingProxyType({})) -> Attacking:
        """An attack whose results are below the folder of the request."""
        folder = AttackedFolder(self.request.out / "attacks" / name / self.stem)
        return Attacking(self.request.params, name, target, folder, further=further, table=NAMED_ATTACKED)

    def sources(self, target: AttackedModel) -> dict[str, PixelNetwork]:
        """The other models as networks on the pixels that the model sees."""
        others = [each for each in self.others if not is_same_model(each, self.spec)]
        return target.sources({each.text: load(each, self.settings, self.classes).loaded for each in others})


def _open_evaluated(evaluated: EvaluatedModel, name: str, place: Place) -> Opened[FoundGroup]:
    """An attack on a model that is loaded anew."""
    settings = replace(evaluated.settings, devices=[place.device])
    named = load(evaluated.spec, settings, evaluated.classes)
    target = evaluated.target(named, place.device)
    facts_of_others = partial(facts_of_models, evaluated.others, settings, evaluated.classes)
    search = evaluated.search(name, named, target, facts_of_others)
    return Opened(worker=search, made_from=search.attacking.made_from(search.attacking.first_images()))


def facts_of_models(others: Sequence[Spec], settings: Settings, classes: ClassTable) -> dict[str, list[str]]:
    """The digest of the weights and the identity of each of some models, by name."""
    loaded = (load(each, settings, classes) for each in others)
    return {each.name: [each.loaded.weights_sha256, each.identity] for each in loaded}


def settled_with_probe(
    finished: Sequence[Attacking],
    kept: Attacking,
    record: WarningRecord | None,
    opened: Callable[[], LoadedModel],
    *,
    is_custom: bool,
) -> WarningRecord | None:
    """Judge the files of all attacks and of the probe, which `kept` has, in a fresh process; the record after that.

    None without a probe, unless verdicts changed.
    """
    if record is None:
        sign = settle(finished, opened, is_custom=is_custom)
        # the sign says why verdicts changed
        empty = WarningRecord(role=kept.target.name, images=0, parameters={}, warnings=())
        return None if sign is None else _with_sign(sign, empty)
    has_searched = bool(record.candidates)
    sign = settle([*finished, *([kept] if has_searched else [])], opened, is_custom=is_custom)
    judged = kept.candidates(with_png=False) if has_searched else ()
    return _with_sign(sign, record.model_copy(update={"candidates": judged}))


def _with_sign(sign: SeenSign | None, record: WarningRecord) -> WarningRecord:
    """The record with a sign before the others."""
    signs = () if sign is None else (sign,)
    return record.model_copy(update={"warnings": (*signs, *(each for each in record.warnings if each not in signs))})


def _anew(spec: Spec, settings: Settings, classes: ClassTable) -> LoadedModel:
    return load(spec, settings, classes).loaded
