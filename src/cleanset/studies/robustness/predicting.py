"""The stage of each family, and stage further: one model's answers to changed images. No measure is taken here."""

import json
from collections.abc import Iterator
from functools import partial

from pyarrow import parquet

from cleanset.edition.params import read_params
from cleanset.errors import CleansetError
from cleanset.progress import available_cores
from cleanset.scoring.engine import settings_for
from cleanset.scoring.models import load_model
from cleanset.studies.robustness.answering import AnsweringModel, facts_of_every_model, plan_for, predict
from cleanset.studies.robustness.answers import StoredScores, predictions_table
from cleanset.studies.robustness.digests import DigestRun, TakenDigests, read_digests
from cleanset.studies.robustness.families import FAMILIES, ChangePlan, change_plan, family_named
from cleanset.studies.robustness.family import Family
from cleanset.studies.robustness.images import Sources
from cleanset.studies.robustness.settings import read_study_params
from cleanset.studies.robustness.single_pass import FAILURES, MAX_PARAMETERS
from cleanset.studies.robustness.study import Study
from cleanset.studies.robustness.trained_models import load_further


def run(study: Study, role: str, family: str | None = None) -> None:
    """Read images and the model's weights, write data/<family>/<role>.parquet and .json; None: of every family.

    The model is one of the edition, or a further one of the study, whose clean answers are compared with nothing.
    Other models of the study that lack answers are shown the same images; their stages then find finished shards, as
    stage digests does. Raises CleansetError for neither, and as `predict` and `change_plan` do.
    """
    models = StudyModels(study)
    target, sources = models.load(role), Sources.read(study)
    for each in FAMILIES if family is None else [family_named(family)]:
        plan = change_plan(each, sources, models.wanted)
        digest_run = DigestRun(plan, sources, models.wanted, available_cores())
        digests = TakenDigests(digest_run.shards(study.partial_digests(plan.name)))
        predict(
            [target],
            models.wanted,
            plan,
            sources.files_in(plan.images),
            digests,
            partial(models.lacking, plan, role),
        )
        digests.remove_known(known_digests(study, each))


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
            model = load_model(self._params.network(role), edition.folder)
            if self.settings.precision == "float64":
                check = StoredScores(edition, role)
        else:
            found = load_further(further, self._study.folder, edition.folder, role, self.settings)
            # the weights of a model of one's own do not tell all
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
            stored = json.loads(files.record(plan.name, role).read_bytes())
            # through JSON, where tuples become lists
            is_same = {**stored, **json.loads(json.dumps(expected))} == stored
            # an earlier version's answers may lack a column
            columns = parquet.read_schema(files.predictions(plan.name, role)).names
        except (OSError, TypeError, ValueError):  # ValueError: what is no JSON, and no Parquet file
            return False
        return is_same and bool(columns == predictions_table(plan.family).names)


def known_digests(study: Study, family: Family) -> dict[str, str]:
    """The digests that stage digests has stored, by the name of a changed image; empty before it has run."""
    try:
        stored = read_digests(study.digests / f"{family.name}.parquet", family)
    except CleansetError:
        return {}
    return {str(name): digest for name, digest in stored.items()}
