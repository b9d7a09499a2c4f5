"""Results of models side by side: one table of what is comparable, and why the rest is not in it."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

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
from cleanset.validation import join_names

MIN_RESULTS = 2


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A model in a result file: its part of the card, and its values by what is measured and measure."""

    result: str
    model: str
    facts: CardModel
    values: dict[tuple[str, str], MeasuredValue]


@dataclass(frozen=True, slots=True)
class NotComparable:
    """A measurement that is left out: the first field that differs from the card of another result, and both values."""

    result: str
    measured: str
    field: str
    found: str
    expected: str
    other: str


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
            left_out.append(NotComparable(result.name, found, "measured", found, expected, results[0].name))
            continue
        of_file: dict[str, ModelRow] = {}
        for name, measured in result.measured.items():
            other, card = cards.setdefault(name, (result.name, measured.card))
            if (difference := first_difference(card, measured.card)) is not None:
                field, expected, found = difference
                left_out.append(NotComparable(result.name, name, field, found, expected, other))
                continue
            for model, values in measured.models.items():
                row = of_file.setdefault(model, ModelRow(result.name, model, measured.model(model), {}))
                row.values.update({(name, measure): value for measure, value in values.items()})
        rows += of_file.values()
    unranked = ComparedResults(rows, cards, left_out, list(_notices(rows)))
    columns = unranked.columns
    ranked = sorted(rows, key=partial(_rank, *columns[0])) if columns else rows
    return ComparedResults(ranked, cards, left_out, unranked.notices)


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
    precisions = _grouped((row.facts.precision, _where(row)) for row in rows)
    if len(precisions) > 1:
        yield f"precisions differ: {_listed(precisions, ' for ')}"
    for library in sorted({name for row in rows for name in row.facts.versions}):
        versions = _grouped((row.facts.versions.get(library), row.result) for row in rows)
        if len(versions) > 1:
            yield f"versions of {library} differ: {_listed(versions, ' in ')}"


def _repeated(rows: Sequence[ModelRow]) -> Iterator[str]:
    """Yield a sentence for each model whose name or weights an earlier row has."""
    by_name: dict[str, ModelRow] = {}
    by_weights: dict[str, ModelRow] = {}
    for row in rows:
        weights = row.facts.weights_sha256
        if (other := by_name.get(row.model)) is not None:
            yield f"{row.model} is in {other.result} and in {row.result}, {_between(other, row)}"
        elif weights is not None and (other := by_weights.get(weights)) is not None:
            yield f"{_where(other)} and {_where(row)} have the same weights, {_between(other, row)}"
        by_name.setdefault(row.model, row)
        if weights is not None:
            by_weights.setdefault(weights, row)


def _grouped(pairs: Iterable[tuple[str | None, str]]) -> dict[str, list[str]]:
    """The names by value, each once; those without a value are left out."""
    found: dict[str, dict[str, None]] = {}
    for value, name in pairs:
        if value is not None:
            found.setdefault(value, {})[name] = None
    return {value: list(names) for value, names in found.items()}


def _listed(groups: Mapping[str, Sequence[str]], word: str) -> str:
    return "; ".join(f"{value}{word}{join_names(names)}" for value, names in groups.items())


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
            values = (_short(value) for value in found)
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
        classes = card.classes.of_images
        counted = f"{card.images.count:,} images of {classes:,} {'class' if classes == 1 else 'classes'}"
        parts.append(Text(f"{name}: card {card.short_digest}, {counted}; intervals: {_interval(card)}"))
    if compared.left_out:
        parts += [Text(), Text("Not comparable, and not in the table:", style="bold")]
        parts += [_indented(_left_out(each)) for each in compared.left_out]
    if compared.notices:
        parts += [Text(), Text("What else to know:", style="bold")]
        parts += map(_indented, compared.notices)
    return Group(*parts)


def _indented(line: str) -> Padding:
    return Padding(Text(line), (0, 0, 0, 2))


def _interval(card: ComparabilityCard) -> str:
    draws = f", {card.interval.draws:,} draws" if card.interval.draws is not None else ""
    return f"{100 * card.interval.level:g} %, {card.interval.kind}{draws}"


def _left_out(each: NotComparable) -> str:
    part = "" if each.field == "measured" else f", {each.measured}"
    return f"{each.result}{part}: {each.field} {each.found}, but {each.expected} in {each.other}"


def _table(compared: ComparedResults) -> Table:
    """A row for each model; below its name the preprocessing and the precision, below a value its interval."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("#", justify="right", no_wrap=True, vertical="top")
    table.add_column("model", overflow="fold", min_width=16, vertical="top")
    for _, headline in compared.columns:
        table.add_column(headline.title, justify="right", no_wrap=True, vertical="top")
    several = len({row.model for row in compared.rows}) < len(compared.rows)
    for rank, row in enumerate(compared.rows, start=1):
        facts = row.facts.preprocessing or "predictions made elsewhere", row.facts.precision
        lines = [_where(row) if several else row.model, "  " + ", ".join(filter(None, facts))]
        cells = (_cell(row.values.get((name, each.name)), each) for name, each in compared.columns)
        table.add_row(str(rank), Text("\n".join(lines)), *cells)
    return table


def _cell(found: MeasuredValue | None, headline: Headline) -> str:
    if found is None or found.value is None:
        return "–"
    factor, digits, unit = (100, 2, " %") if headline.is_share else (1, 4, "")
    value = f"{factor * found.value:.{digits}f}{unit}"
    if found.interval is None:
        return value
    low, high = (f"{factor * end:.{digits}f}" for end in found.interval)
    return f"{value}\n{low} – {high}"


def content(compared: ComparedResults) -> dict[str, Any]:
    """The content of the JSON; shares are between 0 and 1."""
    return {
        "kind": "results",
        "comparable": not compared.left_out,
        "cards": {name: {"digest": card.digest, "from": where} for name, (where, card) in compared.cards.items()},
        "rows": [
            {
                "model": row.model,
                "result": row.result,
                **row.facts.model_dump(mode="json"),
                "measures": _measures(row),
            }
            for row in compared.rows
        ],
        "not_comparable": [
            {
                "result": each.result,
                "measured": each.measured,
                "field": each.field,
                "value": each.found,
                "compared_with": each.other,
                "its_value": each.expected,
            }
            for each in compared.left_out
        ],
        "notices": list(compared.notices),
    }


def _measures(row: ModelRow) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for (name, measure), each in row.values.items():
        found.setdefault(name, {})[measure] = {"value": each.value, "interval": each.interval and list(each.interval)}
    return found


def as_json(compared: ComparedResults) -> str:
    """The comparison for programs."""
    return json.dumps(content(compared), indent=2)
