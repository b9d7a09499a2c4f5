"""Results of models, as `cleanset evaluate` and `cleanset robustness evaluate` write them: read, checked, compared.

A comparison is one table of comparable results, with the reasons for leaving out the rest.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from cleanset.errors import CleansetError, NotComparableError
from cleanset.files import read_bytes
from cleanset.json_files import JsonMapping, JsonObject, check_digest, parse_json
from cleanset.measure.comparability import CLEAN_ACCURACY, CardModel, ComparabilityCard, first_difference
from cleanset.measure.measured_models import not_deterministic
from cleanset.measure.notes import NOTE_NAMES, MeasuredSet, Note, joined_notes, table_notes
from cleanset.measure.pairs import Pair, compare_pairwise
from cleanset.measure.rendering import for_paper, pairs_table, tests_note
from cleanset.measure.specs import file_stems
from cleanset.measure.table import MeasureTable, cell
from cleanset.validation import first_problem, join_names, shown
from cleanset.yaml_files import data_beside

RESULTS = "results.json"
"""File of results in a folder that `--out` names."""
ATTACK_RESULTS = "attack_results.json"
"""File of the results of attacks there."""
# the expected calibration error, which a file has under `calibration`
ECE = "ece"
# characters of a text in a result file; a notice has some 300
MAX_RESULT_TEXT = 1000
EXPECTED_RESULTS = "the JSON that cleanset evaluate, robustness evaluate or attacks evaluate wrote"


@dataclass(frozen=True, slots=True)
class Headline:
    """A measure that results are compared by: its name in the file and its title.

    `is_share`: shown in percent. `higher_is_better`: the order of a ranking. `is_bounded`: from 0 to 1; not so for
    measures relative to a reference model, which exceed 1 where a model is worse than it.
    """

    name: str
    title: str
    is_share: bool = True
    higher_is_better: bool = False
    is_bounded: bool = True


HEADLINES = TypeAdapter(dict[str, tuple[Headline, ...]]).validate_python(data_beside(__file__, "headlines.yaml"))
"""The measures that a table of results has, by measurement."""
ATTACKS = "attacks in"
"""The measurements of robust accuracy begin so, before the name of the threat model."""


def headlines_of(measured: str) -> tuple[Headline, ...]:
    """The measures of a measurement."""
    return HEADLINES[_kind(measured)]


def _kind(measured: str) -> str:
    return ATTACKS if measured.startswith(f"{ATTACKS} ") else measured


# largest difference between an accuracy and the share of its counts: a file may hold rounded numbers
COUNTS_TOLERANCE = 1e-6


class MeasuredValue(NamedTuple):
    """A measure with the ends of its interval, if it has one; a missing value is None."""

    value: float | None
    interval: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class MeasuredModels:
    """The card of one kind of measurement in a result file, and the headline measures of each model by name.

    `misses`: the misclassified images by model that has them and did not choose the images. `limits`: limits of these
    numbers, such as of a benchmark or of a model, in sentences.
    """

    card: ComparabilityCard
    models: Mapping[str, Mapping[str, MeasuredValue]]
    misses: Mapping[str, Counter[str]]
    limits: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ResultFile:
    """A result file: its name as given, the facts about its set, and by measurement the card and the models."""

    name: str
    images: MeasuredSet
    measured: Mapping[str, MeasuredModels]


def is_result(path: Path) -> bool:
    """Whether a path names a result file: JSON, or a folder that holds one and no finished set."""
    return path.suffix == ".json" or (
        path.is_dir() and any((path / name).is_file() for name in (RESULTS, ATTACK_RESULTS))
    )


def result_file(path: Path) -> Path:
    """The result file that a path names: itself, or the one in a folder."""
    if not path.is_dir():
        return path
    return path / (RESULTS if (path / RESULTS).is_file() or not (path / ATTACK_RESULTS).is_file() else ATTACK_RESULTS)


def read_results(path: Path) -> ResultFile:
    """Read a result file, or that in a folder.

    Raises CleansetError, one line, for a missing, damaged or edited file, and for one without a card.
    """
    file = result_file(path)
    try:
        data = read_bytes(file)
    except FileNotFoundError:
        raise CleansetError(
            f"{file}: missing; expected {EXPECTED_RESULTS}: name its file, or the folder of its --out"
        ) from None
    content = parse_json(data, str(file), EXPECTED_RESULTS)
    if isinstance(content, dict):
        check_digest(content, file, "run the evaluation again")
        if "fingerprint" in content and "models" not in content:
            return _of_model(file)
    return parse_results(content, str(path))


def _of_model(record: Path) -> ResultFile:
    """The results of one model, named by the record that lies beside its predictions in a folder of --out."""
    every = read_results(record.with_name(RESULTS))
    measured = {}
    for name, one in every.measured.items():
        found = [model for model in one.models if file_stems([model]) == [record.stem]]
        if len(found) != 1:
            raise CleansetError(
                f"{record}: the record of a model that {RESULTS} beside it does not name; expected {EXPECTED_RESULTS}: "
                "name the folder"
            )
        misses = {model: each for model, each in one.misses.items() if model in found}
        measured[name] = replace(one, models={found[0]: one.models[found[0]]}, misses=misses)
    return ResultFile(str(record), every.images, measured)


def parse_results(content: object, name: str) -> ResultFile:
    """The results in the content of a result file; errors as in `read_results`."""
    if not isinstance(content, dict):
        raise CleansetError(f"{name}: {shown(content)}; expected {EXPECTED_RESULTS}")
    _check_printable(content, name)
    parts = content.get("families", {"": content})
    if not isinstance(parts, dict) or not parts or not all(isinstance(part, dict) for part in parts.values()):
        raise CleansetError(f"{name}: no results; expected {EXPECTED_RESULTS}")
    measured = {}
    for part in parts.values():
        found = _measured(part, name)
        if found.card.measured in measured:
            raise CleansetError(f"{name}: {shown(found.card.measured)} measured twice; expected it once")
        measured[found.card.measured] = found
    images = MeasuredSet.from_json(content.get("set"))
    if images is None:
        raise CleansetError(
            f"{name}: set: {shown(content.get('set'))}; expected its name, version, selection and limits: run the "
            "evaluation again with the same --out, which computes only the changes"
        )
    return ResultFile(name, images, measured)


def _check_printable(value: object, name: str) -> None:
    """Raise CleansetError for a text with control characters: texts of the file are printed on a terminal."""
    if isinstance(value, str) and not (value.isprintable() and len(value) <= MAX_RESULT_TEXT):
        raise CleansetError(
            f"{name}: {shown(value)}; expected printable texts of at most {MAX_RESULT_TEXT:,} characters"
        )
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list):
        for each in value:
            _check_printable(each, name)


def _measured(part: JsonMapping, name: str) -> MeasuredModels:
    card = _card(part, name)
    models: dict[str, dict[str, MeasuredValue]] = {}
    misses: dict[str, Counter[str]] = {}
    notice = part.get("notice")
    limits = [notice] if isinstance(notice, str) else []
    entries = part.get("models")
    for entry in entries if isinstance(entries, list) else []:
        model = entry.get("model") if isinstance(entry, dict) else None
        if not isinstance(model, str) or model in models:
            raise CleansetError(f"{name}: models: {shown(model)}; expected the name of each model once")
        models[model] = dict(_values(entry, card.measured, f"{name}: {model}"))
        if (found := entry.get("misclassified")) is not None:
            of_model = _misses(found, entry, f"{name}: {model}")
            if entry.get("chose_images") is not True:
                misses[model] = of_model
        limits += _limits(model, entry)
    if models.keys() != card.models.keys() or not models:
        raise CleansetError(
            f"{name}: models {shown(sorted(models))}; expected the card's, {shown(sorted(card.models))}"
        )
    return MeasuredModels(card, models, misses, list(dict.fromkeys(limits)))


def _card(part: JsonMapping, name: str) -> ComparabilityCard:
    """The card of a measurement in a result file."""
    if "comparability" not in part:
        has_models = isinstance(part.get("models"), list)
        found = "no comparability card" if has_models else "no results of models"
        raise CleansetError(
            f"{name}: {found}; expected {EXPECTED_RESULTS}: run it again with the same --out, which "
            "computes only the changes"
        )
    try:
        card = ComparabilityCard.from_json(part["comparability"])
    except ValidationError as error:
        raise CleansetError(f"{name}: comparability: {first_problem(error)}; expected {EXPECTED_RESULTS}") from None
    except CleansetError as error:
        raise CleansetError(f"{name}: comparability: {error}; run the evaluation again") from None
    if _kind(card.measured) not in HEADLINES:
        raise CleansetError(f"{name}: unknown measurement {shown(card.measured)}; expected {', '.join(HEADLINES)}")
    return card


def _limits(model: str, entry: JsonMapping) -> list[str]:
    """The notes on a model in a result file, in sentences."""
    notes = entry.get("notes")
    found = [each for each in notes if isinstance(each, str)] if isinstance(notes, list) else []
    if entry.get("deterministic") is False:
        found.append(not_deterministic(model))
    return found


def _misses(found: object, entry: JsonMapping, where: str) -> Counter[str]:
    listed = [each for each in found if isinstance(each, str)] if isinstance(found, list) else []
    images = entry.get("images")
    correct = entry.get("correct")
    if not (isinstance(images, int) and isinstance(correct, int) and len(listed) == images - correct):
        raise CleansetError(
            f"{where}: misclassified: {len(listed):,} texts; expected one for each of {shown(images)} images but the "
            f"{shown(correct)} correct ones: run the evaluation again"
        )
    return Counter(listed)


def _values(entry: JsonMapping, measured: str, where: str) -> Iterator[tuple[str, MeasuredValue]]:
    """Yield the headline measures that an entry has: numbers of its own, or below `measures`, each with an interval."""
    measures = entry.get("measures", entry)
    if not isinstance(measures, dict):
        raise CleansetError(f"{where}: measures {shown(measures)}; expected numbers by name")
    calibration = measures.get("calibration")
    error = calibration.get("error") if isinstance(calibration, dict) else None
    for headline in headlines_of(measured):
        found = measures.get(headline.name, error if headline.name == ECE else None)
        if found is None:
            continue
        # the accuracy's interval stands beside it
        ends = entry.get("interval") if headline.name == CLEAN_ACCURACY else None
        table = found if isinstance(found, dict) else {"value": found, "interval": ends}
        number = table.get("value", table.get(CLEAN_ACCURACY))
        interval = table.get("interval")
        pair: list[Any] = interval if isinstance(interval, list) else []
        numbers = [each for each in (number, *pair) if each is not None]
        expected = ""
        if not all(map(_is_finite, numbers)) or len(pair) not in (0, 2):
            expected = "finite numbers"
        elif headline.is_bounded and not all(0 <= each <= 1 for each in numbers):
            expected = "shares from 0 to 1"
        elif len(numbers) == 3 and pair[0] > pair[1]:
            expected = "its lower end first"
        if expected:
            raise CleansetError(
                f"{where}: {headline.name}: {shown(number)}, interval {shown(interval)}; expected {expected}"
            )
        value = None if number is None else float(number)
        yield headline.name, MeasuredValue(value, (float(pair[0]), float(pair[1])) if len(numbers) == 3 else None)
    accuracy, correct, images = (entry.get(name) for name in (CLEAN_ACCURACY, "correct", "images"))
    if not (_is_finite(accuracy) and isinstance(correct, int) and isinstance(images, int)):
        return
    if not 0 <= correct <= images or abs(accuracy * images - correct) > COUNTS_TOLERANCE * images:  # type: ignore[operator]
        raise CleansetError(
            f"{where}: accuracy {accuracy}, {correct:,} of {images:,} images correct; expected the share of these "
            "images: edited since it was written; run the evaluation again"
        )


def _is_finite(value: object) -> bool:
    # bool is an int; an int of 400 digits does not fit a float
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300 and math.isfinite(value)
    )


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A model in a result file: its part of the card, and its values by measurement and measure."""

    result: str
    model: str
    facts: CardModel
    values: dict[tuple[str, str], MeasuredValue]
    misses: Counter[str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NotComparable:
    """A measurement that is left out."""

    result: str
    measured: str
    """Its name."""

    field: str
    """The first field of its card that differs from that of another result."""

    value: str
    compared_with: str
    """The other result."""

    its_value: str


@dataclass(frozen=True, slots=True)
class ComparedResults:
    """The rows of the table, the best first; the card of each measurement and the result that gave it; the notes of
    the table; the rest."""

    rows: Sequence[ModelRow]
    cards: dict[str, tuple[str, ComparabilityCard]]
    notes: Sequence[Note]
    left_out: Sequence[NotComparable]
    notices: Sequence[str]

    @property
    def columns(self) -> list[tuple[str, Headline]]:
        """The measures that a row has, in their order."""
        had = {key for row in self.rows for key, value in row.values.items() if value.value is not None}
        return [(name, each) for name in self.cards for each in headlines_of(name) if (name, each.name) in had]

    @property
    def names(self) -> list[str]:
        """The names of the rows: the models', with their results where one name is in several."""
        several = len({row.model for row in self.rows}) < len(self.rows)
        return [_where(row) if several else row.model for row in self.rows]

    @property
    def pairs(self) -> list[Pair]:
        """Every two models whose misclassified images are known, the more accurate one first."""
        known = [(name, row.misses) for name, row in zip(self.names, self.rows, strict=True) if row.misses is not None]
        # results of several threat models have misclassified images of each, which are not joined
        measured = {name for row in self.rows for name, _ in row.values}
        return compare_pairwise(known, next(iter(self.cards.values()))[1].images.count) if len(measured) == 1 else []


def are_results(paths: Sequence[Path]) -> bool:
    """Whether these are result files. Raises CleansetError where only some of them are."""
    others = [path for path in paths if not is_result(path)]
    if others and len(others) < len(paths):
        raise CleansetError(f"{others[0]}: not a result file; expected {EXPECTED_RESULTS}, as the others are")
    return not others


def run(paths: Sequence[Path]) -> ComparedResults:
    """Compare result files, or the models of one; raises CleansetError for one that cannot be read."""
    for place, path in enumerate(paths):
        if result_file(path).resolve() in {result_file(other).resolve() for other in paths[:place]}:
            raise CleansetError(f"{path}: given twice; expected each result once")
    results = [read_results(path) for path in paths]
    if len(results) == 1 and all(len(each.models) == 1 for each in results[0].measured.values()):
        raise NotComparableError(
            f"compare: 1 result, of 1 model ({paths[0]}); expected two or more: name another result"
        )
    return compare_results(results)


def compare_results(results: Sequence[ResultFile]) -> ComparedResults:
    """Compare with the first result; further measurements with the first result that has them."""
    cards: dict[str, tuple[str, ComparabilityCard]] = {}
    rows: list[ModelRow] = []
    sources: dict[str, list[ResultFile]] = {}
    left_out: list[NotComparable] = []
    for result in results:
        if cards and not cards.keys() & result.measured.keys():
            found, expected = (", ".join(names) for names in (result.measured, cards))
            left_out.append(
                NotComparable(
                    result=result.name,
                    measured=found,
                    field="measured",
                    value=found,
                    compared_with=results[0].name,
                    its_value=expected,
                )
            )
            continue
        of_file: dict[str, ModelRow] = {}
        for name, measured in result.measured.items():
            other, card = cards.setdefault(name, (result.name, measured.card))
            if (difference := first_difference(card, measured.card)) is not None:
                field, expected, found = difference
                left_out.append(
                    NotComparable(
                        result=result.name,
                        measured=name,
                        field=field,
                        value=found,
                        compared_with=other,
                        its_value=expected,
                    )
                )
                continue
            sources.setdefault(name, []).append(result)
            for model, values in measured.models.items():
                facts = measured.card.models[model]
                misses = measured.misses.get(model)
                row = of_file.setdefault(
                    model, ModelRow(result=result.name, model=model, facts=facts, values={}, misses=misses)
                )
                row.values.update({(name, measure): value for measure, value in values.items()})
        rows += of_file.values()
    notes = joined_notes({name: _table_notes(name, of, cards[name][1]) for name, of in sources.items()})
    compared = ComparedResults(rows, cards, notes=notes, left_out=left_out, notices=list(_notices(rows)))
    if compared.columns:
        rows.sort(key=partial(_rank, *compared.columns[0]))
    return compared


def _table_notes(measured: str, results: Sequence[ResultFile], card: ComparabilityCard) -> list[Note]:
    """The notes on one measurement of several results that are comparable: the set of the first, the limits of all."""
    limits = [limit for result in results for limit in (*result.images.limits, *result.measured[measured].limits)]
    return table_notes(card, results[0].images, limits=limits)


def _rank(measured: str, headline: Headline, row: ModelRow) -> tuple[bool, float]:
    """The sort key of a row: the best first, those without a value last."""
    found = row.values.get((measured, headline.name), MeasuredValue(None)).value
    return found is None, 0.0 if found is None else -found if headline.higher_is_better else found


def _notices(rows: Sequence[ModelRow]) -> Iterator[str]:
    """Yield what a reader of the ranking has to know, a sentence each."""
    yield from _repeated(rows)
    elsewhere = [_where(row) for row in rows if row.facts.preprocessing is None]
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
        weights = row.facts.weights_sha256
        earlier = rows[:place]
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
        before, now = (getattr(each.facts, field) for each in (other, row))
        if before != now:
            return f"with {title}: {_short(before)} and {_short(now)}; their ranks depend on it"
    same = all(row.values[key] == other.values[key] for key in row.values.keys() & other.values.keys())
    return "with the same preprocessing" + (" and the same numbers" if same else ", but with other numbers")


def _short(value: str | None) -> str:
    return "not known" if value is None else f"{value[:12]}…" if len(value) == 64 else value


def _where(row: ModelRow) -> str:
    return f"{row.model} ({row.result})"


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
        classes = card.classes.of_images
        interval = card.interval
        counted = f"{card.images.count:,} images of {classes:,} {'class' if classes == 1 else 'classes'}"
        draws = f", {interval.draws:,} draws" if interval.draws is not None else ""
        kind = f"{100 * interval.level:g} %, {interval.kind}{draws}"
        yield f"{name}: card {card.short_digest}, {counted}; intervals: {kind}"


def ranking_for_paper(compared: ComparedResults) -> MeasureTable:
    """The table for a paper, with the tests, results left out and notices in its notes."""
    tested = compared.pairs
    texts = dict(compared.notes)
    left_out = [f"Left out as not comparable: {line}." for line in _left_out(compared)]
    notices = [f"{notice}." for notice in compared.notices]
    texts["limits"] = " ".join(filter(None, [texts.get("limits", ""), *left_out, *notices]))
    texts["tests"] = tests_note(tested)
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
            found = row.values.get((measured, each.name), MeasuredValue(None))
            scale: JsonObject = (
                {"unit": " %"} if each.is_share else {"factor": 1, "digits": 2 if each.name == ECE else 4}
            )
            cells.append(cell(*found, **scale))
        rows.append(((str(rank), label), cells))
    return MeasureTable(("#", "model"), [headline.title for _, headline in compared.columns], rows)


def as_json(compared: ComparedResults) -> str:
    """The comparison for programs; shares are between 0 and 1."""
    rows = []
    for row in compared.rows:
        measures: dict[str, JsonObject] = {}
        for (name, measure), each in row.values.items():
            measures.setdefault(name, {})[measure] = each._asdict()
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
