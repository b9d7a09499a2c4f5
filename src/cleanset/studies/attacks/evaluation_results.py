"""What `attacks evaluate` did on any models: its results, their comparability cards, notes, limits and paired tests.

A threat model is one measurement: only accuracies under the same attacks with the same settings on the same images
belong in one table. The content of attack_results.json, which `compare` reads, is made here.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from pydantic import JsonValue

from cleanset.dataset.folder import GROUP
from cleanset.evaluation.comparability import (
    RESULTS_FORMAT,
    CardClasses,
    CardImages,
    CardInterval,
    CardModel,
    ComparabilityCard,
)
from cleanset.evaluation.measured_models import untested
from cleanset.evaluation.measures import Measure, images_text
from cleanset.evaluation.notes import Note, joined_notes, table_notes
from cleanset.evaluation.pairs import Pair, answers_text, compare_pairwise, image_key
from cleanset.evaluation.rendering import DIFFERENCE_INTERVAL, tests_note
from cleanset.evaluation.sets import EvaluationSet
from cleanset.plumbing.validation import Section
from cleanset.statistics.basics import LEVEL, Flags
from cleanset.studies.attacks.base import Parameters
from cleanset.studies.attacks.request import AttackRequest
from cleanset.studies.attacks.results import ROBUST_MEASURES, Attacked, by_name, tried_in, worst_case
from cleanset.studies.attacks.study import AttackParams
from cleanset.studies.attacks.threats import ThreatModel, ball_text
from cleanset.studies.attacks.warnings import WarningRecord
from cleanset.studies.robustness.images import images_sha256, units_of

MEASURED = "attacks in"
"""The beginning of a measurement's name, before that of its threat model."""
ON_PIXELS = "attacked on pixels"
NO_PROBE = "Signs of gradient masking were not looked for: a model may only look strong"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class AttackedModels:
    """What was asked and what was found: by model results and warnings; by attack and model why it did not run."""

    request: AttackRequest
    attacked: Mapping[str, Attacked]
    lines: Sequence[Measure]
    warnings: Mapping[str, WarningRecord]
    problems: Mapping[tuple[str, str], str]
    notes: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def images(self) -> EvaluationSet:
        """The requested images; a limit may leave out some."""
        return self.request.images

    @property
    def params(self) -> AttackParams:
        return self.request.params

    @property
    def models(self) -> list[str]:
        """The names of the models, in the order in which they were asked for."""
        return list(self.request.specs)

    def value(self, attack: str, model: str, measure: str) -> Measure | None:
        """A measure of an attack on a model, if it has one."""
        return by_name(self.lines).get((attack, model, measure))

    def measured(self, threat: ThreatModel) -> list[str]:
        """The models that have a measure of a threat model."""
        return [model for model in self.models if self.value(threat.name, model, "robust_high")]

    def tried(self, threat: ThreatModel, model: str) -> pd.DataFrame:
        """The images that each attack of a threat model was tried on, as `worst_case` has them."""
        return worst_case(tried_in(threat, self.attacked[model]))

    def images_of(self, threat: ThreatModel) -> pd.DataFrame:
        """Rows of STUDY_IMAGES: the images that were attacked in a threat model, of the model with most of them."""
        files = max((set(self.tried(threat, model)["file"]) for model in self.measured(threat)), key=len)
        rows = self.images.rows
        return rows[rows["file"].isin(files)].reset_index(drop=True)


def content_of(evaluated: AttackedModels) -> dict[str, object]:
    """The content of the JSON file of results; shares are between 0 and 1; an undefined one is None."""
    images = evaluated.images
    params = evaluated.params
    return {
        "format": RESULTS_FORMAT,
        "set": {
            **images.facts.as_json(),
            "images": len(images.items),
            "images_sha256": images_sha256(images.rows),
            "classes": images.class_count,
        },
        "families": {threat.name: _threat_content(evaluated, threat) for threat in measured_threats(evaluated)},
        "attacks": {name: attack.model_dump() for name, attack in params.attacks.items()},
        "seed": params.seed,
        "search_precision": params.search_precision,
        "models": [_model(evaluated, model) for model in evaluated.models],
    }


def measured_threats(evaluated: AttackedModels) -> list[ThreatModel]:
    """The threat models that some model has a measure of."""
    return [threat for threat in evaluated.params.threats if evaluated.measured(threat)]


