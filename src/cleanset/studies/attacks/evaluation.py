"""The command `attacks evaluate`: any models attacked on any images, outside DVC, and its tables, also for a paper."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

from pydantic import TypeAdapter, ValidationError
from rich.console import Group, RenderableType
from rich.text import Text

from cleanset.edition.params import Score, read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.files import remove_abandoned, write_text
from cleanset.json_files import with_digest
from cleanset.measure.command import Wanted
from cleanset.measure.comparability import ComparabilityCard
from cleanset.measure.compare.result_files import ATTACK_RESULTS
from cleanset.measure.pairs import Pair
from cleanset.measure.rendering import PAGE, pairs_table, tested_cells, tests_note
from cleanset.measure.specs import CommandModel, Spec, is_same_model, parse_specs
from cleanset.measure.table import Cell, MeasureTable, cell
from cleanset.report.pages import page_environment
from cleanset.studies.attacks.base import InBall, L2Radius, LinfRadius, Norm
from cleanset.studies.attacks.checklist import Evidence, checklist
from cleanset.studies.attacks.comparison import attack_card, attack_notes, misses_of, robust_pairs
from cleanset.studies.attacks.page import TEMPLATES, baselines_of
from cleanset.studies.attacks.results import (
    MEASURE_COLUMNS,
    ROBUST_MEASURES,
    Attacked,
    AttackMeasure,
    by_name,
    measure_lines,
    probe_text,
)
from cleanset.studies.attacks.study import ATTACK_KINDS, GUESS, AttackParams, AttackRequest
from cleanset.studies.attacks.threats import ThreatModel
from cleanset.studies.attacks.warnings import WarningRecord, attacked_model
from cleanset.studies.robustness.image_sets import OpenedImages, open_images
from cleanset.studies.robustness.images import images_sha256
from cleanset.studies.robustness.measuring import write_csv
from cleanset.validation import check_known, first_problem, validate
from cleanset.waiting import announced
from cleanset.yaml_files import read_yaml

BLACK_BOX = [name for name, kind in ATTACK_KINDS.items() if kind.uses == "classes" and name != GUESS]
"""The attacks that need a model's classes alone."""


@dataclass(frozen=True, slots=True, eq=False)
class AttackedModels:
    """The images, the params, the measures; by model results and warnings; by attack and model why it did not run.

    `straight_through`: the steps of the networks that gradients passed straight through.
    """

    images: OpenedImages
    params: AttackParams
    models: Sequence[str]
    attacked: Mapping[str, Attacked]
    lines: Sequence[AttackMeasure]
    warnings: Mapping[str, WarningRecord]
    problems: Mapping[tuple[str, str], str]
    straight_through: Sequence[str] = ()

    def value(self, attack: str, model: str, measure: str) -> AttackMeasure | None:
        """A measure of an attack on a model, if it has one."""
        return by_name(self.lines).get((attack, model, measure))


DEFAULT_EPS = "4/255"
"""The radius of attacks that are named without one, in Linf."""


def attack_params(
    attacks: str, eps: str | None = None, images: int | None = None, norm: Norm | None = None
) -> AttackParams:
    """The params of a request: a file as a study's params.yaml, or names with commas between.

    By name every attack has its defaults, and those that may search the ball of `norm` (Linf) and `eps` (4/255; needed
    with L2) do so, around the image itself. Raises CleansetError naming the attack or the key, and for a ball beside a
    file, which has its own.
    """
    if attacks.endswith((".yaml", ".yml")):
        where = attacks
        for option, value in (("norm", norm), ("eps", eps)):
            if value is not None:
                raise CleansetError(f"--{option} {value}: goes with names of attacks; expected {option} in {where}")
        read = read_yaml(Path(attacks), "expected the params of attacks, as of a study")
        content: dict[str, object] = dict(read) if isinstance(read, dict) else {}
        if content.pop("wrapped", None):
            raise CleansetError(f"{where}: wrapped: models are named by --model here; leave it out")
    else:
        where = "--attacks"
        norm = norm or "Linf"
        if eps is None and norm == "L2":
            raise CleansetError("--norm L2: no radius; expected --eps, too, such as --eps 0.5")
        eps = DEFAULT_EPS if eps is None else eps
        try:
            TypeAdapter(L2Radius if norm == "L2" else LinfRadius).validate_python(eps)
        except ValidationError as error:
            raise CleansetError(f"--eps: {first_problem(error)}") from None
        named = _named_attacks(attacks, norm, eps)
        content = {"attacks": named, "probe": {"eps": eps} if norm == "Linf" else {}}
    if images is not None:
        content["images"] = images
    return validate(AttackParams, content, where)


