"""Answers of models to the changed images of a family: what they depend on, and the way to their file."""

import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from pyarrow import parquet

from cleanset.edition.params import read_params
from cleanset.errors import CleansetError
from cleanset.files import sha256, write_text
from cleanset.measure.user_model import NetworkError, load_member
from cleanset.progress import print_notice, rate_bar
from cleanset.scoring.comparison import SEED, compare_scores, sample_size
from cleanset.scoring.engine import Settings, score_few, settings_for
from cleanset.scoring.logits import Columns
from cleanset.scoring.models import LoadedModel
from cleanset.scoring.shards import Shards
from cleanset.scoring.validity import MadeFrom, below_float64, code_of, library_versions
from cleanset.studies.robustness.answers import (
    LOGITS,
    NAMED_ANSWERS,
    ReadAnswers,
    StoredScores,
    installed_versions,
    predictions_table,
    with_class_logit,
    with_keys,
)
from cleanset.studies.robustness.changed_images import ChangeName, SetImages, StudyFile
from cleanset.studies.robustness.digests import DigestRun, TakenDigests, read_digests
from cleanset.studies.robustness.families import (
    FAMILIES,
    ChangePlan,
    StudyParams,
    change_plan,
    family_named,
    read_study_params,
)
from cleanset.studies.robustness.family import Family
from cleanset.studies.robustness.images import AnswerFiles, Sources, Study, images_for
from cleanset.studies.robustness.results import CLEAN
from cleanset.studies.robustness.single_pass import FAILURES, MAX_PARAMETERS, ModelInPass, answer_in_one_pass, squares
from cleanset.studies.robustness.trained_models import load_further
from cleanset.tables import write_table

CheckClean = Callable[[pd.DataFrame, pd.DataFrame], None]
"""Takes rows of STUDY_IMAGES and the answers to them, clean, in the same order; raises CleansetError if these differ
from stored ones."""


@dataclass(frozen=True, slots=True, eq=False)
class AnsweringModel:
    """A model, how it is run, and where its answers are kept.

    `classes` are the class indices that an answer may be restricted to. `check`: what clean answers are compared with,
    where there are stored ones. `identity`: what the answers depend on beside the weights, for a custom model.
    `stem`: that of the files' names, where it is not the model's name. `is_sealed`: the record has its own fingerprint
    and the SHA-256 of the answers, too, which tell without DVC whether they are finished.
    """

    name: str
    model: LoadedModel
    settings: Settings
    classes: Sequence[int]
    answers: AnswerFiles
    check: CheckClean | None = None
    identity: str = ""
    stem: str = ""
    is_sealed: bool = False

    def record(self, wanted: StudyParams, plan: ChangePlan) -> dict[str, Any]:
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
        """The record, and what else the answers depend on: the libraries that change images, how the model is run."""
        further = {"changed_by": installed_versions(), **below_float64(self.settings)}
        return MadeFrom(self.record(wanted, plan) | further)


def facts_of_every_model(settings: Settings, wanted: StudyParams, plan: ChangePlan) -> dict[str, Any]:
    """The part of a record of answers that is the same for all models that see the same images."""
    return {
        "precision": settings.precision,
        **plan.as_record(),
        "jpeg": wanted.jpeg,
        "seed": wanted.seed,
        "versions": library_versions(),
        "code": code_of("scoring", "studies/robustness"),
    }


def plan_for(plan: ChangePlan, wanted: StudyParams, name: str) -> ChangePlan:
    """The plan of the images that a model sees: of its own classes, and with `images: own` of its own set, alone."""
    return replace(plan, images=images_for(plan.images, wanted.images, name, wanted.classes_of(name)))