def threat_card(evaluated: AttackedModels, threat: ThreatModel) -> ComparabilityCard:
    """The card of the robust accuracies in a threat model: the attacked images, and everything that was asked."""
    request = evaluated.request
    params = request.params
    rows = evaluated.images_of(threat)
    settings: dict[str, JsonValue] = {f"attack {name}": _attack_text(params.attack(name)) for name in threat.attacks}
    settings |= {
        "seed": params.seed,
        "search precision": params.search_precision,
        # what it finds counts as an attack, and what it sees decides which accuracies are bounds
        "probe": _attack_fields(params.probe) if request.warnings else "none",
    }
    if request.straight_through:
        settings["straight through"] = ", ".join(request.straight_through)
    if any(params.attack(name).reads_other_models for name in threat.attacks):
        settings["made on"] = ", ".join(each.text for each in request.others)
    units = units_of(rows)
    by = "" if units is None else f" {units.text}"
    facts = CardModel(preprocessing=ON_PIXELS, precision=request.score.precision)
    return ComparabilityCard(
        measured=f"{MEASURED} {threat.name}",
        images=CardImages.of_rows(rows),
        classes=CardClasses(of_images=int(rows["class_index"].nunique()), of_predictions=len(evaluated.images.classes)),
        settings=settings,
        pixels_sha256=None,
        interval=CardInterval(kind=f"Wilson{by}", level=LEVEL),
        models=dict.fromkeys(evaluated.measured(threat), facts),
    )


def _attack_text(attack: Parameters) -> str:
    """An attack's norm and radius, and all of its other settings, such as steps."""
    ball = [] if attack.ball is None else [ball_text(attack.ball)]
    return ", ".join([attack.kind, *ball, _attack_fields(attack, "norm", "eps", "kind")]).removesuffix(", ")


def _attack_fields(parameters: Section, *left_out: str) -> str:
    """Parameters by name, in a phrase."""
    fields = parameters.model_dump(mode="json", exclude=set(left_out), exclude_none=True)
    return ", ".join(
        f"{name} {value if isinstance(value, str) else json.dumps(value)}" for name, value in fields.items()
    )


def _why_untested(evaluated: AttackedModels, threat: ThreatModel, model: str) -> str:
    """Why a model is tested against no other in a threat model, in a sentence; empty if it is."""
    if model == evaluated.images.selected_by:
        return untested(model)
    count = len(evaluated.images_of(threat))
    found = len(evaluated.tried(threat, model))
    if found < count:
        return f"{model} was attacked on {found:,} of these {count:,} images: nothing is tested against it"
    if missing := [name for name in threat.attacks if name not in evaluated.attacked[model].results]:
        return f"{', '.join(missing)} did not run on {model}: nothing is tested against it"
    if not evaluated.attacked[model].is_trusted:
        return f"which images {model} withstood is not known: nothing is tested against it"
    return ""


def answers_of(evaluated: AttackedModels, threat: ThreatModel, model: str) -> Flags | None:
    """Whether a model classifies each of the attacked images correctly, before and after each attack.

    None for a model that is not tested, unless it chose the images.
    """
    if model != evaluated.images.selected_by and _why_untested(evaluated, threat, model):
        return None
    found = evaluated.tried(threat, model)
    broken = found["file"][~found["is_robust"]]
    return ~evaluated.images_of(threat)["file"].isin(broken).to_numpy()


def _groups_of_rows(images: pd.DataFrame) -> dict[str, str]:
    """The group of each of some rows of STUDY_IMAGES, by class index and digest; empty if no two share one."""
    if units_of(images) is None:
        return {}
    return dict(zip(_keys(images), images[GROUP], strict=True))


def robust_pairs(evaluated: AttackedModels, threat: ThreatModel) -> list[Pair]:
    """Pairs of models that were attacked on the same images, the more robust one first."""
    tested = [model for model in evaluated.measured(threat) if not _why_untested(evaluated, threat, model)]
    answers = [(model, found) for model in tested if (found := answers_of(evaluated, threat, model)) is not None]
    images = evaluated.images_of(threat)
    by_accuracy = sorted(answers, key=lambda each: -each[1].sum())
    return compare_pairwise(by_accuracy, _keys(images), images[GROUP].tolist())


def _keys(images: pd.DataFrame) -> list[str]:
    return [image_key(*each) for each in zip(images["class_index"], images["file_sha256"], strict=True)]


def attack_notes(evaluated: AttackedModels) -> list[Note]:
    """The notes of a table of robust accuracies."""
    return joined_notes({threat.name: _threat_notes(evaluated, threat) for threat in measured_threats(evaluated)})