def _named_attacks(attacks: str, norm: Norm, eps: str) -> dict[str, dict[str, object]]:
    found = dict[str, dict[str, object]]()
    for name in (each.strip() for each in attacks.split(",")):
        if name == GUESS:
            raise CleansetError(f"--attacks {GUESS}: reads the stored predictions of a study; name another attack")
        check_known("--attacks", name, [each for each in ATTACK_KINDS if each != GUESS])
        if name in found:
            raise CleansetError(f"--attacks {name}: given twice; expected each attack once")
        found[name] = _in_ball(name, norm, eps)
    return found


def _in_ball(name: str, norm: Norm, eps: str) -> dict[str, object]:
    """Parameters with which an attack searches the ball of `norm` and `eps` around the image, if it may.

    Raises CleansetError for an attack that has a ball of another norm only.
    """
    kind = ATTACK_KINDS[name]
    if issubclass(kind, InBall):
        return {"norm": norm, "eps": eps}
    ball = kind.model_validate({}).ball
    if "eps" not in kind.model_fields or ball is None or kind.minimizes_distance:
        return {}
    if ball.norm != norm:
        raise CleansetError(f"--norm {norm}: {name} searches in {ball.norm} only; expected --norm {ball.norm}")
    return {"eps": eps} | ({"after": None} if "after" in kind.model_fields else {})


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Opened:
    """What `attacks evaluate` is asked for: names are checked and all images read; no model is loaded."""

    specs: Sequence[Spec]
    others: Sequence[Spec]
    """The models that images are made on."""
    score: Score
    images: OpenedImages

    @classmethod
    def read(cls, edition: Edition, wanted: Wanted, request: AttackRequest, transfer_from: Sequence[str]) -> Self:
        """Check the names, and read all images. Raises CleansetError; imports no torch."""
        params = request.params
        specs, score, roles = replace(wanted, out=request.out).models_to_run(edition)
        others = _sources(edition, roles, specs, transfer_from)
        for spec in specs:
            check_attacks(spec, params)
        kinds = {attack.kind for attack in params.attacks.values()}
        if "transfer" in kinds:
            _check_sources(specs, others)
        images = open_images(str(wanted.name), edition, roles)
        if "boundary" in kinds and images.images["class_index"].nunique() < 2:
            raise CleansetError(
                f"boundary: all images of {wanted.name} are of one class; expected one of another class to start from: "
                "name other images, or leave boundary out"
            )
        return cls(specs=specs, others=others, score=score, images=images)


def run(
    edition: Edition, wanted: Wanted, request: AttackRequest, *, transfer_from: Sequence[str] = ()
) -> AttackedModels:
    """Attack the models; write the changed images, measures, warnings, results and page into the folder of the request.

    `transfer_from`: models to make images on, in place of the edition's. Names are checked and all images are read
    before torch is imported. Raises CleansetError with the remedy.
    """
    params = request.params
    out = request.out
    remove_abandoned(out)
    opened = Opened.read(edition, wanted, request, transfer_from)
    specs, others, images = opened.specs, opened.others, opened.images

    from cleanset.measure.run import check_model
    from cleanset.scoring.engine import settings_for
    from cleanset.studies.attacks.attacking import evaluate

    for spec in [*specs, *others]:
        check_model(spec)
    results, records, problems = evaluate(specs, others, images, settings_for(opened.score), request, images.classes)
    names = [spec.text for spec in specs]
    with announced("measuring the attacked models"):
        attacked = {
            model: attacked_model(
                {name: each for (name, of), each in results.items() if of == model}, records.get(model)
            )
            for model in names
        }
        lines = measure_lines(attacked, params.threats, params.resampling)
    evaluated = AttackedModels(
        images=images,
        params=params,
        models=names,
        attacked=attacked,
        lines=lines,
        warnings=records,
        problems=problems,
        straight_through=request.straight_through,
    )
    with announced("writing the results and the page of the attacks"):
        write_csv(out / "attack_measures.csv", MEASURE_COLUMNS, map(astuple, lines))
        write_text(out / ATTACK_RESULTS, json.dumps(with_digest(content_of(evaluated)), indent=2) + "\n")
        write_text(out / PAGE, page_of(evaluated))
    return evaluated


