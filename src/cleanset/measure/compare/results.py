"""Results of models side by side: one table of what is comparable, and why the rest is not in it."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cleanset.errors import CleansetError
from cleanset.measure.comparability import CardModel, ComparabilityCard, first_difference
from cleanset.measure.compare.result_files import (
    EXPECTED,
    HEADLINES,
    Headline,
    MeasuredValue,
    ResultFile,
    is_result,
    read_results,
    result_file,
)
from cleanset.measure.terminal import MODEL, NUMBER, plain_table
from cleanset.validation import join_names

MIN_RESULTS = 2


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A model in a result file: its part of the card, and its values by what is measured and measure."""

    result: str
    model: str
    facts: CardModel
    values: dict[tuple[str, str], MeasuredValue]


class NotComparable(NamedTuple):
    """A measurement that is left out: the first field that differs from the card of another result, and both values."""

    result: str
    measured: str
    field: str
    value: str
    compared_with: str
    its_value: str


@dataclass(frozen=True, slots=True)
class ComparedResults:
    """The rows of the table, the best first; the card of each measurement and the result that gave it; the rest."""

    rows: Sequence[ModelRow]
    cards: dict[str, tuple[str, ComparabilityCard]]
    left_out: Sequence[NotComparable]
    notices: Sequence[str]

    @property
    def columns(self) -> list[tuple[str, Headline]]:
        """The measures that a row has, in their order."""
        had = {key for row in self.rows for key, value in row.values.items() if value.value is not None}
        return [(name, each) for name in self.cards for each in HEADLINES[name] if (name, each.name) in had]


def are_results(paths: Sequence[Path]) -> bool:
    """Whether these are result files. Raises CleansetError where only some of them are."""
    others = [path for path in paths if not is_result(path)]
    if others and len(others) < len(paths):
        raise CleansetError(f"{others[0]}: not a result file; expected {EXPECTED}, as the others are")
    return not others


def run(paths: Sequence[Path]) -> ComparedResults:
    """Compare result files; raises CleansetError for fewer than two, and for one that cannot be read."""
    if len(paths) < MIN_RESULTS:
        raise CleansetError(f"compare: {len(paths)} result; expected two or more")
    for place, path in enumerate(paths):
        if result_file(path).resolve() in {result_file(other).resolve() for other in paths[:place]}:
            raise CleansetError(f"{path}: given twice; expected each result once")
    return compare_results([read_results(path) for path in paths])


def compare_results(results: Sequence[ResultFile]) -> ComparedResults:
    """Compare with the first result; what it does not measure, with the first of the others that do."""
    cards: dict[str, tuple[str, ComparabilityCard]] = {}
    rows: list[ModelRow] = []
    left_out: list[NotComparable] = []
    for result in results:
        if cards and not cards.keys() & result.measured.keys():
            found, expected = (", ".join(names) for names in (result.measured, cards))
            left_out.append(NotComparable(result.name, found, "measured", found, results[0].name, expected))
            continue
        of_file: dict[str, ModelRow] = {}
        for name, measured in result.measured.items():
            other, card = cards.setdefault(name, (result.name, measured.card))
            if (difference := first_difference(card, measured.card)) is not None:
                field, expected, found = difference
                left_out.append(NotComparable(result.name, name, field, found, other, expected))
                continue
            for model, values in measured.models.items():
                row = of_file.setdefault(model, ModelRow(result.name, model, measured.card.models[model], {}))
                row.values.update({(name, measure): value for measure, value in values.items()})
        rows += of_file.values()
    compared = ComparedResults(rows, cards, left_out, list(_notices(rows)))
    if compared.columns:
        rows.sort(key=partial(_rank, *compared.columns[0]))
    return compared


def _rank(measured: str, headline: Headline, row: ModelRow) -> tuple[bool, float]:
    """The sort key of a row: the best first, those without a value last."""
    found = row.values.get((measured, headline.name), MeasuredValue(None)).value
    return found is None, 0.0 if found is None else -found if headline.higher_is_better else found


def _notices(rows: Sequence[ModelRow]) -> Iterator[str]:
    """Yield what a reader of the ranking has to know, a sentence each."""
    yield from _repeated(rows)
    elsewhere = [_where(row) for row in rows if row.facts.preprocessing_sha256 is None]
    if elsewhere:
        yield f"predictions made elsewhere, by a preprocessing that is not known: {join_names(elsewhere)}"
    if precisions := _grouped(((row.facts.precision, _where(row)) for row in rows), " for "):
        yield f"precisions differ: {precisions}"
    for library in sorted({name for row in rows for name in row.facts.versions}):
        if versions := _grouped(((row.facts.versions.get(library), row.result) for row in rows), " in "):
            yield f"versions of {library} differ: {versions}"


