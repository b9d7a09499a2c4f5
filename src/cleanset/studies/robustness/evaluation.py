"""The command `robustness evaluate`: any models on any images, outside DVC, by the code of a study's stages."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from cleanset.classes import ClassTable
from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.evaluation.arguments import Arguments
from cleanset.evaluation.comparability import (
    RESULTS_FORMAT,
    CardModel,
    ComparabilityCard,
    card_model,
)
from cleanset.evaluation.compare.model_index import check_hub, write_results
from cleanset.evaluation.measured_models import not_deterministic
from cleanset.evaluation.measures import NAN, Difference, Measure
from cleanset.evaluation.sets import EvaluationSet, SetImages
from cleanset.evaluation.specs import Spec, ZooModel
from cleanset.evaluation.table import MeasureTable, p_cell
from cleanset.plumbing.files import remove_abandoned
from cleanset.scoring.validity import library_versions
from cleanset.studies.robustness.answers import installed_versions
from cleanset.studies.robustness.cards import MEANING_OF_P, family_card
from cleanset.studies.robustness.digests import shown_pixels
from cleanset.studies.robustness.families import (
    CHANGING,
    FAMILIES,
    OpenedStudy,
    StudyParams,
    families_in,
    family_named,
    notice,
    read_study_params,
)
from cleanset.studies.robustness.family import Family
from cleanset.studies.robustness.measuring import Measured, measure
from cleanset.studies.robustness.opened_images import open_images
from cleanset.studies.robustness.pages import whole_table

if TYPE_CHECKING:
    from cleanset.studies.robustness.answering import AnsweringModel


NOT_TESTED = "not tested: not a mean over images, or one of the two models chose all images"
"""Reason for a missing p-value."""
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
    """The notice next to a family's numbers, by family."""
    cards: Mapping[str, ComparabilityCard]
    """The comparability card, by family."""
    random: Collection[str]
    """The models whose answers depend on more than the image."""
    outputs: Sequence[str] = ()
    """Notes on models whose outputs are probably not logits."""
    official: Collection[str] = ()
    """The families whose published benchmark was read as a whole."""


def request_of(
    edition: Edition, wanted: Arguments, out: Path, params_file: Path | Mapping[str, object] | None = None
) -> OpenedStudy:
    """What the arguments of a command ask for: names are checked, params and all images read; no model is loaded.

    `edition`: the roles' edition, which need not be that of the images. `params_file`: as a study's params.yaml, or its
    content; None: the defaults. Raises CleansetError; imports no torch.
    """
    specs, score, roles = replace(wanted, out=out).models_to_run(edition)
    names = [spec.text for spec in specs]
    if wanted.hub is not None:
        check_hub(wanted.hub, names)
    params = _params(params_file, names, roles, edition.read_classes())
    images = open_images(str(wanted.name), edition, roles)
    return OpenedStudy.of_command(
        specs,
        images,
        score=score,
        params=params,
        out=out,
        hub=wanted.hub,
        folder=params_file.parent if isinstance(params_file, Path) else out if params_file is None else Path(),
        stored=[spec.text for spec in specs if _is_stored(spec, images.edition, edition)],
    )


def _is_stored(spec: Spec, of_images: Edition | None, edition: Edition) -> bool:
    """Whether the scores of a role are stored, on images of its own edition."""
    if of_images is None or of_images.folder.resolve() != edition.folder.resolve():
        return False
    roles = read_params(edition.folder).models if edition.params_yaml.is_file() else ()
    tables = of_images.scores(spec.text), of_images.crop_scores(spec.text)
    return isinstance(spec, ZooModel) and spec.text in roles and all(path.is_file() for path in tables)


def run(opened: OpenedStudy) -> Evaluated:
    """Measure the models; write their answers, CSV files, metrics and results into the folder of the request.

    Finished results of an earlier run there are reused. Raises CleansetError with the remedy.
    """
    out = opened.out
    for folder in (out, *(out / family.name for family in FAMILIES)):
        remove_abandoned(folder)
    images = opened.images
    params = opened.params
    plans = list(map(opened.plan, families_in(params)))
    shown = {each.name: shown_pixels(opened, each) for each in plans}

    from cleanset.evaluation.models import check_model
    from cleanset.scoring.checked_network import output_note
    from cleanset.scoring.decoding import worker_processes
    from cleanset.scoring.engine import settings_for
    from cleanset.studies.robustness.answering import StudyModels

    # report a missing weights file before spending hours on another model
    for spec in opened.specs.values():
        check_model(spec)
    worker_processes(CHANGING)
    models = StudyModels(opened, settings_for(opened.score))
    of_cards = dict[str, CardModel]()
    random = list[str]()
    problems = list[CleansetError]()
    for name in opened.stems:
        # a model that fails does not stop the others
        try:
            target = models.load(name)
            of_cards[name] = _card(target)
            if _is_random(target, images):
                random.append(name)
            for plan in plans:
                models.answer(name, plan, shown[plan.name])
        except CleansetError as error:
            problems.append(error)
    if problems:
        raise problems[0]
    official = [plan.name for plan in plans if plan.changing.is_official]
    notices = {
        plan.name: notice(plan.family, params, images.rows, images.classes, is_official=plan.name in official)
        for plan in plans
    }
    cards = {
        each.name: family_card(
            each,
            edition_classes=len(images.edition_classes),
            digests=shown[each.name].finish(),
            models=of_cards,
        )
        for each in plans
    }
    outputs = [note for name in opened.stems if (note := output_note(models.load(name).model.network)) is not None]
    limits = [*(not_deterministic(name) for name in random), *outputs]
    measured = measure(
        opened, notices, out / "measures", out / "metrics", official=official, cards=cards, limits=limits
    )
    evaluated = Evaluated(
        images=images,
        measured=measured,
        notices=notices,
        cards=cards,
        random=random,
        official=official,
        outputs=outputs,
    )
    write_results(content(evaluated, official), images.name, opened.stems, out=out, hub=opened.hub)
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
                model
                | {"deterministic": model["model"] not in evaluated.random}
                | _notes(str(model["model"]), evaluated.outputs)
                for model in _models(line for line in lines if line.selection == images.selections[0])
            ],
        }
        for name, (lines, _) in evaluated.measured.items()
    }
    return {
        "format": RESULTS_FORMAT,
        "set": {**images.facts.as_json(), "images": len(images.items)},
        "families": families,
    }