def check_attacks(spec: Spec, params: AttackParams) -> None:
    """Raise CleansetError for an attack that a command cannot be asked by."""
    for name, attack in params.attacks.items() if isinstance(spec, CommandModel) else ():
        if attack.uses != "classes":
            raise CleansetError(
                f"{name}: asks for {attack.uses}; a command answers with classes alone: expected some of "
                f"{', '.join(BLACK_BOX)}"
            )


def _sources(edition: Edition, roles: Sequence[str], specs: Sequence[Spec], given: Sequence[str]) -> list[Spec]:
    """The models that images are made on: those that are named, else the edition's, else those that are attacked."""
    models = read_params(edition.folder).models if roles else {}
    networks = {role: each for role, each in models.items() if not each.is_list}
    texts = [*given] or [*networks]
    if not texts:
        return [spec for spec in specs if not isinstance(spec, CommandModel)]
    return parse_specs(texts, None, networks, edition.folder, edition.folder if roles else None)


def _check_sources(specs: Sequence[Spec], others: Sequence[Spec]) -> None:
    """Raise CleansetError for a model that transfer has no other one for."""
    for spec in specs:
        if all(is_same_model(other, spec) for other in others):
            raise CleansetError(
                f"transfer: no other model to make images for {spec.text} on; expected --transfer-from, a second "
                "--model, or the --edition whose models it may take"
            )


def content_of(evaluated: AttackedModels) -> dict[str, object]:
    """The content of the JSON file of results; shares are between 0 and 1; an undefined one is None."""
    images = evaluated.images
    params = evaluated.params
    return {
        "set": {
            **images.facts.as_json(),
            "images": len(images.images),
            "images_sha256": images_sha256(images.images),
            "classes": int(images.images["class_index"].nunique()),
        },
        "families": {threat.name: _threat_content(evaluated, threat) for threat in _measured_threats(evaluated)},
        "attacks": {name: attack.model_dump() for name, attack in params.attacks.items()},
        "seed": params.seed,
        "search_precision": params.search_precision,
        "models": [_model(evaluated, model) for model in evaluated.models],
    }


def _measured_threats(evaluated: AttackedModels) -> list[ThreatModel]:
    """The threat models that some model has a measure of."""
    return [
        threat
        for threat in evaluated.params.threats
        if any(evaluated.value(threat.name, model, "robust_high") for model in evaluated.models)
    ]


def _card(evaluated: AttackedModels, threat: ThreatModel) -> ComparabilityCard:
    models = [model for model in evaluated.models if evaluated.value(threat.name, model, "robust_high")]
    images = evaluated.images
    return attack_card(images.images, evaluated.params, threat, models, predicted=len(images.classes))


def _threat_content(evaluated: AttackedModels, threat: ThreatModel) -> dict[str, object]:
    """The robust accuracies in a threat model, as `cleanset compare` reads them."""
    images = evaluated.images
    card = _card(evaluated, threat)
    models = []
    for model in card.models:
        measures = {name: evaluated.value(threat.name, model, name) for name in ROBUST_MEASURES}
        entry: dict[str, object] = {
            "model": model,
            "measures": {
                name: {"value": line.value if line.is_defined else None, "interval": line.interval}
                for name, line in measures.items()
                if line is not None
            },
            "chose_images": model == images.selected_by,
            "notes": _limits(evaluated, model),
        }
        misses = misses_of(threat, evaluated.attacked[model], images.images)
        if misses is not None:
            count = len(images.images)
            entry |= {"images": count, "correct": count - misses.total(), "misclassified": sorted(misses.elements())}
        models.append(entry)
    return {"comparability": card.as_json(), "models": models}


def _limits(evaluated: AttackedModels, model: str) -> list[str]:
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
            value = line.value if line.is_defined else None
            found = {"images": line.images, "value": value, "interval": line.interval}
            measured.setdefault(line.attack, {})[line.measure] = found
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

