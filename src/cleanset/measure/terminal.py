"""The measures of models as tables for a terminal of 80 columns."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cleanset.dataset.ilsvrc import class_names, wnids
from cleanset.measure.evaluation import MeasuredModel, by_accuracy, card, notes_of, pairs
from cleanset.measure.measures import Pair
from cleanset.measure.sets import EvaluationSet

MAX_COLUMNS = 6
"""Models that get a column each in the tables of classes and confusions; of more, the mean or the sum."""
MEANING = (
    "Interval: Wilson's. Confidence: mean probability of the top-1 class. ECE: expected calibration error, 15 bins."
)
MEANING_OF_PAIRS = "Difference in percentage points, interval: Newcombe's for pairs. p: McNemar's exact test"


def as_text(images: EvaluationSet, rows: Sequence[MeasuredModel], most: int = 10) -> Group:
    """The set, the models by accuracy, and the `most` hardest classes; fits into 80 columns."""
    order = by_accuracy(rows)
    parts: list[RenderableType] = [
        *map(Text, (*about(images), *images.notes, *(note for row in order for note in notes_of(row)))),
        Text(),
        _leaderboard(order),
    ]
    if order[0].measures.tiers:
        parts += [Text(), _tiers(order)]
    if len(order) > 1:
        parts += [Text(), _pairs(order)]
    hardest = hardest_classes(order, most)
    if hardest:
        parts += [Text(), _classes(order, hardest)]
        parts += [Text(), _confusions(order, most)]
    return Group(*parts, Text(), *map(Text, meanings(order)), Text(card(images, rows).line))


def meanings(rows: Sequence[MeasuredModel]) -> list[str]:
    """The meaning of the columns, in lines."""
    corrected = ", corrected by Holm's method" if len(rows) > 2 else ""
    return [MEANING, *([f"{MEANING_OF_PAIRS}{corrected}."] if len(rows) > 1 else [])]


def about(images: EvaluationSet) -> Iterator[str]:
    """The size of the set, and against what it was checked, in lines."""
    classes = len({item.class_index for item in images.items})
    yield f"{images.name}: {_counted(len(images.items), 'image')}, {_counted(classes, 'class', 'classes')}"
    if images.checked is None:
        yield "no manifest: which images these are was not checked"
    else:
        yield f"SHA-256 of every image as in {images.checked}"


def _counted(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _table() -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("#", justify="right", no_wrap=True)
    return table


def _leaderboard(order: Sequence[MeasuredModel]) -> Table:
    table = _table()
    table.add_column("model", overflow="fold", min_width=16, vertical="top")
    for header in ("accuracy", "95 % interval", "top-5", "confidence", "ECE"):
        table.add_column(header, justify="right", no_wrap=True)
    for rank, row in enumerate(order, start=1):
        measures = row.measures
        low, high = measures.overall.interval
        table.add_row(
            str(rank),
            Text(row.name),
            percent(measures.overall.share),
            f"{100 * low:.2f} – {100 * high:.2f}",
            "–" if measures.top5 is None else f"{100 * measures.top5.share:.2f}",
            _decimal(measures.mean_confidence),
            _decimal(measures.calibration_error),
        )
    return table


def _decimal(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def _tiers(order: Sequence[MeasuredModel]) -> Table:
    table = _table()
    table.add_column("accuracy by tier", no_wrap=True, overflow="ellipsis", min_width=16)
    tiers = order[0].measures.tiers
    for tier, accuracy in tiers.items():
        table.add_column(f"{tier}\n({accuracy.images:,})", justify="right", no_wrap=True)
    for rank, row in enumerate(order, start=1):
        shares = (percent(row.measures.tiers[tier].share) for tier in tiers)
        table.add_row(str(rank), Text(row.name), *shares)
    return table


def _pairs(order: Sequence[MeasuredModel]) -> Table:
    """The most accurate model against each other one."""
    places = {row.name: rank for rank, row in enumerate(order, start=1)}
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("pair", no_wrap=True)
    for header in ("difference", "95 % interval", "only first", "only second", "p"):
        table.add_column(header, justify="right", no_wrap=True)
    for pair in pairs(order)[: len(order) - 1]:
        table.add_row(f"#{places[pair.first]} – #{places[pair.second]}", *_pair_cells(pair))
    return table


def _pair_cells(pair: Pair) -> Iterator[str]:
    low, high = pair.interval
    yield f"{100 * pair.counts.difference:.2f}"
    yield f"{100 * low:.2f} – {100 * high:.2f}"
    yield f"{pair.counts.only_first:,}"
    yield f"{pair.counts.only_second:,}"
    yield shown_p(pair.p_holm)


def percent(share: float, digits: int = 2) -> str:
    """A share of 0 to 1 in percent."""
    return f"{100 * share:.{digits}f} %"


def shown_p(value: float) -> str:
    """A p-value with four digits after the point."""
    return "< 0.0001" if value < 0.0001 else f"{value:.4f}"


def hardest_classes(order: Sequence[MeasuredModel], most: int) -> list[int]:
    """The classes with a misclassified image, lowest mean accuracy first; of equal ones the lower class index."""
    shares = {
        each: sum(row.measures.classes[each].share for row in order) / len(order) for each in order[0].measures.classes
    }
    return [each for each in sorted(shares, key=lambda each: (shares[each], each)) if shares[each] < 1][:most]


def _classes(order: Sequence[MeasuredModel], classes: Sequence[int]) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("wnid", no_wrap=True)
    table.add_column("hardest classes", no_wrap=True, overflow="ellipsis", min_width=16)
    table.add_column("images", justify="right", no_wrap=True)
    _add_model_columns(table, order, "mean")
    for each in classes:
        shares = [row.measures.classes[each].share for row in order]
        if len(shares) > MAX_COLUMNS:
            shares = [sum(shares) / len(shares)]
        images = order[0].measures.classes[each].images
        cells = (percent(share, 0) for share in shares)
        table.add_row(wnids()[each], Text(class_names()[each].name), f"{images:,}", *cells)
    return table


def _add_model_columns(table: Table, order: Sequence[MeasuredModel], of_many: str) -> None:
    few = len(order) <= MAX_COLUMNS
    for header in [f"#{rank}" for rank in range(1, len(order) + 1)] if few else [of_many]:
        table.add_column(header, justify="right", no_wrap=True)


def confusion_counts(order: Sequence[MeasuredModel], most: int) -> list[tuple[int, int, list[int]]]:
    """The `most` most frequent confusions of all models together: label, prediction, and the images of each model."""
    of_model = [{(each.label, each.prediction): each.images for each in row.measures.confusions} for row in order]
    found = {pair: [counts.get(pair, 0) for counts in of_model] for pair in set().union(*of_model)}
    ranked = sorted(found, key=lambda pair: (-sum(found[pair]), pair))
    return [(*pair, found[pair]) for pair in ranked[:most]]


def _confusions(order: Sequence[MeasuredModel], most: int) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("most frequent confusions", no_wrap=True, overflow="ellipsis", min_width=16)
    table.add_column("predicted as", no_wrap=True, overflow="ellipsis", min_width=16)
    _add_model_columns(table, order, "sum")
    for label, prediction, counts in confusion_counts(order, most):
        cells = counts if len(counts) <= MAX_COLUMNS else [sum(counts)]
        names = (Text(class_names()[each].name) for each in (label, prediction))
        table.add_row(*names, *(f"{count:,}" for count in cells))
    return table
