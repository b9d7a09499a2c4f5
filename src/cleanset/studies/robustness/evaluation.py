"""The command `robustness evaluate`: any models on any images, outside DVC, by the code of a study's stages."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from cleanset.classes import ClassTable
from cleanset.edition.params import Score, read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.evaluation.measures import NAN, Difference, Measure
from cleanset.measure.command import Wanted
from cleanset.measure.comparability import (
    CardModel,
    ComparabilityCard,
    card_model,
)
from cleanset.measure.compare.model_index import write_hub
from cleanset.measure.compare.result_files import RESULTS, parse_results
from cleanset.measure.measured_models import not_deterministic
from cleanset.measure.specs import Spec, ZooModel, file_stems
from cleanset.measure.table import MeasureTable, cell
from cleanset.plumbing.files import remove_abandoned
from cleanset.plumbing.json_files import with_digest, write_json
from cleanset.scoring.validity import library_versions, read_finished
from cleanset.studies.robustness.answers import CheckClean, check_of_stored, installed_versions
from cleanset.studies.robustness.cards import MEANING_OF_P, family_card
from cleanset.studies.robustness.digests import DigestRun, ShownPixels
from cleanset.studies.robustness.families import (
    CHANGING,
    FAMILIES,
    ChangePlan,
    StudyParams,
    change_plan,
    families_in,
    family_named,
    notice,
    read_study_params,
)
from cleanset.studies.robustness.family import Family
from cleanset.studies.robustness.image_sets import OpenedImages, open_images
from cleanset.studies.robustness.images import AnswerFiles, SetImages, Sources, Study
from cleanset.studies.robustness.measuring import Measured, Studied, measure
from cleanset.studies.robustness.pages import whole_table
from cleanset.studies.robustness.scenarios.mask_files import masks_found

if TYPE_CHECKING:
    from cleanset.scoring.engine import Settings
    from cleanset.studies.robustness.answering import AnsweringModel


DEFAULTS: dict[str, object] = {family.name: {"names": list(family.default_names)} for family in FAMILIES}
"""Without a params file: the 15 corruptions at five severities, the 10 perturbations, and no scenarios."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Evaluated:
    """The results of `robustness evaluate`."""

    images: OpenedImages
    """The images that the models were measured on."""
    measured: Mapping[str, Measured]
    """The measures of models, and of every two models, by family."""
    notices: Mapping[str, str]
    """The notice beside a family's numbers, by family."""
    cards: Mapping[str, ComparabilityCard]
    """The comparability card, by family."""
    random: Collection[str]
    """The models whose answers depend on more than the image."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Request:
    """What `robustness evaluate` is asked for: names are checked and all images read; no model is loaded."""

    edition: Edition
    """The edition of the roles, which need not be that of the images."""
    specs: Sequence[Spec]
    score: Score
    params: StudyParams
    images: OpenedImages
    sources: Sources
    plans: Sequence[ChangePlan]
    """The changed images of each family."""
    out: Path

    @classmethod
    def read(cls, edition: Edition, wanted: Wanted, out: Path, params_file: Path | None) -> Self:
        """Check the names, and read the params and all images. Raises CleansetError; imports no torch."""
        specs, score, roles = replace(wanted, out=out).models_to_run(edition)
        params = _params(params_file, [spec.text for spec in specs], roles, edition.read_classes())
        images = open_images(str(wanted.name), edition, roles)
        study = Study((params_file or out / "params.yaml").parent)
        masks = masks_found(images.images, images.files, study.masks, params, classes=images.classes)
        sources = Sources(
            images=images.images,
            masks=masks,
            files=images.files,
            classes=images.classes,
            study=study,
            edition=images.edition,
        )
        plans = [change_plan(family, sources, params) for family in families_in(params)]
        return cls(
            edition=edition,
            specs=specs,
            score=score,
            params=params,
            images=images,
            sources=sources,
            plans=plans,
            out=out,
        )

    @property
    def answers(self) -> AnswerFiles:
        """Where the answers are kept."""
        return AnswerFiles(self.out)

    def shown(self) -> dict[str, ShownPixels]:
        """The digests of the changed images, by family."""
        return {
            each.name: ShownPixels(
                self.out / "digests" / f"{each.name}.txt", DigestRun(each, self.sources, self.params)
            )
            for each in self.plans
        }

    def by_stem(self) -> dict[str, Spec]:
        """The models, by the stem of their files."""
        return dict(zip(file_stems([spec.text for spec in self.specs]), self.specs, strict=True))


def run(edition: Edition, wanted: Wanted, out: Path, params_file: Path | None = None) -> Evaluated:
    """Measure the models; write their answers, CSV files, metrics and results into the folder `out`.

    `params_file`: as a study's params.yaml. Finished results of an earlier run in `out` are reused. Names are
    checked and all images are read before torch is imported. Raises CleansetError with the remedy.
    """
    for folder in (out, *(out / family.name for family in FAMILIES)):
        remove_abandoned(folder)
    asked = Request.read(edition, wanted, out, params_file)
    images, params, plans = asked.images, asked.params, asked.plans

    from cleanset.measure.run import check_model
    from cleanset.scoring.decoding import worker_processes
    from cleanset.scoring.engine import settings_for

    # report a missing weights file before spending hours on another model
    for spec in asked.specs:
        check_model(spec)
    worker_processes(CHANGING)
    shown = asked.shown()
    of_run = EvaluationRun(asked=asked, settings=settings_for(asked.score), shown=shown)
    of_cards = of_run.answer()
    models = {spec.text: stem for stem, spec in asked.by_stem().items()}
    studied = Studied(
        images=images.images,
        masks=asked.sources.masks,
        classes=images.classes,
        params=params,
        models=models,
        owners=images.owners,
        selections=images.selections,
        files=asked.answers,
        about=images.facts,
        chosen_by=images.selected_by,
    )
    official = [plan.name for plan in plans if plan.changing.is_official]
    notices = {
        plan.name: notice(plan.family, params, images.images, images.classes, is_official=plan.name in official)
        for plan in plans
    }
    cards = {
        each.name: family_card(
            each,
            params,
            edition_classes=len(images.edition_classes),
            digests=shown[each.name].finish(),
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
        write_hub(wanted.hub, parse_results(results, images.name), models)
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
        "set": {**images.facts.as_json(), "images": len(images.images)},
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


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class EvaluationRun:
    """The settings of all models of a request, and what is shown to them; torch is imported when a model is loaded."""

    asked: Request
    settings: "Settings"
    shown: Mapping[str, ShownPixels] = field(default_factory=dict)
    """The digests of the changed images, by family."""
    random: list[str] = field(default_factory=list)
    """Filled with the models whose answers depend on more than the image."""

    def answer(self) -> dict[str, CardModel]:
        """Write the answers that are not there yet, of as many models at a time as memory allows.

        Returns the models' parts of the cards, by name. Raises CleansetError for a model that cannot be loaded; the
        answers of those before it are then written.
        """
        from cleanset.studies.robustness.answering import fit_together

        cards = dict[str, CardModel]()
        waiting = list["AnsweringModel"]()
        for stem, spec in self.asked.by_stem().items():
            try:
                target, cards[spec.text] = self._with_card(spec, stem)
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
        """Write the answers of models that are shown the images together, as far as they are not there yet."""
        from cleanset.studies.robustness.answering import predict

        for plan in self.asked.plans:
            lacking = [each for each in targets if not self.is_finished(each, plan)]
            if lacking:
                files = {file: self.asked.images.files[file] for file in plan.images["file"]}
                predict(lacking, self.asked.params, plan, files, digests=self.shown[plan.name].taken())

    def is_finished(self, target: "AnsweringModel", plan: ChangePlan) -> bool:
        """Whether answers of this record are stored, and have not been modified since."""
        path = target.answers.predictions(plan.name, target.stem)
        return read_finished(path.with_suffix(".json"), target.made_from(self.asked.params, plan), path) is not None

    def load(self, spec: Spec, stem: str) -> "AnsweringModel":
        """A model of the request; notes whether it is random. Raises CleansetError if it cannot be loaded."""
        from cleanset.measure.run import load
        from cleanset.scoring.engine import dependence_of
        from cleanset.studies.robustness.answering import AnsweringModel

        images = self.asked.images
        found = load(spec, self.settings, images.classes)
        if dependence_of(found.loaded, SetImages(images.files), list(images.files), self.settings) is not None:
            self.random.append(spec.text)
        return AnsweringModel(
            name=spec.text,
            model=found.loaded,
            settings=self.settings,
            edition_classes=images.edition_classes,
            answers=self.asked.answers,
            check=self._stored(spec) if self.settings.precision == "float64" else None,
            identity=found.identity,
            stem=stem,
            is_sealed=True,
        )

    def _with_card(self, spec: Spec, stem: str) -> "tuple[AnsweringModel, CardModel]":
        """A model and its part of the cards. Raises CleansetError if it cannot be loaded."""
        from cleanset.measure.run import preprocessing_digest

        target = self.load(spec, stem)
        card = card_model(
            {
                "weights_sha256": target.model.weights_sha256,
                "preprocessing": target.model.preprocessing.name,
                "preprocessing_sha256": preprocessing_digest(target.model.preprocessing),
                "precision": self.settings.precision,
                "versions": {**library_versions(), **installed_versions()},
            }
        )
        return target, card

    def _stored(self, spec: Spec) -> CheckClean | None:
        """The stored scores of a role on images of its own edition; None if none are stored."""
        edition = self.asked.images.edition
        if edition is None or edition.folder.resolve() != self.asked.edition.folder.resolve():
            return None
        roles = read_params(edition.folder).models if edition.params_yaml.is_file() else ()
        tables = edition.scores(spec.text), edition.crop_scores(spec.text)
        is_stored = isinstance(spec, ZooModel) and spec.text in roles and all(path.is_file() for path in tables)
        return check_of_stored(edition, spec.text, self.asked.images.classes) if is_stored else None


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