MEANING_OF_SHARES = (
    "robust: the share of the images that is classified correctly and that no attack of this threat model breaks, of "
    "images that each of them was tried on. ≤: an upper bound, as not every attack was tried on each of these images, "
    "or none followed the gradient. success: of the images that are classified correctly, those that the attack "
    "breaks. Intervals are Wilson's, 95 %. a to b: signs below tell that attacks cannot be trusted on the model; a has "
    "the images that withstood although attacks can be trusted, b all that withstood. distance: the mean that the "
    "attacks reached, in their norm. converged: the share of the images whose search more steps no longer changed."
)


def as_text(evaluated: AttackedModels) -> Group:
    """The images, a table of the robust accuracies, one of the attacks, and the warnings; fits into 80 columns."""
    parts: list[RenderableType] = [*map(Text, evaluated.images.about())]
    parts += [Text(), _robust(evaluated).in_terminal(), Text(), _attacks(evaluated).in_terminal()]
    parts += [Text(), Text(MEANING_OF_SHARES)]
    images = evaluated.images
    for threat in _measured_threats(evaluated):
        if tested := robust_pairs(threat, evaluated.attacked, images.images, images.selected_by):
            names = list(dict.fromkeys(name for pair in tested for name in (pair.first, pair.second)))
            listed = ", ".join(f"#{rank} {name}" for rank, name in enumerate(names, start=1))
            table = pairs_table(names, tested)
            parts += [Text(), Text(f"{threat.name}: {listed}"), table.in_terminal(), Text(table.caption)]
    for model in evaluated.warnings:
        parts.append(Text())
        parts += [Text(line.text, style="red" if line.is_problem else "") for line in _signs(evaluated, model)]
    parts += [Text(f"{model}: {name}: {text}", style="red") for (name, model), text in evaluated.problems.items()]
    return Group(*parts)


class SignLine(NamedTuple):
    """A line on the signs of gradient masking of a model."""

    text: str
    is_problem: bool = False


def _signs(evaluated: AttackedModels, model: str) -> Iterator[SignLine]:
    """What the probe found on a model, the signs that it saw, and those that cannot be told."""
    record = evaluated.warnings[model]
    error = _clean_error(evaluated, model)
    if error is not None and error.value == 1:
        text = f"{model}: classifies none of {error.images:,} images correctly, which says nothing about its strength"
        yield SignLine(f"{text}: check the order of its classes and its preprocessing", is_problem=True)
        return
    found = probe_text(evaluated.attacked[model], evaluated.params.threats)
    if found is not None:
        yield SignLine(f"{model}: {found}")
    if record.baselines is not None:
        for text in record.baselines.texts():
            yield SignLine(f"{model}: {text}")
    if not record.warnings and not record.not_told:
        yield SignLine(f"{model}: no sign that it only looks strong ({record.images} images)")
    for each in record.warnings:
        yield SignLine(f"{model}: {each.sign}: {each.text}", is_problem=True)
    for each in record.not_told:
        yield SignLine(f"{model}: {each.sign} cannot be told: {each.text}")


def page_of(evaluated: AttackedModels) -> str:
    """The page on a run: the tables, the signs, success in growing balls, and a checklist for each model."""
    images = evaluated.images
    measures = by_name(evaluated.lines)
    checklists = {
        model: checklist(
            Evidence(
                params=evaluated.params,
                model=model,
                measures=measures,
                record=evaluated.warnings.get(model),
                models=evaluated.models,
                straight_through=evaluated.straight_through,
            )
        )
        for model in evaluated.models
    }
    template = page_environment(images.classes, TEMPLATES).get_template("evaluation.html")
    return template.render(
        set_name=images.name,
        about=images.about(),
        robust=_robust(evaluated),
        attacks=_attacks(evaluated),
        meaning=MEANING_OF_SHARES,
        signs=[line.text for model in evaluated.warnings for line in _signs(evaluated, model)],
        baselines=baselines_of(evaluated.warnings.values()),
        checklists=checklists,
    )


