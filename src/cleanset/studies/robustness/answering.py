"""Compute and cache models' predictions on changed images.

All models that lack answers are shown the images in one pass, in which each image is made once (`one_pass`).
"""

import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import pandas as pd
import torch
from pyarrow import parquet

from cleanset.edition.params import Engine
from cleanset.errors import CleansetError
from cleanset.evaluation.models import open_model
from cleanset.evaluation.specs import ModuleModel
from cleanset.plumbing.json_files import with_digest, write_json
from cleanset.plumbing.progress import print_notice
from cleanset.scoring.computation import Elsewhere, Opened, Place
from cleanset.scoring.decoding import worker_processes
from cleanset.scoring.distance import SAMPLE_SEED, compare_scores, sample_size
from cleanset.scoring.engine import Settings, score_few, settings_for
from cleanset.scoring.gate import NetworkError
from cleanset.scoring.models import LoadedModel
from cleanset.scoring.parts import FinishedPart
from cleanset.scoring.shards import Shards, finished_shards, shards_bar
from cleanset.scoring.validity import MadeFrom, code_of, library_versions, made_from_images, read_finished
from cleanset.statistics.formats import rounded
from cleanset.studies.robustness.answers import (
    NAMED_ANSWERS,
    CheckClean,
    ReadAnswers,
    check_of_stored,
    installed_versions,
    predictions_table,
    with_family_step,
)
from cleanset.studies.robustness.digests import DigestRun, ShownPixels, TakenDigests, read_digests
from cleanset.studies.robustness.families import (
    CHANGING,
    FAMILIES,
    ChangePlan,
    OpenedStudy,
    family_named,
)
from cleanset.studies.robustness.images import AnswerFiles, ChangeName, Study, rows_sha256
from cleanset.studies.robustness.one_pass import (
    FAILURES,
    AskedModel,
    Kept,
    ModelInPass,
    OnePass,
    PassWorker,
    ShownShard,
    squares,
)
from cleanset.studies.robustness.sections import CLEAN
from cleanset.tables import write_table

MAX_PARAMETERS = 400_000_000
"""Parameters of all models in a pass, unless one alone has more; in float64 they take 3.2 GB on each device."""

CODE = ("scoring", "studies/robustness")
"""The packages whose code decides answers."""


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
    """What the answers of a custom model depend on next to the weights."""
    stem: str = ""
    """The stem of the files, if not the name."""
    is_sealed: bool = False
    """Whether the record has its own fingerprint and the SHA-256 of the answers, which show without DVC whether they
    are finished."""

    def record(self, plan: ChangePlan) -> dict[str, object]:
        """Everything that the answers depend on; nothing in it depends on the machine."""
        return {
            "role": self.name,
            "weights_sha256": self.model.weights_sha256,
            "parameters": self.parameters(),
            **({"identity": self.identity} if self.identity else {}),
            **_facts_of_every_model(self.settings, plan),
        }

    def parameters(self) -> int:
        """The number of the network's parameters."""
        return sum(each.numel() for each in self.model.network.parameters())

    def made_from(self, plan: ChangePlan) -> MadeFrom:
        """The record, and the answers' other dependencies.

        Libraries that change images, classes, a custom model's code, the way the model runs.
        """
        return made_from_images(
            self.record(plan),
            images={"rows_sha256": rows_sha256(plan.images)},
            classes=plan.classes,
            code=CODE,
            model=self.model,
            settings=self.settings,
            further={
                "changed_by": installed_versions(),
                "edition_classes": [*map(int, self.edition_classes)],
            },
        )

    def is_finished(self, plan: ChangePlan) -> bool:
        """Whether answers of this record are stored, and have not been modified since, if the record is sealed."""
        path = self.answers.predictions(plan.name, self.stem)
        return read_finished(path.with_suffix(".json"), self.made_from(plan), path) is not None

    def finished_part(self, plan: ChangePlan) -> FinishedPart:
        """What an interrupted run with the same inputs has finished."""
        folder = self.answers.partial(plan.name, self.stem or self.name)
        return finished_shards(folder, self.made_from(plan).fingerprint)


def _facts_of_every_model(settings: Settings, plan: ChangePlan) -> dict[str, object]:
    """The part of a record of answers that is the same for all models that see the same images."""
    return {
        "precision": settings.precision,
        **plan.as_record(),
        "jpeg": plan.jpeg,
        "seed": plan.params.seed,
        "versions": library_versions(),
        "code": code_of(*CODE),
    }