def predict(
    targets: Sequence[AnsweringModel],
    wanted: StudyParams,
    plan: ChangePlan,
    files: Mapping[str, StudyFile],
    digests: TakenDigests | None = None,
    others: Callable[[], Iterable[AnsweringModel]] = lambda: (),
) -> None:
    """Write the answers of models to the images of a family, and what they were computed with.

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
    models = {each.target.name: each.in_pass() for each in shown}
    with rate_bar(sum(each.shards.total_images() for each in shown), f"{first.plan.name} {' '.join(models)}") as done:
        done(sum(each.shards.finished_images() for each in shown), 0.0)
        # the plan of all: each model's shards name its own images
        return answer_in_one_pass(models, first.changed_of_all, first.target.settings, done, print_notice, digests)


class _FamilyAnswers:
    """The answers of one model to one family, on their way from shards into a table."""

    def __init__(
        self, target: AnsweringModel, wanted: StudyParams, of_all: ChangePlan, files: Mapping[str, StudyFile]
    ) -> None:
        self.target, self.plan = target, plan_for(of_all, wanted, target.name)
        self.changed_of_all = of_all.changed_images(files, wanted)
        self._class_of = dict(zip(self.plan.images["file"], self.plan.images["class_index"].tolist(), strict=True))
        self._files = {file: files[file] for file in self.plan.images["file"]}
        self._record, self._stem = target.record(wanted, self.plan), target.stem or target.name
        self._made_from = target.made_from(wanted, self.plan)
        # models whose shards are cut from one list are shown the images of a shard together
        self._of_all = list(map(str, of_all.names()))
        self._names = {str(name): name for name in self.plan.names()}
        self._clean = pd.DataFrame(columns=NAMED_ANSWERS.names)
        self.open_shards()

    def open_shards(self) -> None:
        """Find out which shards are missing."""
        folder = self.target.answers.partial(self.plan.name, self._stem)
        size = self.target.settings.batch_size
        self.shards = Shards(
            folder, self._made_from.fingerprint, self._of_all, size, table=NAMED_ANSWERS, only=self._names
        )

    def in_pass(self) -> ModelInPass:
        """The model's part in a pass over changed images."""

        def finish(names: Sequence[str], columns: Columns) -> Columns:
            return with_class_logit(columns, [self._class_of[self._names[name].file] for name in names])

        return ModelInPass(self._of_squares(), self.shards, ReadAnswers(self.target.classes, keeps_logits=True), finish)

    def _of_squares(self) -> LoadedModel:
        """The model with a preprocessing that crops nothing of a changed image."""
        model = self.target.model
        return replace(model, preprocessing=squares(model.preprocessing.size))

    def answer_clean(self) -> None:
        """Answer the clean images, with the model's own preprocessing, and compare with stored scores."""
        target, files = self.target, self._files
        if files:
            read = SetImages(files)
            read_off = ReadAnswers(target.classes, keeps_logits=True)
            clean = score_few(target.model, read, target.settings, list(files), read_off=read_off)
            logits = {LOGITS: np.stack(clean.pop(LOGITS).tolist())}
            self._clean = clean.assign(**with_class_logit(logits, [self._class_of[file] for file in files]))
        if target.check is not None:
            target.check(self.plan.images, self._clean)

    def finish(self) -> None:
        """Write the answers and their record, and remove the shards."""
        target, settings, name, record = self.target, self.target.settings, self.plan.name, self._record
        scored, answers_file = self.shards.table(), target.answers.predictions(name, self._stem)
        if target.is_sealed:
            record |= {**self._made_from.facts, "fingerprint": self._made_from.fingerprint}
        if settings.precision != "float64" and self._names:
            record["against_float64"] = self._against_float64(scored)
            against = record["against_float64"] or "not compared, as the network does not run in it"
            print_notice(f"{name} {target.name}: {settings.precision} against float64: {against}")
        clean_names = [ChangeName(file, CLEAN, 0) for file in self._clean["image_id"]]
        # shards are sorted by text, whatever order they ran in
        scored_names = [self._names[text] for text in scored["image_id"]]
        table = predictions_table(self.plan.family)
        answers = with_keys(pd.concat([self._clean, scored]), [*clean_names, *scored_names], table)
        write_table(answers_file, answers, table)
        if target.is_sealed:
            record["predictions_sha256"] = sha256(answers_file.read_bytes())
        write_text(target.answers.record(name, self._stem), json.dumps(record, indent=2) + "\n")
        self.shards.remove()

    def _against_float64(self, answers: pd.DataFrame) -> dict[str, Any] | None:
        """The differences of answers to changed images from float64, on a sample drawn with a fixed seed.

        None for a network that does not run in float64, as it has a constant of float32 outside its parameters and
        buffers.
        """
        names = answers["image_id"].tolist()
        # a fixed seed, so that two precisions are compared with float64 on the same images
        drawn = sorted(random.Random(SEED).sample(names, min(len(names), sample_size(len(names)))))
        # in processes: the library draws from numpy's global generator, which threads would share
        exact_settings = replace(self.target.settings, precision="float64", in_processes=True)
        model, changed = self._of_squares(), self.changed_of_all
        try:
            exact = score_few(model, changed, exact_settings, drawn, read_off=ReadAnswers(self.target.classes))
        except NetworkError:
            return None
        found = compare_scores(exact, answers[answers["image_id"].isin(drawn)])
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
    families = FAMILIES if family is None else [family_named(family)]
    models, sources = StudyModels(study), Sources.read(study)
    # all plans first: a photograph or a file that is missing shows before hours of work
    plans = [change_plan(each, sources, models.wanted) for each in families]
    target = models.load(role)
    for plan in plans:
        digest_run = DigestRun(plan, sources, models.wanted)
        digests = TakenDigests(digest_run.shards(study.partial_digests(plan.name)))
        predict(
            [target],
            models.wanted,
            plan,
            sources.files_in(plan.images),
            digests,
            partial(models.lacking, plan, role),
        )
        digests.remove_known(known_digests(study, plan.family))


