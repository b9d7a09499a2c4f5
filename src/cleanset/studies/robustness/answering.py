"""Compute and cache models' predictions on changed images.

All lacking models are shown the images in one pass: each image is made once, and its digest is taken. Making the images
takes longer than most models do, so no model and no digest has them made a second time. The answers go into shards of
their own for each model; whoever comes later finds them finished.
"""

import json
import random
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain
from time import perf_counter

import numpy as np
import pandas as pd
from PIL import Image
from pyarrow import parquet

from cleanset.errors import CleansetError
from cleanset.files import sha256, write_text
from cleanset.images.codec import Source
from cleanset.images.preprocessing import BASE_SIZE, Pixels, ResizeAndCrop, Resized
from cleanset.json_files import with_digest
from cleanset.measure.user_model import load_member
from cleanset.progress import print_notice, rate_bar
from cleanset.scoring.computation import Task, Tasks, compute
from cleanset.scoring.decoding import PixelBatch, SharedBatches, worker_processes
from cleanset.scoring.devices import Device
from cleanset.scoring.distance import SAMPLE_SEED, compare_scores, sample_size
from cleanset.scoring.engine import OnProgress, Settings, below_float64, score_few, settings_for
from cleanset.scoring.gate import NetworkError
from cleanset.scoring.logits import ReadOff
from cleanset.scoring.models import LoadedModel
from cleanset.scoring.scorer import Notify, Scored, Scorer, arithmetic, grouped, to_table
from cleanset.scoring.shards import Shards
from cleanset.scoring.validity import MadeFrom, code_of, library_versions
from cleanset.studies.robustness.answers import (
    BATCH_SIZE,
    NAMED_ANSWERS,
    CheckClean,
    DigestRun,
    ReadAnswers,
    TakenDigests,
    check_of_stored,
    installed_versions,
    predictions_table,
    read_digests,
    with_family_step,
)
from cleanset.studies.robustness.families import (
    CHANGING,
    FAMILIES,
    ChangePlan,
    OpenedStudy,
    StudyParams,
    change_plan,
    family_named,
)
from cleanset.studies.robustness.images import AnswerFiles, ChangeName, Study, StudyFile, images_for, rows_sha256
from cleanset.studies.robustness.params import ListedModel
from cleanset.studies.robustness.sections import CLEAN
from cleanset.studies.robustness.trained_models import load_further
from cleanset.tables import write_table

MAX_PARAMETERS = 400_000_000
"""Parameters of all models in a pass, unless one alone has more; in float64 they take 3.2 GB on each device."""


FAILURES = (CleansetError, RuntimeError)
"""The exceptions of a model that is moved to a device or runs there."""


@dataclass(eq=False)
class ModelInPass:
    """A model that lacks answers."""

    model: LoadedModel
    """The network, and a preprocessing for changed images."""
    shards: Shards
    """The files of its answers, as far as they are finished."""
    read_off: ReadOff
    """The columns of an answer, from its logits."""


def squares(size: int) -> ResizeAndCrop:
    """A preprocessing that crops nothing of a square image, and leaves one of its size as it is."""
    return ResizeAndCrop(f"Res{size}", size, size, "bilinear")


class _Block:
    """The changed images of a shard, by the size of their side; as they are made, 224."""

    def __init__(self, number: int, names: Sequence[ChangeName], pixels: Pixels, pool: Executor) -> None:
        self.number = number
        self.names = names
        self._pool = pool
        self._places = {name: place for place, name in enumerate(names)}
        self._by_size = {BASE_SIZE: pixels}

    def digests(self) -> Iterator[str]:
        """The digest of each image, as those of stage digests."""
        return self._pool.map(lambda each: sha256(_rows(each).tobytes()), self._by_size[BASE_SIZE])

    def batches(self, wanted: Sequence[ChangeName], side: int, batch_size: int) -> Iterator[PixelBatch]:
        """Some of the images in batches, filled up with zeros as `SharedBatches` has it."""
        if side not in self._by_size:
            resize = squares(side)
            made = self._by_size[BASE_SIZE]
            resized = self._pool.map(lambda each: resize(Image.fromarray(_rows(each))), made)
            self._by_size[side] = np.stack(list(resized))
        for group in grouped(wanted, batch_size):
            pixels = np.zeros((batch_size, 3, side, side), np.uint8)
            pixels[: len(group)] = self._by_size[side][[self._places[name] for name in group]]
            yield PixelBatch(group, pixels)


def _rows(pixels: Pixels) -> Pixels:
    """Pixels of shape (3, n, n) as (n, n, 3)."""
    return np.ascontiguousarray(pixels.transpose(1, 2, 0))