def predict(
    targets: Sequence[AnsweringModel],
    plan: ChangePlan,
    digests: TakenDigests | None = None,
    others: Callable[[], Iterable[AnsweringModel]] = lambda: (),
    opening: "PassOpening | None" = None,
    engine: Engine = "local",
) -> None:
    """Write the answers of models to the images of a family, with their provenance.

    Each changed image is made once: for all of the models, for the digests,
    and for `others`, models that lack answers, too. Their shards stay next to the answers until they are targets
    themselves. Shards are kept until the end, so that an interrupted run is continued. `opening`: opens the pass on
    another machine, for the engine ray; clean images are answered here. Below float64 the record says
    how far the answers are from it, on a sample. A model that fails does not stop the others: its CleansetError is
    raised at the end, unchanged, at once, where a clean image does not get the stored scores.
    """
    found = [_FamilyAnswers(target, plan) for target in targets]
    # first, since a wrong model or preprocessing shows here within seconds
    for each in found:
        each.answer_clean()
    problems = dict[str, Exception]()
    if any(each.shards.missing for each in found):
        beside = [_FamilyAnswers(other, plan) for other in others()]
        if beside:
            names = ", ".join(each.target.name for each in beside)
            print_notice(f"{plan.name}: {names} answer in the same pass")
        shown = [*found, *beside]
        problems = _answer(shown, digests, opening, engine)
        for each in found:
            # next to others a model may have had too little memory
            if len(shown) > 1 and problems.pop(each.target.name, None) is not None:
                each.open_shards()
                problems |= _answer([each], None, opening, engine)
    for each in found:
        if each.target.name not in problems:
            each.finish()
    for each in found:
        if each.target.name in problems:
            raise _told(each.target, problems[each.target.name])


def _told(target: AnsweringModel, problem: Exception) -> Exception:
    """A model's problem; that of a network that does not fit into memory as a CleansetError."""
    if not isinstance(problem, torch.OutOfMemoryError):
        return problem
    device = ", ".join(map(str, target.settings.devices))
    return CleansetError(
        f"{target.name}: its network does not fit into the memory of {device}; expected a larger device: end other "
        "programs on it, or set the device cpu"
    )


class PassOpening(Protocol):
    """Opens the worker of a pass of models, by their names, on another machine; it is pickled."""

    def __call__(self, place: Place, *, names: Sequence[str], takes_digests: bool) -> Opened[ShownShard]:
        """The worker, and everything that its answers depend on."""


def _opened_pass(targets: Sequence[AnsweringModel], plan: ChangePlan, *, takes_digests: bool) -> Opened[ShownShard]:
    """The worker of a pass on the device of its models' settings, for the life of a process that does nothing else."""
    settings = targets[0].settings
    images = plan.changed_images()
    plans = {each.name: plan.for_model(each.name) for each in targets}
    worker = PassWorker(
        models={each.name: asked(each, plans[each.name]) for each in targets},
        images=images,
        settings=settings,
        takes_digests=takes_digests,
        kept=Kept(images, settings),
    )
    return Opened(worker=worker, made_from=made_from_all(targets, plans))


def asked(target: AnsweringModel, plan: ChangePlan) -> AskedModel:
    """A model with a preprocessing that crops nothing of a changed image; `plan`: the images that it sees."""
    return AskedModel(
        model=replace(target.model, preprocessing=squares(target.model.preprocessing.size)),
        read_off=ReadAnswers(target.edition_classes, plan.class_of),
    )


def made_from_all(targets: Iterable[AnsweringModel], plans: Mapping[str, ChangePlan]) -> MadeFrom:
    """Everything that the answers of models depend on, by name; `plans`: the images that each sees."""
    return MadeFrom({each.name: each.made_from(plans[each.name]).facts for each in targets})


def _answer(
    shown: "Sequence[_FamilyAnswers]", digests: TakenDigests | None, opening: PassOpening | None, engine: Engine
) -> dict[str, Exception]:
    """Compute the missing shards of the models in one pass; their problems by name."""
    first = shown[0]
    models = {each.target.name: each for each in shown}
    name = f"{first.plan.name} {' '.join(models)}"
    elsewhere = None
    if opening is not None:
        plans = {each: answers.plan for each, answers in models.items()}
        elsewhere = Elsewhere(
            name=name,
            open=partial(opening, names=[*models], takes_digests=digests is not None),
            made_from=made_from_all([each.target for each in shown], plans),
        )
    devices = len(first.target.settings.devices)
    with shards_bar([each.shards for each in shown], name, devices) as done:
        # the plan of all: each model's shards name its own images
        return OnePass(
            models=models,
            images=first.changed_of_all,
            settings=first.target.settings,
            on_progress=done,
            notify=print_notice,
            digests=digests,
            elsewhere=elsewhere,
            engine=engine,
        ).answer()


class _FamilyAnswers(ModelInPass):
    """The answers of one model to one family, on their way from shards into a table.

    `model`: with a preprocessing that crops nothing of a changed image.
    """

    def __init__(self, target: AnsweringModel, of_all: ChangePlan) -> None:
        self.target = target
        self.plan = of_all.for_model(target.name)
        self.changed_of_all = of_all.changed_images()
        of_family = asked(target, self.plan)
        self.read_off = of_family.read_off
        self.model = of_family.model
        self._record = target.record(self.plan)
        self._stem = target.stem or target.name
        self._made_from = target.made_from(self.plan)
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
            try:
                self._clean = score_few(
                    target.model, self.changed_of_all, target.settings, names, read_off=self.read_off
                )
            except torch.OutOfMemoryError as error:
                raise _told(target, error) from None
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
        write_json(target.answers.record(name, self._stem), record)
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
            "top1_agreement": rounded(1 - found.top1_changed / max(1, found.images), 6),
            "largest_difference": float(f"{found.largest_difference:.3g}"),
        }


