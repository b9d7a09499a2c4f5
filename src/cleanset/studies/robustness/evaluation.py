"""The command `robustness evaluate`: any models on any images, outside DVC, by the code of a study's stages."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from cleanset.classes import ClassTable
from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.evaluation.measures import NAN, Difference, Measure
from cleanset.evaluation.request import Request
from cleanset.evaluation.specs import Spec, ZooModel, file_stems
from cleanset.measure.comparability import (
    CardModel,
    ComparabilityCard,
    card_model,
)
from cleanset.measure.compare.model_index import check_hub, write_hub
from cleanset.measure.compare.result_files import RESULTS, parse_results
from cleanset.measure.measured_models import not_deterministic
from cleanset.measure.sets import EvaluationSet, SetImages
from cleanset.measure.table import MeasureTable, cell
from cleanset.plumbing.files import remove_abandoned
from cleanset.plumbing.json_files import with_digest, write_json
from cleanset.scoring.validity import library_versions, read_finished
from cleanset.studies.robustness.answers import installed_versions
from cleanset.studies.robustness.cards import MEANING_OF_P, family_card
from cleanset.studies.robustness.digests import DigestRun, ShownPixels
from cleanset.studies.robustness.families import (
    CHANGING,
    FAMILIES,
    ChangePlan,
    OpenedStudy,
    StudyParams,
    change_plan,
    families_in,
    family_named,
    notice,
    read_study_params,
)
from cleanset.studies.robustness.family import Family
from cleanset.studies.robustness.images import AnswerFiles, Sources, Study
from cleanset.studies.robustness.measuring import Measured, measure, studied_of
from cleanset.studies.robustness.opened_images import open_images
from cleanset.studies.robustness.pages import whole_table

if TYPE_CHECKING:
    from cleanset.scoring.engine import Settings
    from cleanset.studies.robustness.answering import AnsweringModel


DEFAULTS: dict[str, object] = {family.name: {"names": list(family.default_names)} for family in FAMILIES}
"""Without a params file: the 15 corruptions at five severities, the 10 perturbations, and no scenarios."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Evaluated:
    """The results of `robustness evaluate`."""

    images: EvaluationSet
    """The images that the models were measured on."""
    measured: Mapping[str, Measured]
    """The measures of models, and of every two models, by family."""
    notices: Mapping[str, str]
    """The notice beside a family's numbers, by family."""
    cards: Mapping[str, ComparabilityCard]
    """The comparability card, by family."""
    random: Collection[str]
    """The models whose answers depend on more than the image."""


def study_in_memory(edition: Edition, wanted: Request, out: Path, params_file: Path | None) -> OpenedStudy:
    """The study that a command asks for: names are checked, params and all images read; no model is loaded.

    `edition`: of the roles, which need not be that of the images. `params_file`: as a study's params.yaml; None: the
    defaults. Raises CleansetError; imports no torch.
    """
    specs, score, roles = replace(wanted, out=out).models_to_run(edition)
    names = [spec.text for spec in specs]
    if wanted.hub is not None:
        check_hub(wanted.hub, names)
    params = _params(params_file, names, roles, edition.read_classes())
    images = open_images(str(wanted.name), edition, roles)
    return OpenedStudy(
        study=Study((params_file or out / "params.yaml").parent),
        classes=images.classes,
        params=params,
        models=dict(zip(names, file_stems(names), strict=True)),
        specs=dict(zip(names, specs, strict=True)),
        score=score,
        answers=AnswerFiles(out),
        stored=[spec.text for spec in specs if _is_stored(spec, images.edition, edition)],
        given=images,
    )


def _is_stored(spec: Spec, of_images: Edition | None, edition: Edition) -> bool:
    """Whether the scores of a role are stored, on images of its own edition."""
    if of_images is None or of_images.folder.resolve() != edition.folder.resolve():
        return False
    roles = read_params(edition.folder).models if edition.params_yaml.is_file() else ()
    tables = of_images.scores(spec.text), of_images.crop_scores(spec.text)
    return isinstance(spec, ZooModel) and spec.text in roles and all(path.is_file() for path in tables)


