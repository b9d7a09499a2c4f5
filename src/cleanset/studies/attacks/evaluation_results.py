"""What `attacks evaluate` found on any models, and the content of its attack_results.json, which `compare` reads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cleanset.evaluation.measures import Measure
from cleanset.measure.comparability import ComparabilityCard
from cleanset.measure.sets import EvaluationSet
from cleanset.studies.attacks.comparison import attack_card, misses_of
from cleanset.studies.attacks.results import ROBUST_MEASURES, Attacked, by_name
from cleanset.studies.attacks.study import AttackParams
from cleanset.studies.attacks.threats import ThreatModel
from cleanset.studies.attacks.warnings import WarningRecord
from cleanset.studies.robustness.images import images_sha256


@dataclass(frozen=True, slots=True, eq=False)
class AttackedModels:
    """The images, the params, the measures; by model results and warnings; by attack and model why it did not run.

    `straight_through`: the steps of the networks that gradients passed straight through.
    """

    images: EvaluationSet
    params: AttackParams
    models: Sequence[str]
    attacked: Mapping[str, Attacked]
    lines: Sequence[Measure]
    warnings: Mapping[str, WarningRecord]
    problems: Mapping[tuple[str, str], str]
    straight_through: Sequence[str] = ()

    def value(self, attack: str, model: str, measure: str) -> Measure | None:
        """A measure of an attack on a model, if it has one."""
        return by_name(self.lines).get((attack, model, measure))


def content_of(evaluated: AttackedModels) -> dict[str, object]:
    """The content of the JSON file of results; shares are between 0 and 1; an undefined one is None."""
    images = evaluated.images
    params = evaluated.params
    return {
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
    return [
        threat
        for threat in evaluated.params.threats
        if any(evaluated.value(threat.name, model, "robust_high") for model in evaluated.models)
    ]


def threat_card(evaluated: AttackedModels, threat: ThreatModel) -> ComparabilityCard:
    """The card of the robust accuracies in a threat model."""
    models = [model for model in evaluated.models if evaluated.value(threat.name, model, "robust_high")]
    images = evaluated.images
    return attack_card(images.rows, evaluated.params, threat, models, predicted=len(images.classes))


def _threat_content(evaluated: AttackedModels, threat: ThreatModel) -> dict[str, object]:
    """The robust accuracies in a threat model, as `cleanset compare` reads them."""
    images = evaluated.images
    card = threat_card(evaluated, threat)
    models = []
    for model in card.models:
        measures = {name: evaluated.value(threat.name, model, name) for name in ROBUST_MEASURES}
        entry: dict[str, object] = {
            "model": model,
            "measures": {name: line.as_json() for name, line in measures.items() if line is not None},
            "chose_images": model == images.selected_by,
            "notes": limits_of_model(evaluated, model),
        }
        misses = misses_of(threat, evaluated.attacked[model], images.rows)
        if misses is not None:
            count = len(images.rows)
            entry |= {"images": count, "correct": count - misses.total(), "misclassified": sorted(misses.elements())}
        models.append(entry)
    return {"comparability": card.as_json(), "models": models}


def limits_of_model(evaluated: AttackedModels, model: str) -> list[str]:
    """The signs of gradient masking of a model, and the attacks that did not run, in phrases."""
    record = evaluated.warnings.get(model)
    signs = [] if record is None else [each.sign for each in record.warnings]
    found = [f"{model} has signs of gradient masking: {', '.join(signs)}"] if signs else []
    found += [f"{name} did not run on {of}" for name, of in evaluated.problems if of == model]
    return found


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
"""The keys of a record of warnings that attack_results.json leaves out: the PNGs lie beside it."""