def run(study: Study, role: str, family: str | None = None) -> None:
    """Read images and the model's weights, write data/<family>/<role>.parquet and .json; None: for every family.

    The model is one of the edition, or a further one of the study, whose clean answers are compared with nothing.
    Other models of the study that lack answers are shown the same images; their stages then find finished shards in
    the cache, as stage digests does. Raises CleansetError for neither, and as `predict` and `change_plan` do.
    """
    worker_processes(CHANGING)
    families = FAMILIES if family is None else [family_named(family)]
    opened = OpenedStudy.read(study)
    models = StudyModels(opened, settings_for(opened.score))
    # all plans first: a photograph or a file that is missing shows before hours of work
    plans = list(map(opened.plan, families))
    target = models.load(role)
    for plan in plans:
        digests = TakenDigests(DigestRun(plan).shards(study.partial_digests(plan.name)))
        predict(
            [target],
            plan,
            digests=digests,
            others=partial(models.lacking, plan, role),
            opening=StudyPass(study=Study(study.folder.resolve()), family=plan.name, settings=models.settings),
            engine=opened.engine,
        )
        # before stage digests has run, it has stored none
        with suppress(CleansetError):
            stored = read_digests(study.digests / f"{plan.name}.parquet", plan.family, opened.classes)
            digests.remove_known(stored)


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyPass:
    """Opens the pass of a study's models over a family from the files of the study."""

    study: Study
    family: str
    settings: Settings

    def __call__(self, place: Place, *, names: Sequence[str], takes_digests: bool) -> Opened[ShownShard]:
        """The worker on a device of a cluster. Raises CleansetError for a model that cannot be loaded."""
        worker_processes(CHANGING)
        opened = OpenedStudy.read(self.study)
        models = StudyModels(opened, self.settings.of_device(place.device, place.cores))
        targets = [models.load(name) for name in names]
        return _opened_pass(targets, opened.plan(family_named(self.family)), takes_digests=takes_digests)


class StudyModels:
    """The models of a study or a command, each loaded when it is needed, and kept as far as memory allows."""

    def __init__(self, opened: OpenedStudy, settings: Settings) -> None:
        self._opened = opened
        self._loaded = dict[str, AnsweringModel]()
        self.settings = settings

    def load(self, role: str) -> AnsweringModel:
        """A model by its name. Raises CleansetError if it cannot be loaded, or is a list."""
        if role not in self._loaded:
            found = self._open(role)
            if sum(each.parameters() for each in (found, *self._loaded.values())) > MAX_PARAMETERS:
                self._loaded.clear()
            self._loaded[role] = found
        return self._loaded[role]

    def _open(self, role: str) -> AnsweringModel:
        opened = self._opened
        spec = opened.spec_of(role)
        found = open_model(spec, self.settings, opened.classes)
        is_stored = role in opened.stored and self.settings.precision == "float64"
        edition = opened.images.edition
        return AnsweringModel(
            name=role,
            model=found.loaded,
            settings=self.settings,
            edition_classes=opened.images.edition_classes,
            answers=opened.answers,
            check=check_of_stored(edition, role, opened.classes) if is_stored and edition else None,
            # the weights of a custom model do not determine all; outside DVC nothing else does
            identity=found.identity if not opened.is_study or isinstance(spec, ModuleModel) else "",
            stem=opened.stems.get(role, role),
            is_sealed=not opened.is_study,
        )

    def lacking(self, plan: ChangePlan, beside: str) -> Iterator[AnsweringModel]:
        """The models other than `beside` that lack answers to a family and can be loaded, as far as memory allows."""
        parameters = 0
        for role in self._opened.stems:
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

    def answer(self, name: str, plan: ChangePlan, shown: ShownPixels) -> None:
        """Write a command's answers unless they are there; other models that lack some see the same images."""
        target = self.load(name)
        if not target.is_finished(plan):
            predict([target], plan, digests=shown.taken(), others=partial(self.lacking, plan, name))

    def _has_answers(self, role: str, plan: ChangePlan) -> bool:
        """Whether a model's stored answers have the record that they would have today, the model itself aside."""
        files = self._opened.answers
        stem = self._opened.stems[role]
        expected = _facts_of_every_model(self.settings, plan.for_model(role))
        try:
            differences = MadeFrom(expected).differences(json.loads(files.record(plan.name, stem).read_bytes()))
            # answers that lack a column count as missing
            columns = parquet.read_schema(files.predictions(plan.name, stem)).names
        except (OSError, ValueError):  # ValueError: a file that is not JSON or Parquet
            return False
        return not differences and bool(columns == predictions_table(plan.family).names)
