"""Results of models compared: one table of comparable results, with the reasons for leaving out the rest."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cleanset.errors import CleansetError, NotComparableError
from cleanset.evaluation.comparability import CardModel, ComparabilityCard, first_difference
from cleanset.evaluation.compare.result_files import (
    Headline,
    ResultFile,
    headlines_of,
    read_results,
    result_file,
)
from cleanset.evaluation.measures import NOT_MEASURED, Measure
from cleanset.evaluation.notes import Note, joined_notes, table_notes
from cleanset.evaluation.pairs import Pair, compare_pairwise
from cleanset.plumbing.validation import join_names
from cleanset.statistics.basics import Flags


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A model in a result file: its part of the card, and its values by measurement and measure."""

    result: str
    model: str
    facts: CardModel
    values: dict[tuple[str, str], Measure]
    answers: Flags | None
    """Whether it classifies each image correctly, in the order of the measurement's `image_keys`; None: not known."""


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
    image_keys: Sequence[str]
    """The images that `answers` are of, by class and digest; empty if no row has some."""
    group_of: Mapping[str, str]
    """The group of each of `image_keys`; empty if no two images share one."""

    @property
    def columns(self) -> list[tuple[str, Headline]]:
        """The measures that a row has, in their order."""
        had = {key for row in self.rows for key, value in row.values.items() if value.is_defined}
        return [(name, each) for name in self.cards for each in headlines_of(name) if (name, each.name) in had]

    @property
    def names(self) -> list[str]:
        """The names of the rows: the models', with their results where one name is in several."""
        several = len({row.model for row in self.rows}) < len(self.rows)
        return [_where(row) if several else row.model for row in self.rows]

    @property
    def pairs(self) -> list[Pair]:
        """Pairs of models whose answers are known, the more accurate one first."""
        pairs = zip(self.names, self.rows, strict=True)
        known = [(name, row.answers) for name, row in pairs if row.answers is not None]
        # results of several threat models have answers of each, which are not joined
        measured = {name for row in self.rows for name, _ in row.values}
        if len(measured) > 1:
            return []
        return compare_pairwise(known, self.image_keys, [self.group_of.get(key, "") for key in self.image_keys])


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
    image_keys: Sequence[str] = ()
    group_of: Mapping[str, str] = {}
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
            # comparable results are of the same images
            image_keys = image_keys or measured.image_keys
            group_of = group_of or measured.group_of
            for model, values in measured.models.items():
                facts = measured.card.models[model]
                answers = measured.answers.get(model)
                row = of_file.setdefault(
                    model, ModelRow(result=result.name, model=model, facts=facts, values={}, answers=answers)
                )
                row.values.update({(name, measure): value for measure, value in values.items()})
        rows += of_file.values()
    notes = joined_notes({name: _table_notes(name, of, cards[name][1]) for name, of in sources.items()})
    notices = list(_notices(rows))
    if len(sources) > 1 and any(row.answers is not None for row in rows):
        notices.append(f"no paired tests, as these are several measurements: {join_names(list(sources))}")
    compared = ComparedResults(
        rows,
        cards,
        notes=notes,
        left_out=left_out,
        notices=notices,
        image_keys=image_keys,
        group_of=group_of,
    )
    if compared.columns:
        rows.sort(key=partial(_rank, *compared.columns[0]))
    return compared


def _table_notes(measured: str, results: Sequence[ResultFile], card: ComparabilityCard) -> list[Note]:
    """The notes on one measurement of several results that are comparable: the set of the first, the limits of all."""
    limits = [limit for result in results for limit in (*result.images.limits, *result.measured[measured].limits)]
    return table_notes(card, results[0].images, limits=limits)


def _rank(measured: str, headline: Headline, row: ModelRow) -> tuple[bool, float]:
    """The sort key of a row: the best first, those without a value last."""
    found = row.values.get((measured, headline.name), NOT_MEASURED)
    if not found.is_defined:
        return True, 0.0
    return False, -found.value if headline.higher_is_better else found.value


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
    by_name: dict[str, ModelRow] = {}
    by_weights: dict[str, ModelRow] = {}
    for row in rows:
        weights = row.facts.weights_sha256
        same_name = by_name.get(row.model)
        same_weights = by_weights.get(weights) if weights else None
        by_name.setdefault(row.model, row)
        if weights:
            by_weights.setdefault(weights, row)
        if same_name is not None:
            yield f"{row.model} is in {same_name.result} and in {row.result}, {_between(same_name, row)}"
        elif same_weights is not None:
            yield f"{_where(same_weights)} and {_where(row)} have the same weights, {_between(same_weights, row)}"


def _grouped(pairs: Iterable[tuple[str | None, str]], word: str) -> str | None:
    """The names of each value, or None if no two values differ; those without a value are left out."""
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
        # two names of one preprocessing are one preprocessing
        if before != now and not (field == "preprocessing" and _has_same_pixels(other, row)):
            return f"with {title}: {_short(before)} and {_short(now)}; their ranks depend on it"
    same = all(row.values[key] == other.values[key] for key in row.values.keys() & other.values.keys())
    return "with the same preprocessing" + (" and the same numbers" if same else ", but with other numbers")


def _has_same_pixels(other: ModelRow, row: ModelRow) -> bool:
    digest = row.facts.preprocessing_sha256
    return digest is not None and digest == other.facts.preprocessing_sha256


def _short(value: str | None) -> str:
    return "not known" if value is None else f"{value[:12]}…" if len(value) == 64 else value


def _where(row: ModelRow) -> str:
    return f"{row.model} ({row.result})"