def run(edition: Edition, wanted: Request, out: Path, params_file: Path | None = None) -> Evaluated:
    """Measure the models; write their answers, CSV files, metrics and results into the folder `out`.

    `params_file`: as a study's params.yaml. Finished results of an earlier run in `out` are reused. Names are
    checked and all images are read before torch is imported. Raises CleansetError with the remedy.
    """
    for folder in (out, *(out / family.name for family in FAMILIES)):
        remove_abandoned(folder)
    of_run = EvaluationRun.open(study_in_memory(edition, wanted, out, params_file))
    opened, plans = of_run.opened, of_run.plans
    images = opened.images
    params = opened.params

    from cleanset.evaluation.models import check_model
    from cleanset.scoring.decoding import worker_processes

    # report a missing weights file before spending hours on another model
    for spec in opened.specs.values():
        check_model(spec)
    worker_processes(CHANGING)
    of_cards = of_run.answer()
    studied = studied_of(opened, of_run.sources)
    official = [plan.name for plan in plans if plan.changing.is_official]
    notices = {
        plan.name: notice(plan.family, params, images.rows, images.classes, is_official=plan.name in official)
        for plan in plans
    }
    cards = {
        each.name: family_card(
            each,
            params,
            edition_classes=len(images.edition_classes),
            digests=of_run.shown[each.name].finish(),
            models=of_cards,
        )
        for each in plans
    }
    limits = [not_deterministic(name) for name in of_run.random]
    measured = measure(
        studied, notices, out / "measures", out / "metrics", official=official, cards=cards, limits=limits
    )
    evaluated = Evaluated(images=images, measured=measured, notices=notices, cards=cards, random=of_run.random)
    results = content(evaluated, official)
    write_json(out / RESULTS, with_digest(results))
    if wanted.hub is not None:
        write_hub(wanted.hub, parse_results(results, images.name), opened.models)
    return evaluated


def content(evaluated: Evaluated, official: Collection[str]) -> dict[str, object]:
    """The content of the JSON file of results: by family the card, and every measure of each model.

    Shares are between 0 and 1; a value that is missing is None, and `problem` has the reason.
    """
    images = evaluated.images
    families = {
        name: {
            "comparability": evaluated.cards[name].as_json(),
            "notice": evaluated.notices[name],
            "official": name in official,
            "selection": images.selections[0],
            "models": [
                model | {"deterministic": model["model"] not in evaluated.random}
                for model in _models(line for line in lines if line.selection == images.selections[0])
            ],
        }
        for name, (lines, _) in evaluated.measured.items()
    }
    return {
        "set": {**images.facts.as_json(), "images": len(images.items)},
        "families": families,
    }


def _models(lines: Iterable[Measure]) -> list[dict[str, object]]:
    found: dict[str, dict[str, object]] = {}
    for line in lines:
        numbers = (float(each) if np.isfinite(each) else None for each in (line.value, line.low, line.high))
        value, *ends = numbers
        measure = {"value": value, "interval": ends} | ({"problem": line.problem} if line.problem else {})
        found.setdefault(line.model, {})["/".join(filter(None, (line.measure, line.change)))] = measure
    return [{"model": model, "measures": measures} for model, measures in found.items()]


def _params(path: Path | None, names: Sequence[str], roles: Sequence[str], classes: ClassTable) -> StudyParams:
    if path is None:
        return StudyParams.model_validate(DEFAULTS)
    # every model sees all images
    found = read_study_params(path, names, classes, others=roles, further=False)
    if not families_in(found):
        sections = ", ".join(family.name for family in FAMILIES)
        raise CleansetError(f"{path}: nothing is measured; expected names in at least one section of {sections}")
    return found.model_copy(update={"images": "union"})