def _repeated(rows: Sequence[ModelRow]) -> Iterator[str]:
    """Yield a sentence for each model whose name or weights an earlier row has."""
    for place, row in enumerate(rows):
        weights, earlier = row.facts.weights_sha256, rows[:place]
        same_name = next((other for other in earlier if other.model == row.model), None)
        same_weights = next((other for other in earlier if weights and other.facts.weights_sha256 == weights), None)
        if same_name is not None:
            yield f"{row.model} is in {same_name.result} and in {row.result}, {_between(same_name, row)}"
        elif same_weights is not None:
            yield f"{_where(same_weights)} and {_where(row)} have the same weights, {_between(same_weights, row)}"


def _grouped(pairs: Iterable[tuple[str | None, str]], word: str) -> str | None:
    """The names of each value, or None where no two values differ; those without a value are left out."""
    found: dict[str, dict[str, None]] = {}
    for value, name in pairs:
        if value is not None:
            found.setdefault(value, {})[name] = None
    return "; ".join(f"{value}{word}{join_names(names)}" for value, names in found.items()) if len(found) > 1 else None


def _between(other: ModelRow, row: ModelRow) -> str:
    """The difference between two rows of one name or of the same weights."""
    for field, title in (
        ("weights_sha256", "other weights"),
        ("preprocessing", "another preprocessing"),
        ("preprocessing_sha256", "a preprocessing of the same name with other pixels"),
        ("precision", "another precision"),
    ):
        found = getattr(other.facts, field), getattr(row.facts, field)
        if found[0] != found[1]:
            values = (
                "not known" if value is None else f"{value[:12]}…" if len(value) == 64 else value for value in found
            )
            return f"with {title}: {' and '.join(values)}; their ranks depend on it"
    same = all(row.values[key] == other.values[key] for key in row.values.keys() & other.values.keys())
    return "with the same preprocessing" + (" and the same numbers" if same else ", but with other numbers")


def _short(value: str | None) -> str:
    return "not known" if value is None else f"{value[:12]}…" if len(value) == 64 else value


def _where(row: ModelRow) -> str:
    return f"{row.model} ({row.result})"


def as_text(compared: ComparedResults) -> Group:
    """The table, the cards, what is not comparable, and the notices; fits into 80 columns."""
    parts: list[RenderableType] = [_table(compared), Text()]
    for name, (_, card) in compared.cards.items():
        classes, interval = card.classes.of_images, card.interval
        counted = f"{card.images.count:,} images of {classes:,} {'class' if classes == 1 else 'classes'}"
        draws = f", {interval.draws:,} draws" if interval.draws is not None else ""
        kind = f"{100 * interval.level:g} %, {interval.kind}{draws}"
        parts.append(Text(f"{name}: card {card.short_digest}, {counted}; intervals: {kind}"))
    left_out = [
        f"{each.result}{'' if each.field == 'measured' else f', {each.measured}'}: {each.field} {each.value}, "
        f"but {each.its_value} in {each.compared_with}"
        for each in compared.left_out
    ]
    titled = (("Not comparable, and not in the table:", left_out), ("What else to know:", compared.notices))
    for title, lines in titled:
        if lines:
            parts += [Text(), Text(title, style="bold"), *(Padding(Text(line), (0, 0, 0, 2)) for line in lines)]
    return Group(*parts)


def _table(compared: ComparedResults) -> Table:
    """A row for each model; below its name the preprocessing and the precision, below a value its interval."""
    number = NUMBER | {"vertical": "top"}
    several = len({row.model for row in compared.rows}) < len(compared.rows)
    rows = []
    for rank, row in enumerate(compared.rows, start=1):
        facts = row.facts.preprocessing or "predictions made elsewhere", row.facts.precision
        lines = [_where(row) if several else row.model, "  " + ", ".join(filter(None, facts))]
        cells = (_cell(row.values.get((name, each.name)), each) for name, each in compared.columns)
        rows.append((str(rank), Text("\n".join(lines)), *cells))
    headers = [(headline.title, number) for _, headline in compared.columns]
    return plain_table([("#", number), ("model", MODEL), *headers], rows, gap=2)


def _cell(found: MeasuredValue | None, headline: Headline) -> str:
    if found is None or found.value is None:
        return "–"
    factor, digits, unit = (100, 2, " %") if headline.is_share else (1, 4, "")
    value = f"{factor * found.value:.{digits}f}{unit}"
    if found.interval is None:
        return value
    return f"{value}\n{' – '.join(f'{factor * end:.{digits}f}' for end in found.interval)}"


def as_json(compared: ComparedResults) -> str:
    """The comparison for programs; shares are between 0 and 1."""
    rows = []
    for row in compared.rows:
        measures: dict[str, dict[str, Any]] = {}
        for (name, measure), each in row.values.items():
            measures.setdefault(name, {})[measure] = each._asdict()
        rows.append(
            {"model": row.model, "result": row.result, **row.facts.model_dump(mode="json"), "measures": measures}
        )
    content = {
        "kind": "results",
        "comparable": not compared.left_out,
        "cards": {name: {"digest": card.digest, "from": where} for name, (where, card) in compared.cards.items()},
        "rows": rows,
        "not_comparable": [each._asdict() for each in compared.left_out],
        "notices": list(compared.notices),
    }
    return json.dumps(content, indent=2)
