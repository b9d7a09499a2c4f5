"""What `cleanset compare` shows of results: in a terminal of 80 columns, for papers, and as JSON."""

import json
from collections.abc import Iterator
from dataclasses import asdict

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from cleanset.evaluation.compare.result_files import ECE
from cleanset.evaluation.compare.results import ComparedResults
from cleanset.evaluation.measures import NOT_MEASURED
from cleanset.evaluation.notes import NOTE_NAMES, Note
from cleanset.evaluation.rendering import DIFFERENCE_INTERVAL, for_paper, pairs_table, tests_note
from cleanset.evaluation.table import MeasureTable, measure_cell
from cleanset.plumbing.json_files import JsonObject
from cleanset.statistics.formats import counted


def as_text(compared: ComparedResults) -> Group:
    """The table, the tests, the cards, results left out, and the notices; fits into 80 columns."""
    parts: list[RenderableType] = [_table(compared).in_terminal("\n"), Text()]
    if tested := compared.pairs:
        table = pairs_table(compared.names, tested)
        parts += [table.in_terminal(), Text(table.caption), Text()]
    parts += map(Text, _cards(compared))
    texts = dict(compared.notes)
    notes = [*(f"{name}: {texts[name]}" for name in ("selection", "limits") if name in texts), *compared.notices]
    titled = (("Not comparable, and not in the table:", _left_out(compared)), ("Notes:", notes))
    for title, lines in titled:
        if lines:
            parts += [Text(), Text(title, style="bold"), *(Padding(Text(line), (0, 0, 0, 2)) for line in lines)]
    return Group(*parts)


def _cards(compared: ComparedResults) -> Iterator[str]:
    for name, (_, card) in compared.cards.items():
        size = f"{counted(card.images.count, 'image')} of {counted(card.classes.of_images, 'class')}"
        yield f"{name}: card {card.short_digest}, {size}; intervals: {card.interval.text}"


def ranking_for_paper(compared: ComparedResults) -> MeasureTable:
    """The table for a paper, with the tests, results left out and notices in its notes."""
    tested = compared.pairs
    texts = dict(compared.notes)
    left_out = [f"Left out as not comparable: {line}." for line in _left_out(compared)]
    notices = [f"{notice}." for notice in compared.notices]
    texts["limits"] = " ".join(filter(None, [texts.get("limits", ""), *left_out, *notices]))
    texts["tests"] = tests_note(tested)
    if tested:
        texts["intervals"] += f"; {DIFFERENCE_INTERVAL}"
    notes = [Note(name, texts[name]) for name in NOTE_NAMES if texts.get(name)]
    return for_paper(_table(compared), tested, "Shares in percent", notes)


def _left_out(compared: ComparedResults) -> list[str]:
    """The results that are not comparable, each with the field that differs."""
    return [
        f"{each.result}{'' if each.field == 'measured' else f', {each.measured}'}: {each.field} {each.value}, "
        f"but {each.its_value} in {each.compared_with}"
        for each in compared.left_out
    ]


def _table(compared: ComparedResults) -> MeasureTable:
    """A row for each model; below its name the preprocessing and the precision."""
    rows = []
    for rank, (name, row) in enumerate(zip(compared.names, compared.rows, strict=True), start=1):
        facts = row.facts.preprocessing or "predictions made elsewhere", row.facts.precision
        label = f"{name}\n  {', '.join(filter(None, facts))}"
        cells = []
        for measured, each in compared.columns:
            found = row.values.get((measured, each.name), NOT_MEASURED)
            scale: JsonObject = (
                {"unit": " %"} if each.is_share else {"factor": 1, "digits": 2 if each.name == ECE else 4}
            )
            cells.append(measure_cell(found, **scale))
        rows.append(((str(rank), label), cells))
    return MeasureTable(("#", "model"), [headline.title for _, headline in compared.columns], rows)


def as_json(compared: ComparedResults) -> str:
    """The comparison for programs; shares are between 0 and 1."""
    rows = []
    for row in compared.rows:
        measures: dict[str, JsonObject] = {}
        for (name, measure), each in row.values.items():
            measures.setdefault(name, {})[measure] = each.as_json()
        rows.append(
            {"model": row.model, "result": row.result, **row.facts.model_dump(mode="json"), "measures": measures}
        )
    content = {
        "kind": "results",
        "comparable": not compared.left_out,
        "cards": {name: {"digest": card.digest, "from": where} for name, (where, card) in compared.cards.items()},
        "notes": dict(compared.notes),
        "rows": rows,
        "pairs": [pair.as_json() for pair in compared.pairs],
        "not_comparable": [asdict(each) for each in compared.left_out],
        "notices": list(compared.notices),
    }
    return json.dumps(content, indent=2)
