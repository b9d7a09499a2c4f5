"""The tables of `attacks evaluate`, with its lines on signs: in a terminal of 80 columns, on a page, and for papers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from rich.console import Group, RenderableType
from rich.text import Text

from cleanset.evaluation.measures import Measure
from cleanset.evaluation.pairs import Pair
from cleanset.evaluation.rendering import pairs_table, tested_cells
from cleanset.evaluation.table import Cell, MeasureTable, cell, measure_cell
from cleanset.report.pages import page_environment
from cleanset.statistics.formats import decimal
from cleanset.studies.attacks.checklist import Evidence, checklist
from cleanset.studies.attacks.evaluation_results import (
    AttackedModels,
    attack_notes,
    limit_lines,
    measured_threats,
    robust_pairs,
)
from cleanset.studies.attacks.page import TEMPLATES, baselines_of
from cleanset.studies.attacks.results import ROBUST_MEASURES, by_name, probe_text

MEANING_OF_SHARES = (
    "robust: the share of the images that is classified correctly and that no attack of this threat model breaks, of "
    "images that each of them was tried on. ≤: an upper bound, as not every attack was tried on each of these images, "
    "or none followed the gradient. success: of the images that are classified correctly, those that the attack "
    "breaks. Intervals are Wilson's, 95 %. a to b: signs below show that attacks cannot be trusted on the model; a has "
    "the images that withstood although attacks can be trusted, b all that withstood. distance: the mean that the "
    "attacks reached, in their norm. converged: the share of the images whose search more steps no longer changed."
)


def as_text(evaluated: AttackedModels) -> Group:
    """The images, a table of the robust accuracies, one of the attacks, and the warnings; fits into 80 columns."""
    images = evaluated.images
    size, *notes = images.about()
    parts: list[RenderableType] = [*map(Text, (f"{images.name}: {size}", *notes))]
    parts += [Text(), _robust(evaluated).in_terminal(), Text(), _attacks(evaluated).in_terminal()]
    parts += [Text(), Text(MEANING_OF_SHARES)]
    for threat in measured_threats(evaluated):
        if tested := robust_pairs(evaluated, threat):
            names = list(dict.fromkeys(name for pair in tested for name in (pair.model, pair.other)))
            listed = ", ".join(f"#{rank} {name}" for rank, name in enumerate(names, start=1))
            table = pairs_table(names, tested)
            parts += [Text(), Text(f"{threat.name}: {listed}"), table.in_terminal(), Text(table.caption)]
    if limits := limit_lines(evaluated):
        parts += [Text(), *(Text(f"{limit}.") for limit in limits)]
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
    """What the probe found on a model, the signs that it saw, and those that are undecided."""
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
        yield SignLine(f"{model}: {each.sign} is undecided: {each.text}")


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
                straight_through=evaluated.request.straight_through,
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
        signs=[
            *limit_lines(evaluated),
            *(each.text for model in evaluated.warnings for each in _signs(evaluated, model)),
        ],
        baselines=baselines_of(evaluated.warnings.values()),
        checklists=checklists,
    )


def paper_table(evaluated: AttackedModels) -> MeasureTable:
    """The table of the robust accuracies for a paper."""
    robust = (
        "robust: correct, and broken by no attack of the threat model; ≤: an upper bound; a to b: bounds, of a model "
        "with a sign of gradient masking"
    )
    tested = {threat.name: robust_pairs(evaluated, threat) for threat in measured_threats(evaluated)}
    table = _robust(evaluated)
    if any(tested.values()):
        table = _with_tests(table, tested)
    return replace(
        table, caption=f"Robust accuracy in percent, with 95 % intervals; {robust}", notes=attack_notes(evaluated)
    )


def _with_tests(table: MeasureTable, tested: Mapping[str, Sequence[Pair]]) -> MeasureTable:
    """The table with each model's difference from the most robust one in its threat model, and the p-value."""
    cells_of = {
        (name, pair.other): tested_cells(pair)
        for name, pairs in tested.items()
        for pair in pairs
        if pair.model == pairs[0].model
    }
    rows = []
    model = ""
    for texts, cells in table.rows:
        model = texts[0] or model
        # the second row of a threat model has an upper bound, which is not tested
        shown = cells_of.pop((texts[1], model), [Cell(problem=NOT_COMPARED)] * 2)
        rows.append((texts, [*cells, *shown]))
    return replace(table, titles=[*table.titles, "difference", "p"], rows=rows)


NOT_COMPARED = "the others are compared with it, or it is not tested"
"""Reason for a missing difference."""
NO_ATTACK = "no attack"
"""In place of a threat model, for a model that nothing attacked."""


MISSING = Cell(problem="no attack ran")
OF_FEWER = Cell(problem="of the images that all attacks were tried on, in the row above")


def _robust(evaluated: AttackedModels) -> MeasureTable:
    rows = []
    for model in evaluated.models:
        of_model = list(_robust_rows(evaluated, model))
        if not of_model:
            error = _clean_error(evaluated, model)
            found = [MISSING] * 2 if error is None else [Cell(f"{error.images:,}"), cell(1 - error.value, digits=1)]
            of_model = [(NO_ATTACK, [*found, MISSING, MISSING])]
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
            shown = measure_cell(robust, digits=1)
        elif low is not None and low.is_defined:
            shown = Cell(f"{_percent(low).value} to {_percent(high).value}")
        else:
            shown = Cell(f"≤ {_percent(high).value}")
        yield threat.name, [Cell(f"{clean.images:,}"), _percent(clean), shown, _distance(reached)]
        if at_most is not None:
            bound = Cell(f"≤ {_percent(at_most).value}")
            yield threat.name, [Cell(f"{at_most.images:,}"), OF_FEWER, bound, OF_FEWER]


def _clean_error(evaluated: AttackedModels, model: str) -> Measure | None:
    """The error on the images themselves, of the attack that was tried on most of them."""
    found = [evaluated.value(name, model, "clean_error") for name in evaluated.params.attacks]
    return max((each for each in found if each is not None), key=lambda each: each.images, default=None)


def _attacks(evaluated: AttackedModels) -> MeasureTable:
    rows = []
    for model in evaluated.models:
        for place, attack in enumerate(evaluated.params.attacks):
            names = ("success", "reached", "converged", "queries")
            success, reached, converged, queries = (evaluated.value(attack, model, measure) for measure in names)
            shown = [MISSING] * 5
            if success is not None and queries is not None:
                images, asked = (Cell(decimal(each, 0, grouped=True)) for each in (queries.images, queries.value))
                shown = [images, measure_cell(success, digits=1), _distance(reached), _percent(converged), asked]
            rows.append(((model if place == 0 else "", attack), shown))
    return MeasureTable(("model", "attack"), ("images", "success", "distance", "converged", "queries"), rows)


def _percent(line: Measure | None) -> Cell:
    """A share without its interval."""
    return MISSING if line is None else cell(line.value, digits=1, problem=line.problem)


def _distance(line: Measure | None) -> Cell:
    """A distance without its interval."""
    return MISSING if line is None else cell(line.value, factor=1, digits=4, problem=line.problem)