def _threat_notes(evaluated: AttackedModels, threat: ThreatModel) -> list[Note]:
    models = evaluated.measured(threat)
    counts = {model: len(evaluated.tried(threat, model)) for model in models}
    return table_notes(
        threat_card(evaluated, threat),
        evaluated.images.facts,
        count=images_text(counts) if len(set(counts.values())) > 1 else "",
        intervals=DIFFERENCE_INTERVAL if robust_pairs(evaluated, threat) else "",
        tests=tests_note(robust_pairs(evaluated, threat)),
        limits=[
            *_threat_limits(evaluated),
            *(limit for model in models for limit in _limits_of_model(evaluated, threat, model)),
        ],
    )


def _threat_limits(evaluated: AttackedModels) -> list[str]:
    """What was not looked for on any model."""
    return [] if evaluated.request.warnings else [NO_PROBE]


def limit_lines(evaluated: AttackedModels) -> list[str]:
    """What was not looked for, and which of several models are not tested, in sentences for people."""
    found = [*_threat_limits(evaluated), *(note for notes in evaluated.notes.values() for note in notes)]
    for threat in measured_threats(evaluated):
        models = evaluated.measured(threat)
        found += [_why_untested(evaluated, threat, model) for model in models if len(models) > 1]
    return list(dict.fromkeys(filter(None, found)))


def _limits_of_model(evaluated: AttackedModels, threat: ThreatModel, model: str) -> list[str]:
    """The signs of gradient masking of a model, the attacks that did not run, and why it is not tested."""
    record = evaluated.warnings.get(model)
    signs = [] if record is None else [each.sign for each in record.warnings]
    found = [f"{model} has signs of gradient masking: {', '.join(signs)}"] if signs else []
    found += evaluated.notes.get(model, ())
    found += [f"{name} did not run on {of}" for name, of in evaluated.problems if of == model]
    return [*found, *filter(None, [_why_untested(evaluated, threat, model)])]


def _threat_content(evaluated: AttackedModels, threat: ThreatModel) -> dict[str, object]:
    """The robust accuracies in a threat model, as `cleanset compare` reads them."""
    card = threat_card(evaluated, threat)
    images = evaluated.images_of(threat)
    keys = _keys(images)
    models = []
    for model in card.models:
        measures = {name: evaluated.value(threat.name, model, name) for name in ROBUST_MEASURES}
        entry: dict[str, object] = {
            "model": model,
            "measures": {name: line.as_json() for name, line in measures.items() if line is not None},
            "chose_images": model == evaluated.images.selected_by,
            "notes": [*_threat_limits(evaluated), *_limits_of_model(evaluated, threat, model)],
        }
        answers = answers_of(evaluated, threat, model)
        if answers is not None:
            correct = int(answers.sum())
            entry |= {"images": len(answers), "correct": correct, "answers": answers_text(keys, answers)}
        models.append(entry)
    groups = _groups_of_rows(images)
    return {
        "comparability": card.as_json(),
        **({"groups": groups} if groups else {}),
        "image_keys": sorted(keys),
        "models": models,
    }


def _model(evaluated: AttackedModels, model: str) -> dict[str, object]:
    measured: dict[str, dict[str, object]] = {}
    for line in evaluated.lines:
        if line.model == model:
            measured.setdefault(line.change, {})[line.measure] = {"images": line.images, **line.as_json()}
    warned = evaluated.warnings.get(model)
    problems = evaluated.problems
    return {
        "model": model,
        "threat_models": [
            {
                "name": threat.name,
                "attacks": [name for name in threat.attacks if name in measured],
                **{measure: measured[threat.name].get(measure) for measure in ROBUST_MEASURES},
            }
            for threat in evaluated.params.threats
            if "robust_high" in measured.get(threat.name, {})
        ],
        "attacks": {
            name: {measure: each for measure, each in measured[name].items() if measure not in ROBUST_MEASURES}
            for name in evaluated.params.attacks
            if name in measured
        },
        "problems": {name: text for (name, of), text in problems.items() if of == model},
        "warnings": None if warned is None else warned.model_dump(mode="json", exclude=NOT_IN_RESULTS),
    }


NOT_IN_RESULTS: Any = {"role": True, "candidates": {"__all__": {"png"}}}
"""The keys of a record of warnings that attack_results.json leaves out: the PNGs are next to it."""