def _notes(model: str, outputs: Sequence[str]) -> dict[str, object]:
    notes = [each for each in outputs if each.startswith(f"{model}: ")]
    return {"notes": notes} if notes else {}


def _models(lines: Iterable[Measure]) -> list[dict[str, object]]:
    found: dict[str, dict[str, object]] = {}
    for line in lines:
        numbers = (float(each) if np.isfinite(each) else None for each in (line.value, line.low, line.high))
        value, *ends = numbers
        measure = {"value": value, "interval": ends} | ({"problem": line.problem} if line.problem else {})
        found.setdefault(line.model, {})["/".join(filter(None, (line.measure, line.change)))] = measure
    return [{"model": model, "measures": measures} for model, measures in found.items()]


def _params(
    given: Path | Mapping[str, object] | None, names: Sequence[str], roles: Sequence[str], classes: ClassTable
) -> StudyParams:
    if given is None:
        return StudyParams.model_validate(DEFAULTS)
    # every model sees all images
    path = given if isinstance(given, Path) else Path("families")
    content = None if isinstance(given, Path) else given
    found = read_study_params(path, names, classes, others=roles, further=False, content=content)
    if not families_in(found):
        sections = ", ".join(family.name for family in FAMILIES)
        raise CleansetError(f"{path}: nothing is measured; expected names in at least one section of {sections}")
    return found.model_copy(update={"images": "union"})


def _is_random(target: "AnsweringModel", images: EvaluationSet) -> bool:
    """Whether the answers of a model depend on more than the image."""
    from cleanset.scoring.engine import dependence_of

    files = images.files
    return dependence_of(target.model, SetImages(files), list(files), target.settings) is not None


def _card(target: "AnsweringModel") -> CardModel:
    """A model's part of the cards."""
    from cleanset.evaluation.models import preprocessing_digest

    return card_model(
        {
            "weights_sha256": target.model.weights_sha256,
            "preprocessing": target.model.preprocessing.name,
            "preprocessing_sha256": preprocessing_digest(target.model.preprocessing),
            "precision": target.settings.precision,
            "versions": {**library_versions(), **installed_versions()},
        }
    )


WITHOUT_INTERVAL = ("clean", "unchanged")

INTERVALS_NOTE = "Intervals of 95 % by bootstrap over images."


def as_text(evaluated: Evaluated) -> Group:
    """The name of the image set, and a table for each family; fits into 80 columns."""
    images = evaluated.images
    size, *notes = images.about()
    parts: list[RenderableType] = [*map(Text, (f"{images.name}: {size}", *notes))]
    for name, (lines, differences) in evaluated.measured.items():
        family = family_named(name)
        chosen = [line for line in lines if line.selection == images.selections[0] and not line.change]
        if (table := _table(family, chosen)).titles:
            parts += [Text(), Text(f"{name}, {chosen[0].images:,} images: {family.unit}"), table.in_terminal()]
        else:  # the means need all changes
            parts += [Text(), Text(f"{name}: no measures over all changes; measures/{name}.csv has each change's")]
        if paired := _differences(family, differences, images.selections[0]):
            parts += [Text(), paired.in_terminal(), Text(f"{MEANING_OF_P}."), Text()]
        parts += [Text(evaluated.notices[name]), Text(evaluated.cards[name].line)]
    parts += [Text(), Text(INTERVALS_NOTE), *(Text(not_deterministic(name)) for name in evaluated.random)]
    parts += map(Text, evaluated.outputs)
    return Group(*parts)


def _table(family: Family, lines: Sequence[Measure]) -> MeasureTable:
    """A row for each model, in the given order."""
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
            [family.cell(each), p_cell(each.p_holm, NOT_TESTED)],
        )
        for each in whole
        if each.measure == first and each.selection == selection
    ]
    if first is None or not rows:
        return None
    return MeasureTable(("model", "compared with"), (f"difference in {family.headlines[first]}", "p"), rows)
