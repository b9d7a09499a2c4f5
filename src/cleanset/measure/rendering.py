"""The measures of models as tables for a terminal of 80 columns, and as a page.

The page is one file without external resources; predictions made elsewhere give the same page.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cleanset.files import write_text
from cleanset.measure.measures import Bin, MeasuredModel, by_accuracy, card, notes_of, pairs
from cleanset.measure.sets import EvaluationSet
from cleanset.statistics.finite import in_percent
from cleanset.vocabulary import class_column, class_names, has_top5

# models that get a column each in the tables of classes and confusions; of more, the mean or the sum
MAX_COLUMNS = 6
MEANING = (
    "Interval: Wilson's. Confidence: mean probability of the top-1 class. ECE: expected calibration error, 15 bins."
)
MEANING_OF_PAIRS = "Difference in percentage points, interval: Newcombe's for pairs. p: McNemar's exact test"
SHORT: dict[str, Any] = {"no_wrap": True}
NUMBER = SHORT | {"justify": "right"}
WORDS = SHORT | {"overflow": "ellipsis", "min_width": 16}
# styles of columns: the names of models are never cut
MODEL: dict[str, Any] = {"overflow": "fold", "min_width": 16, "vertical": "top"}
MODEL_COLUMN = ("model", MODEL | {"min_width": 12})
"""The narrower column of models beside many numbers."""


def plain_table(columns: Iterable[tuple[str, Any]], rows: Iterable[Iterable[Any]], gap: int = 1) -> Table:
    """A table without lines from headers with their styles, and the cells, texts, of each row."""
    table = Table(box=None, padding=(0, gap, 0, 0), pad_edge=False, header_style="bold")
    for header, style in columns:
        table.add_column(header, **style)
    for row in rows:
        table.add_row(*row)
    return table


def numbers(*headers: str) -> list[tuple[str, Any]]:
    """Columns of numbers."""
    return [(header, NUMBER) for header in headers]


def as_text(images: EvaluationSet, rows: Sequence[MeasuredModel], most: int = 10) -> Group:
    """The set, the models by accuracy, and the `most` hardest classes; fits into 80 columns."""
    order = by_accuracy(rows)
    notes = (*about(images), *images.notes, *(note for row in order for note in notes_of(row)))
    tables = [_leaderboard(order)]
    if order[0].measures.tiers:
        tables.append(_tiers(order))
    if len(order) > 1:
        tables.append(_pairs(order))
    if hardest := hardest_classes(order, most):
        tables += [_classes(order, hardest), _confusions(order, most)]
    parts: list[RenderableType] = [*map(Text, notes)]
    for table in tables:
        parts += [Text(), table]
    corrected = ", corrected by Holm's method" if len(rows) > 2 else ""
    meanings = [MEANING, *([f"{MEANING_OF_PAIRS}{corrected}."] if len(rows) > 1 else [])]
    return Group(*parts, Text(), *map(Text, meanings), Text(card(images, rows).line))


def about(images: EvaluationSet) -> Iterator[str]:
    """The size of the set, and against what it was checked, in lines."""
    count, classes = len(images.items), images.classes
    of_classes = f"{classes:,} {'class' if classes == 1 else 'classes'}"
    yield f"{images.name}: {count:,} {'image' if count == 1 else 'images'}, {of_classes}"
    if images.checked is None:
        yield "no manifest: which images these are was not checked"
    else:
        yield f"SHA-256 of every image as in {images.checked}"


def _leaderboard(order: Sequence[MeasuredModel]) -> Table:
    rows = (
        (
            str(rank),
            Text(row.name),
            percent(row.measures.overall.share),
            ends(row.measures.overall.interval),
            *([_top5(row)] if has_top5() else []),
            *(
                "–" if value is None else f"{value:.4f}"
                for value in (row.measures.mean_confidence, row.measures.calibration_error)
            ),
        )
        for rank, row in enumerate(order, start=1)
    )
    top5 = ["top-5"] if has_top5() else []
    measured = numbers("accuracy", "95 % interval", *top5, "confidence", "ECE")
    return plain_table([("#", NUMBER), ("model", MODEL), *measured], rows)


def _top5(row: MeasuredModel) -> str:
    return "–" if row.measures.top5 is None else f"{in_percent(row.measures.top5.share):.2f}"


def _tiers(order: Sequence[MeasuredModel]) -> Table:
    tiers = order[0].measures.tiers
    headers = numbers(*(f"{tier}\n({accuracy.images:,})" for tier, accuracy in tiers.items()))
    rows = (
        (str(rank), Text(row.name), *(percent(row.measures.tiers[tier].share) for tier in tiers))
        for rank, row in enumerate(order, start=1)
    )
    return plain_table([("#", NUMBER), ("accuracy by tier", WORDS), *headers], rows)


def _pairs(order: Sequence[MeasuredModel]) -> Table:
    """The most accurate model against each other one."""
    ranks = {row.name: rank for rank, row in enumerate(order, start=1)}
    rows = (
        (
            f"#{ranks[pair.first]} – #{ranks[pair.second]}",
            f"{in_percent(pair.counts.difference):.2f}",
            ends(pair.interval),
            f"{pair.counts.only_first:,}",
            f"{pair.counts.only_second:,}",
            shown_p(pair.p_holm),
        )
        for pair in pairs(order)[: len(order) - 1]
    )
    headers = numbers("difference", "95 % interval", "only first", "only second", "p")
    return plain_table([("pair", SHORT), *headers], rows)


def percent(share: float, digits: int = 2) -> str:
    """A share of 0 to 1 in percent."""
    return f"{in_percent(share, digits):.{digits}f} %"


def ends(interval: tuple[float, float]) -> str:
    """The ends of an interval of shares, in percent."""
    return " – ".join(f"{in_percent(end):.2f}" for end in interval)


def shown_p(value: float) -> str:
    """A p-value with four digits after the point."""
    return "< 0.0001" if value < 0.0001 else f"{value:.4f}"


def hardest_classes(order: Sequence[MeasuredModel], most: int) -> list[int]:
    """The classes with a misclassified image, lowest mean accuracy first; of equal ones the lower class index."""
    shares = {
        each: sum(row.measures.classes[each].share for row in order) / len(order) for each in order[0].measures.classes
    }
    return [each for each in sorted(shares, key=lambda each: (shares[each], each)) if shares[each] < 1][:most]


def _of_models(order: Sequence[MeasuredModel], of_many: str) -> list[tuple[str, Any]]:
    """A column for each model, or one of all."""
    few = len(order) <= MAX_COLUMNS
    return numbers(*(f"#{rank}" for rank in range(1, len(order) + 1))) if few else numbers(of_many)


def _classes(order: Sequence[MeasuredModel], classes: Sequence[int]) -> Table:
    rows = []
    for each in classes:
        shares = [row.measures.classes[each].share for row in order]
        if len(shares) > MAX_COLUMNS:
            shares = [sum(shares) / len(shares)]
        images = f"{order[0].measures.classes[each].images:,}"
        name = class_names()[each]
        rows.append((name.key, Text(name.name), images, *(percent(share, 0) for share in shares)))
    columns = [(class_column(), SHORT), ("hardest classes", WORDS), ("images", NUMBER), *_of_models(order, "mean")]
    return plain_table(columns, rows)


def confusion_counts(order: Sequence[MeasuredModel], most: int) -> list[tuple[int, int, list[int]]]:
    """The `most` most frequent confusions of all models together: label, prediction, and the images of each model."""
    of_model = [{(each.label, each.prediction): each.images for each in row.measures.confusions} for row in order]
    found = {pair: [counts.get(pair, 0) for counts in of_model] for pair in set().union(*of_model)}
    ranked = sorted(found, key=lambda pair: (-sum(found[pair]), pair))
    return [(*pair, found[pair]) for pair in ranked[:most]]


def _confusions(order: Sequence[MeasuredModel], most: int) -> Table:
    rows = []
    for label, prediction, counts in confusion_counts(order, most):
        cells = counts if len(counts) <= MAX_COLUMNS else [sum(counts)]
        names = (Text(class_names()[each].name) for each in (label, prediction))
        rows.append((*names, *(f"{count:,}" for count in cells)))
    columns = [("most frequent confusions", WORDS), ("predicted as", WORDS), *_of_models(order, "sum")]
    return plain_table(columns, rows)


TEMPLATES = Path(__file__).parent / "templates"
PAGE = "index.html"
# classes and confusions that the page lists
MAX_ROWS = 50
# models up to which every pair is shown; of more, the most accurate against each other one
MAX_PAIRED = 6
SIDE = 200
"""Width and height of a reliability diagram, in units of its drawing."""


def bars(bins: Sequence[Bin]) -> list[dict[str, Any]]:
    """The bars of the bins that have images: their height is the accuracy, `confidence` that of a line at its mean."""
    return [
        {
            "x": SIDE * each.low + 1,
            "width": SIDE * (each.high - each.low) - 2,
            "height": SIDE * each.correct / each.images,
            "confidence": SIDE * each.mean_confidence,
            "text": f"confidence {each.low:.2f} to {each.high:.2f}: {each.images:,} images, accuracy "
            f"{percent(each.correct / each.images, 1)}, "
            f"mean confidence {percent(each.mean_confidence, 1)}",
        }
        for each in bins
        if each.mean_confidence is not None
    ]


def write_page(folder: Path, images: EvaluationSet, rows: Sequence[MeasuredModel]) -> None:
    """Write the page into a folder, which is made where it is missing; an earlier page there is replaced.

    The same measures give the same text, however the predictions were computed.
    """
    # a table in a terminal does without it
    from cleanset.report.pages import page_environment

    environment = page_environment(TEMPLATES)
    environment.filters |= {"percent": percent, "shown_p": shown_p}
    environment.globals |= {"bars": bars, "side": SIDE, "has_top5": has_top5()}
    order, every = by_accuracy(rows), pairs(rows)
    text = environment.get_template("evaluation.html").render(
        about=about(images),
        notes=[*images.notes, *(note for row in order for note in notes_of(row))],
        set_name=images.name,
        models=order,
        rank_of={row.name: rank for rank, row in enumerate(order, start=1)},
        pairs=every if len(order) <= MAX_PAIRED else every[: len(order) - 1],
        all_pairs=len(every),
        hardest=hardest_classes(order, MAX_ROWS),
        confusions=confusion_counts(order, MAX_ROWS),
        names=class_names(),
    )
    write_text(folder / PAGE, text)