def paper_table(evaluated: AttackedModels) -> MeasureTable:
    """The table of the robust accuracies for a paper."""
    robust = (
        "robust: correct, and broken by no attack of the threat model; ≤: an upper bound; a to b: bounds, of a model "
        "with a sign of gradient masking"
    )
    images = evaluated.images
    tested = {
        threat.name: robust_pairs(threat, evaluated.attacked, images.images, images.selected_by)
        for threat in _measured_threats(evaluated)
    }
    notes = attack_notes(
        {threat.name: _card(evaluated, threat) for threat in _measured_threats(evaluated)},
        images.facts,
        {name: tests_note(pairs) for name, pairs in tested.items()},
        [limit for model in evaluated.models for limit in _limits(evaluated, model)],
    )
    table = _robust(evaluated)
    if any(tested.values()):
        table = _with_tests(table, tested)
    return replace(table, caption=f"Robust accuracy in percent, with 95 % intervals; {robust}", notes=notes)


def _with_tests(table: MeasureTable, tested: Mapping[str, Sequence[Pair]]) -> MeasureTable:
    """The table with each model's difference from the most robust one in its threat model, and the p-value."""
    cells_of = {
        (name, pair.second): tested_cells(pair)
        for name, pairs in tested.items()
        for pair in pairs
        if pair.first == pairs[0].first
    }
    rows = []
    model = ""
    for texts, cells in table.rows:
        model = texts[0] or model
        # the second row of a threat model has an upper bound, which is not tested
        shown = cells_of.pop((texts[1], model), (Cell(), Cell()))
        rows.append((texts, [*cells, *shown]))
    return replace(table, titles=[*table.titles, "difference", "p"], rows=rows)


NO_ATTACK = "no attack"
"""In place of a threat model, for a model that nothing attacked."""


def _robust(evaluated: AttackedModels) -> MeasureTable:
    rows = []
    for model in evaluated.models:
        of_model = list(_robust_rows(evaluated, model))
        if not of_model:
            error = _clean_error(evaluated, model)
            images = Cell("" if error is None else f"{error.images:,}")
            clean = Cell() if error is None else Cell(cell(1 - error.value, digits=1).value)
            of_model = [(NO_ATTACK, [images, clean, Cell(), Cell()])]
        rows += [((model if place == 0 else "", name), cells) for place, (name, cells) in enumerate(of_model)]
    return MeasureTable(("model", "threat model"), ("images", "clean", "robust", "distance"), rows)


def _robust_rows(evaluated: AttackedModels, model: str) -> Iterator[tuple[str, list[Cell]]]:
    for threat in evaluated.params.threats:
        clean, robust, low, high, at_most, reached = (
            evaluated.value(threat.name, model, measure) for measure in ROBUST_MEASURES
        )
        if clean is None or high is None:
            continue
        if robust is not None and robust.is_defined:
            shown = _share(robust)
        elif low is not None and low.is_defined:
            shown = Cell(f"{_share(low).value} to {_share(high).value}")
        else:
            shown = Cell(f"≤ {_share(high).value}")
        yield threat.name, [Cell(f"{clean.images:,}"), Cell(_share(clean).value), shown, _distance(reached)]
        if at_most is not None:
            yield threat.name, [Cell(f"{at_most.images:,}"), Cell(), Cell(f"≤ {_share(at_most).value}"), Cell()]


def _clean_error(evaluated: AttackedModels, model: str) -> AttackMeasure | None:
    """The error on the images themselves, of the attack that was tried on most of them."""
    found = [evaluated.value(name, model, "clean_error") for name in evaluated.params.attacks]
    return max((each for each in found if each is not None), key=lambda each: each.images, default=None)


def _attacks(evaluated: AttackedModels) -> MeasureTable:
    rows = []
    for model in evaluated.models:
        for place, attack in enumerate(evaluated.params.attacks):
            names = ("success", "reached", "converged", "queries")
            success, reached, converged, queries = (evaluated.value(attack, model, measure) for measure in names)
            counts = (None, None) if queries is None else (queries.images, queries.value)
            images, asked = (Cell("" if each is None else f"{each:,.0f}") for each in counts)
            shown = [images, _share(success), _distance(reached), Cell(_share(converged).value), asked]
            rows.append(((model if place == 0 else "", attack), shown))
    return MeasureTable(("model", "attack"), ("images", "success", "distance", "converged", "queries"), rows)


def _distance(line: AttackMeasure | None) -> Cell:
    return Cell() if line is None else cell(line.value, factor=1, digits=4)


def _share(line: AttackMeasure | None) -> Cell:
    return Cell() if line is None else cell(line.value, line.interval, digits=1)