class StudyModels:
    """The models of a study, each loaded when it is needed."""

    def __init__(self, study: Study) -> None:
        self._study, self._params = study, read_params(study.edition.folder)
        self.wanted = read_study_params(study.params_yaml, list(self._params.models))
        self.settings = settings_for(self._params.score)

    def load(self, role: str) -> AnsweringModel:
        """A model of the edition, or a further one of the study. Raises CleansetError if it cannot be loaded."""
        edition, further = self._study.edition, self.wanted.further_models.get(role)
        check, identity = None, ""
        if further is None:
            model = load_member(self._params.network(role), edition.folder)
            if self.settings.precision == "float64":
                check = StoredScores(edition, role)
        else:
            found = load_further(further, self._study.folder, edition.folder, role, self.settings)
            # the weights of a custom model do not tell all
            model, identity = found.loaded, found.identity if isinstance(further, str) else ""
        classes = self._params.dataset.class_list()
        return AnsweringModel(role, model, self.settings, classes, self._study.answers, check, identity)

    def lacking(self, plan: ChangePlan, beside: str) -> Iterator[AnsweringModel]:
        """The models other than `beside` that lack answers to a family and can be loaded, as far as memory allows."""
        parameters = 0
        for role in self.wanted.models(list(self._params.models)):
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
        files = self._study.answers
        expected = facts_of_every_model(self.settings, self.wanted, plan_for(plan, self.wanted, role))
        try:
            differences = MadeFrom(expected).differences(json.loads(files.record(plan.name, role).read_bytes()))
            # an earlier version's answers may lack a column
            columns = parquet.read_schema(files.predictions(plan.name, role)).names
        except (OSError, ValueError):  # ValueError: what is no JSON, and no Parquet file
            return False
        return not differences and bool(columns == predictions_table(plan.family).names)


def known_digests(study: Study, family: Family) -> dict[str, str]:
    """The digests that stage digests has stored, by the name of a changed image; empty before it has run."""
    try:
        stored = read_digests(study.digests / f"{family.name}.parquet", family)
    except CleansetError:
        return {}
    return {str(name): digest for name, digest in stored.items()}