@dataclass(frozen=True, eq=False)
class OnePass:
    """A pass of all devices over changed images, which are made once for all models."""

    models: Mapping[str, ModelInPass]
    """The models, by name; all have the same number of shards."""
    images: Source
    """Makes a changed image of 224 x 224 pixels by its name, in worker processes."""
    settings: Settings
    """Precision, devices and batch size."""
    on_progress: OnProgress = lambda *_: None
    """Called with the number of images that a model has answered, and the share of the time spent waiting for them."""
    notify: Notify = lambda _: None
    """Called when a batch is halved for lack of memory."""
    digests: TakenDigests | None = None
    """Takes the digests of the images; None: they are stored already."""
    problems: dict[str, Exception] = field(default_factory=dict)
    """Filled with the problems of failed models, by name."""

    @cached_property
    def lacking(self) -> Mapping[int, Sequence[str]]:
        """By the number of a shard, the models that lack it."""
        numbers = sorted({number for each in self.models.values() for number in each.shards.missing})
        return {
            number: [name for name, each in self.models.items() if number in each.shards.missing] for number in numbers
        }

    def answer(self) -> dict[str, Exception]:
        """Compute the shards that each model lacks; each device takes the next one when it has finished one.

        Returns the problem of each model that failed, by name: it is shown no further images, the others are. Raises
        CleansetError for an image that cannot be made; the shards that are finished then stay.
        """
        with arithmetic(self.settings.precision):
            compute([_DeviceInPass(self, device) for device in self.settings.devices], self.tasks(), self.keep)
        return self.problems

    def tasks(self) -> Iterator[Task]:
        """The shards that any model lacks, with the images of all these models."""
        for number, names in self.lacking.items():
            of_models = (self.models[name].shards.image_ids(number) for name in names)
            # models that see the images of their own sets alone have different ones
            yield Task(number, list(dict.fromkeys(chain.from_iterable(of_models))))

    def keep(self, number: int, answers: Mapping[str, pd.DataFrame]) -> None:
        """Keep the answers of each model to the images of a shard."""
        for name, table in answers.items():
            self.models[name].shards.keep(number, table)

    @property
    def workers(self) -> int:
        """The processes and threads of a device."""
        return max(1, self.settings.workers // len(self.settings.devices))


class _DeviceInPass:
    """The worker of a pass on one device: makes the images of a shard, and shows them to the models that lack it."""

    def __init__(self, of_pass: OnePass, device: Device) -> None:
        self._pass = of_pass
        self._device = device
        # of the models that the device has been given so far
        self._scorers = dict[str, Scorer]()

    def results(self, tasks: Tasks) -> Generator[tuple[int, Mapping[str, pd.DataFrame]], None, None]:
        """The number of each shard, and the answers to its images by model, but for those that failed."""
        of_pass = self._pass
        self._device.prepare()
        begin = perf_counter()
        waited = 0.0
        shared_memory = SharedBatches(
            of_pass.images, Resized(BASE_SIZE), batch_size=BATCH_SIZE, workers=of_pass.workers, modules=CHANGING
        )
        with shared_memory as shared, ThreadPoolExecutor(of_pass.workers) as pool:
            asked = perf_counter()
            for block in self._blocks(shared, tasks, pool):
                waited += perf_counter() - asked
                if of_pass.digests is not None:
                    of_pass.digests.take(block.names, block.digests())
                waiting = waited / (perf_counter() - begin)
                names = [name for name in of_pass.lacking[block.number] if name not in of_pass.problems]
                answers = {name: self._answers(name, block, waiting) for name in names}
                yield block.number, {name: each for name, each in answers.items() if each is not None}
                asked = perf_counter()

    def stop(self) -> None:
        """Wait for the end of the shard."""

    def _blocks(self, shared: SharedBatches, tasks: Tasks, pool: Executor) -> Iterator[_Block]:
        """The changed images of each shard; the processes make those of the next while models are shown one."""
        started: deque[Task] = deque()

        def groups() -> Iterator[Sequence[ChangeName]]:
            for task in tasks:
                started.append(task)
                yield from grouped(task.ids, BATCH_SIZE)

        parts: list[Pixels] = []
        for batch in shared.batches(groups()):
            # the next batch overwrites this one's memory
            parts.append(batch.pixels[: len(batch.image_ids)].copy())
            if sum(map(len, parts)) == len(started[0].ids):
                task = started.popleft()
                yield _Block(task.number, task.ids, np.concatenate(parts), pool)
                parts = []

    def _answers(self, name: str, block: _Block, waiting: float) -> pd.DataFrame | None:
        """The answers of a model to the images of a shard; None where it fails, which is one of the problems then."""
        of_pass = self._pass
        each = of_pass.models[name]
        settings = of_pass.settings
        scored = list[Scored]()
        wanted = each.shards.image_ids(block.number)
        batches = block.batches(wanted, each.model.preprocessing.size, settings.batch_size)
        try:
            if name not in self._scorers:
                self._scorers[name] = Scorer(
                    each.model, self._device, settings.precision, notify=of_pass.notify, read_off=each.read_off
                )
            for batch in self._scorers[name](batches, of_pass.workers):
                scored.append(batch)
                of_pass.on_progress(len(batch.image_ids), waiting)
        except FAILURES as error:
            of_pass.problems[name] = error
            self._scorers.pop(name, None)
            return None
        return to_table(scored)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class AnsweringModel:
    """A model, how it is run, and where its answers are kept."""

    name: str
    """The role, or the name that a command was given."""
    model: LoadedModel
    """The network and its preprocessing."""
    settings: Settings
    """Precision, devices and batch size."""
    edition_classes: Sequence[int]
    """The class indices that an answer may be restricted to."""
    answers: AnswerFiles
    """The files of the answers."""
    check: CheckClean | None = None
    """Compares clean answers with stored ones; None: with nothing."""
    identity: str = ""
    """What the answers of a custom model depend on beside the weights."""
    stem: str = ""
    """The stem of the files, if not the name."""
    is_sealed: bool = False
    """Whether the record has its own fingerprint and the SHA-256 of the answers, which tell without DVC whether they
    are finished."""

    def record(self, wanted: StudyParams, plan: ChangePlan) -> dict[str, object]:
        """Everything that the answers depend on; nothing in it depends on the machine."""
        return {
            "role": self.name,
            "weights_sha256": self.model.weights_sha256,
            "parameters": self.parameters(),
            **({"identity": self.identity} if self.identity else {}),
            **facts_of_every_model(self.settings, wanted, plan),
        }

    def parameters(self) -> int:
        """The number of the network's parameters."""
        return sum(each.numel() for each in self.model.network.parameters())

    def made_from(self, wanted: StudyParams, plan: ChangePlan) -> MadeFrom:
        """The record, and the answers' other dependencies.

        Libraries that change images, classes, a custom model's code, the way the model runs.
        """
        further = {
            "changed_by": installed_versions(),
            "rows_sha256": rows_sha256(plan.images),
            "classes_sha256": plan.classes.keys_sha256,
            "edition_classes": [*map(int, self.edition_classes)],
            "model_code": self.model.code,
            **below_float64(self.settings),
        }
        return MadeFrom(self.record(wanted, plan) | further)


def facts_of_every_model(settings: Settings, wanted: StudyParams, plan: ChangePlan) -> dict[str, object]:
    """The part of a record of answers that is the same for all models that see the same images."""
    return {
        "precision": settings.precision,
        **plan.as_record(),
        "jpeg": plan.family.jpeg(wanted),
        "seed": wanted.seed,
        "versions": library_versions(),
        "code": code_of("scoring", "studies/robustness"),
    }


def plan_for(plan: ChangePlan, wanted: StudyParams, name: str) -> ChangePlan:
    """The plan of the images that a model sees: of its own classes, and with `images: own` of its own set, alone."""
    return replace(plan, images=images_for(plan.images, wanted.images, name, wanted.classes_of(name, plan.classes)))


def predict(
    targets: Sequence[AnsweringModel],
    wanted: StudyParams,
    plan: ChangePlan,
    files: Mapping[str, StudyFile],
    digests: TakenDigests | None = None,
    others: Callable[[], Iterable[AnsweringModel]] = lambda: (),
) -> None:
    """Write the answers of models to the images of a family, with their provenance.

    `files`: where these images lie, by file. Each changed image is made once: for all of the models, for the digests,
    and for `others`, models that lack answers, too. Their shards stay beside the answers until they are targets
    themselves. Shards are kept until the end, so that an interrupted run is continued. Below float64 the record says
    how far the answers are from it, on a sample. A model that fails does not stop the others: its CleansetError is
    raised at the end, as it is, at once, where a clean image does not get the stored scores.
    """
    found = [_FamilyAnswers(target, wanted, plan, files) for target in targets]
    # first, since a wrong model or preprocessing shows here within seconds
    for each in found:
        each.answer_clean()
    problems = dict[str, Exception]()
    if any(each.shards.missing for each in found):
        beside = [_FamilyAnswers(other, wanted, plan, files) for other in others()]
        if beside:
            names = ", ".join(each.target.name for each in beside)
            print_notice(f"{plan.name}: the images are shown to {names}, too, which lack answers")
        shown = [*found, *beside]
        problems = _answer(shown, digests)
        for each in found:
            # beside others a model may have had too little memory
            if len(shown) > 1 and problems.pop(each.target.name, None) is not None:
                each.open_shards()
                problems |= _answer([each])
    for each in found:
        if each.target.name not in problems:
            each.finish()
    for each in found:
        if each.target.name in problems:
            raise problems[each.target.name]


def _answer(shown: "Sequence[_FamilyAnswers]", digests: TakenDigests | None = None) -> dict[str, Exception]:
    """Compute the missing shards of the models in one pass; their problems by name."""
    first = shown[0]
    models = {each.target.name: each for each in shown}
    total = sum(each.shards.total_images() for each in shown)
    devices = len(first.target.settings.devices)
    with rate_bar(total, f"{first.plan.name} {' '.join(models)}", devices) as done:
        done(sum(each.shards.finished_images() for each in shown), 0.0)
        # the plan of all: each model's shards name its own images
        return OnePass(
            models=models,
            images=first.changed_of_all,
            settings=first.target.settings,
            on_progress=done,
            notify=print_notice,
            digests=digests,
        ).answer()


class _FamilyAnswers(ModelInPass):
    """The answers of one model to one family, on their way from shards into a table.

    `model`: with a preprocessing that crops nothing of a changed image.
    """

    def __init__(
        self, target: AnsweringModel, wanted: StudyParams, of_all: ChangePlan, files: Mapping[str, StudyFile]
    ) -> None:
        self.target = target
        self.plan = plan_for(of_all, wanted, target.name)
        self.changed_of_all = of_all.changed_images(files, wanted)
        class_of = dict(zip(self.plan.images["file"], self.plan.images["class_index"].tolist(), strict=True))
        self.read_off = ReadAnswers(target.edition_classes, class_of)
        self.model = replace(target.model, preprocessing=squares(target.model.preprocessing.size))
        self._record = target.record(wanted, self.plan)
        self._stem = target.stem or target.name
        self._made_from = target.made_from(wanted, self.plan)
        # models whose shards are cut from one list are shown the images of a shard together
        self._of_all = of_all.names()
        self._names = set(self.plan.names())
        self._clean = pd.DataFrame(columns=NAMED_ANSWERS.names)
        self.open_shards()

    def open_shards(self) -> None:
        """Find out which shards are missing."""
        folder = self.target.answers.partial(self.plan.name, self._stem)
        size = self.target.settings.batch_size
        self.shards = Shards(
            folder,
            self._made_from.fingerprint,
            self._of_all,
            size,
            classes=self.plan.classes,
            table=NAMED_ANSWERS,
            only=self._names,
        )

    def answer_clean(self) -> None:
        """Answer the clean images, with the model's own preprocessing, and compare with stored scores."""
        target = self.target
        names = [ChangeName(file, CLEAN, 0) for file in self.plan.images["file"]]
        if names:
            self._clean = score_few(target.model, self.changed_of_all, target.settings, names, read_off=self.read_off)
        if target.check is not None:
            target.check(self.plan.images, self._clean)

    def finish(self) -> None:
        """Write the answers and their record, and remove the shards."""
        target = self.target
        settings = self.target.settings
        name = self.plan.name
        record = self._record
        scored = self.shards.table()
        answers_file = target.answers.predictions(name, self._stem)
        if target.is_sealed:
            record |= {**self._made_from.facts, "fingerprint": self._made_from.fingerprint}
        if settings.precision != "float64" and self._names:
            record["against_float64"] = self._against_float64(scored)
            against = record["against_float64"] or "not compared, as the network does not run in it"
            print_notice(f"{name} {target.name}: {settings.precision} against float64: {against}")
        family = self.plan.family
        answers = pd.concat([self._clean, scored], ignore_index=True)
        write_table(answers_file, with_family_step(answers, family), predictions_table(family), self.plan.classes)
        if target.is_sealed:
            record = with_digest(record, answers_file)
        write_text(target.answers.record(name, self._stem), json.dumps(record, indent=2) + "\n")
        self.shards.remove()

    def _against_float64(self, answers: pd.DataFrame) -> dict[str, object] | None:
        """The differences of answers to changed images from float64, on a sample drawn with a fixed seed.

        None for a network that does not run in float64, as it has a constant of float32 outside its parameters and
        buffers.
        """
        names = sorted(self._names)
        # a fixed seed, so that two precisions are compared with float64 on the same images
        drawn = sorted(random.Random(SAMPLE_SEED).sample(names, min(len(names), sample_size(len(names)))))
        # in processes: the library draws from numpy's global generator, which threads would share
        exact_settings = replace(self.target.settings, precision="float64", in_processes=True)
        try:
            exact = score_few(self.model, self.changed_of_all, exact_settings, drawn, read_off=self.read_off)
        except NetworkError:
            return None
        keyed = answers.set_index([*ChangeName._fields], drop=False).loc[drawn]
        found = compare_scores(*(each.assign(image_id=list(map(str, drawn))) for each in (exact, keyed)))
        return {
            "images": found.images,
            "top1_agreement": round(1 - found.top1_changed / max(1, found.images), 6),
            "largest_difference": float(f"{found.largest_difference:.3g}"),
        }


def run(study: Study, role: str, family: str | None = None) -> None:
    """Read images and the model's weights, write data/<family>/<role>.parquet and .json; None: of every family.

    The model is one of the edition, or a further one of the study, whose clean answers are compared with nothing.
    Other models of the study that lack answers are shown the same images; their stages then find finished shards in
    the cache, as stage digests does. Raises CleansetError for neither, and as `predict` and `change_plan` do.
    """
    worker_processes(CHANGING)
    families = FAMILIES if family is None else [family_named(family)]
    opened = OpenedStudy.read(study)
    models = StudyModels(opened)
    sources = opened.sources()
    # all plans first: a photograph or a file that is missing shows before hours of work
    plans = [change_plan(each, sources, opened.params) for each in families]
    target = models.load(role)
    for plan in plans:
        digest_run = DigestRun(plan, sources, opened.params)
        digests = TakenDigests(digest_run.shards(study.partial_digests(plan.name)))
        predict(
            [target],
            opened.params,
            plan,
            sources.files_in(plan.images),
            digests=digests,
            others=partial(models.lacking, plan, role),
        )
        # before stage digests has run, it has stored none
        with suppress(CleansetError):
            stored = read_digests(study.digests / f"{plan.name}.parquet", plan.family, opened.classes)
            digests.remove_known(stored)


class StudyModels:
    """The models of a study, each loaded when it is needed."""

    def __init__(self, opened: OpenedStudy) -> None:
        self._opened = opened
        self.settings = settings_for(opened.edition.score)

    def load(self, role: str) -> AnsweringModel:
        """A model of the edition, or a further one of the study. Raises CleansetError if it cannot be loaded."""
        opened = self._opened
        edition = opened.study.edition
        further = opened.params.further_models.get(role)
        check = None
        identity = ""
        if further is None:
            model = load_member(opened.edition.network(role), edition.folder, opened.classes)
            if self.settings.precision == "float64":
                check = check_of_stored(edition, role, opened.classes)
        else:
            listed = ListedModel(role, further, opened.study.folder, edition.folder)
            found = load_further(listed, self.settings, opened.classes)
            model = found.loaded
            # the weights of a custom model do not tell all
            identity = found.identity if isinstance(further, str) else ""
        return AnsweringModel(
            name=role,
            model=model,
            settings=self.settings,
            edition_classes=opened.edition.dataset.class_list(opened.classes),
            answers=opened.study.answers,
            check=check,
            identity=identity,
        )

    def lacking(self, plan: ChangePlan, beside: str) -> Iterator[AnsweringModel]:
        """The models other than `beside` that lack answers to a family and can be loaded, as far as memory allows."""
        parameters = 0
        for role in self._opened.params.models(self._opened.roles):
            if role == beside or self._has_answers(role, plan):
                continue
            try:
                model = self.load(role)
            except FAILURES:
                # its own stage reports that
                continue
            parameters += model.parameters()
            if parameters > MAX_PARAMETERS:
                return
            yield model

    def _has_answers(self, role: str, plan: ChangePlan) -> bool:
        """Whether a model's stored answers have the record that they would have today, the model itself aside."""
        files = self._opened.study.answers
        wanted = self._opened.params
        expected = facts_of_every_model(self.settings, wanted, plan_for(plan, wanted, role))
        try:
            differences = MadeFrom(expected).differences(json.loads(files.record(plan.name, role).read_bytes()))
            # answers that lack a column are none
            columns = parquet.read_schema(files.predictions(plan.name, role)).names
        except (OSError, ValueError):  # ValueError: a file that is not JSON or Parquet
            return False
        return not differences and bool(columns == predictions_table(plan.family).names)