@dataclass(frozen=True, eq=False, kw_only=True)
class EvaluationRun:
    """The models of a command, and what is shown to them; torch is imported when a model is loaded."""

    opened: OpenedStudy
    sources: Sources
    plans: Sequence[ChangePlan]
    """The changed images of each family."""
    shown: Mapping[str, ShownPixels]
    """Their digests, by family."""
    random: list[str] = field(default_factory=list)
    """Filled with the models whose answers depend on more than the image."""

    @classmethod
    def open(cls, opened: OpenedStudy) -> Self:
        """Find the changed images of a study in memory. Raises CleansetError as `change_plan` does."""
        sources = opened.sources()
        plans = [change_plan(family, sources, opened.params) for family in families_in(opened.params)]
        digests = opened.answers.folder / "digests"
        shown = {
            each.name: ShownPixels(digests / f"{each.name}.txt", DigestRun(each, sources, opened.params))
            for each in plans
        }
        return cls(opened=opened, sources=sources, plans=plans, shown=shown)

    @cached_property
    def settings(self) -> "Settings":
        """How the models are run."""
        from cleanset.scoring.engine import settings_for

        return settings_for(self.opened.score)

    def answer(self) -> dict[str, CardModel]:
        """Write the answers that are not there yet, of as many models at a time as memory allows.

        Returns the models' parts of the cards, by name. Raises CleansetError for a model that cannot be loaded; the
        answers of those before it are then written.
        """
        from cleanset.studies.robustness.answering import fit_together

        cards = dict[str, CardModel]()
        waiting = list["AnsweringModel"]()
        for name in self.opened.models:
            try:
                target = self.load(name)
                cards[name] = self._card(target)
            except CleansetError:
                self.predict(waiting)
                raise
            if not fit_together([each.parameters() for each in [*waiting, target]]):
                self.predict(waiting)
                waiting = []
            waiting.append(target)
        self.predict(waiting)
        return cards

    def predict(self, targets: "Sequence[AnsweringModel]") -> None:
        """Write the answers of models that are not there yet, each changed image made once for all."""
        from cleanset.studies.robustness.answering import predict

        for plan in self.plans:
            lacking = [each for each in targets if not self.is_finished(each, plan)]
            if lacking:
                files = self.sources.files_in(plan.images)
                predict(lacking, self.opened.params, plan, files, digests=self.shown[plan.name].taken())

    def is_finished(self, target: "AnsweringModel", plan: ChangePlan) -> bool:
        """Whether answers of this record are stored, and have not been modified since."""
        path = target.answers.predictions(plan.name, target.stem)
        made_from = target.made_from(self.opened.params, plan)
        return read_finished(path.with_suffix(".json"), made_from, path) is not None

    def load(self, name: str) -> "AnsweringModel":
        """A model of the request; notes whether it is random. Raises CleansetError if it cannot be loaded."""
        from cleanset.scoring.engine import dependence_of
        from cleanset.studies.robustness.answering import StudyModels

        files = self.sources.files
        target = StudyModels(self.opened, self.settings).load(name)
        if dependence_of(target.model, SetImages(files), list(files), self.settings) is not None:
            self.random.append(name)
        return target

    def _card(self, target: "AnsweringModel") -> CardModel:
        """A model's part of the cards."""
        from cleanset.evaluation.models import preprocessing_digest

        return card_model(
            {
                "weights_sha256": target.model.weights_sha256,
                "preprocessing": target.model.preprocessing.name,
                "preprocessing_sha256": preprocessing_digest(target.model.preprocessing),
                "precision": self.settings.precision,
                "versions": {**library_versions(), **installed_versions()},
            }
        )


WITHOUT_INTERVAL = ("clean", "unchanged")

INTERVALS_NOTE = "Intervals of 95 % by bootstrap over images."


def as_text(evaluated: Evaluated) -> Group:
    """The name of the image set, and a table for each family; fits into 80 columns."""
    images = evaluated.images
    parts: list[RenderableType] = [*map(Text, images.about())]
    for name, (lines, differences) in evaluated.measured.items():
        family = family_named(name)
        chosen = [line for line in lines if line.selection == images.selections[0] and not line.change]
        if (table := _table(family, chosen)).titles:
            parts += [Text(), Text(f"{name}, {chosen[0].images:,} images: {family.unit}"), table.in_terminal()]
            missing = [each.problem for each in chosen if each.problem and each.measure in family.summary]
            parts += map(Text, dict.fromkeys(missing))
        else:  # the means need all changes
            parts += [Text(), Text(f"{name}: no measures over all changes; measures/{name}.csv has each change's")]
        if paired := _differences(family, differences, images.selections[0]):
            parts += [Text(), paired.in_terminal(), Text(f"{MEANING_OF_P}."), Text()]
        parts += [Text(evaluated.notices[name]), Text(evaluated.cards[name].line)]
    parts += [Text(), Text(INTERVALS_NOTE), *(Text(not_deterministic(name)) for name in evaluated.random)]
    return Group(*parts)


def _table(family: Family, lines: Sequence[Measure]) -> MeasureTable:
    """A row for each model, in the order in which they were named."""
    cut = {name for name, title in family.summary.items() if title in WITHOUT_INTERVAL}
    shown = [replace(each, low=NAN, high=NAN) if each.measure in cut else each for each in lines]
    return whole_table(shown, family, family.summary)


def _differences(family: Family, differences: Iterable[Difference], selection: str) -> MeasureTable | None:
    """The paired differences of every two models in the first measure over all changes that has some."""
    whole = [each for each in differences if not each.change]
    measures = {each.measure for each in whole}
    first = next((name for name in family.shown_differences if name in measures), None)
    rows = [
        (
            (each.model, each.other),
            [family.cell(each), cell(each.p_holm, factor=1, digits=4)],
        )
        for each in whole
        if each.measure == first and each.selection == selection
    ]
    if first is None or not rows:
        return None
    return MeasureTable(("model", "compared with"), (f"difference in {family.headlines[first]}", "p"), rows)
