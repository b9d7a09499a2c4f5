"""The tables and the page of `evaluate`, and of differences between models: their columns and digits.

Tables fit a terminal of 80 columns, and papers.

The page is one file without external resources; predictions made elsewhere give the same page.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from cleanset.classes import ClassTable
from cleanset.evaluation.class_order import order_statement
from cleanset.evaluation.measured_models import MeasuredModel, accuracy_card, by_accuracy, notes_of, ranked_pairs
from cleanset.evaluation.notes import Note, table_notes
from cleanset.evaluation.pairs import MAX_PAIRED, Pair
from cleanset.evaluation.prediction_measures import MEASURES, DeclaredMeasure
from cleanset.evaluation.sets import EvaluationSet
from cleanset.evaluation.table import Cell, MeasureTable, cell, measure_cell, p_cell
from cleanset.plumbing.files import write_text
from cleanset.statistics.basics import LEVEL
from cleanset.statistics.formats import counted, percent

# models that get a column each in the tables of classes and confusions; with more, the mean or the sum
MAX_COLUMNS = 6
# models that get a column of error ratios with intervals, the most accurate; the JSON has all
MAX_RATIOS = 3
CUSTOM_DIGITS = 4
"""Digits behind the point of a custom measure, whose scale is not known."""
MEANING = " ".join(each.meaning for each in MEASURES if each.meaning)
MEANING_OF_PAIRS = "Difference in percentage points, interval: Newcombe's for pairs. p: McNemar's exact test{}"
HOLM = ", corrected by Holm's method"
REFERENCE_ROW = "the others are compared with it"
NO_ANSWERS = "not known which images it misclassifies"
UNTESTED = "not tested"
"""Reasons for no difference and no p-value."""
CONFIDENCE_INTERVAL = "confidence: Student's t; ECE has none: 15 bins, debiased"
DIFFERENCE_INTERVAL = "differences: Newcombe's for pairs"


def as_text(images: EvaluationSet, rows: Sequence[MeasuredModel], most: int = 10) -> Group:
    """The set, the models by accuracy, and the `most` hardest classes; fits into 80 columns."""
    order = by_accuracy(rows)
    tables = [leaderboard(order, images.classes)]
    tested = ranked_pairs(order)
    if order[0].measures.tiers:
        tables.append(_tiers(order))
    if order[0].multilabel:
        tables.append(multilabel_table(order))
    if tested:
        tables.append(pairs_table([row.name for row in order], tested))
    if order[0].factors is not None:
        tables.append(factor_table(order))
    if hardest := hardest_classes(order, most):
        tables += [_classes(order, hardest, images.classes), _confusions(order, most, images.classes)]
    first, *more = about(images)
    parts: list[RenderableType] = [*map(Text, (f"{images.name}: {first}", *more, *all_notes(images, order)))]
    for table in tables:
        parts += [Text(), table.in_terminal("\n", first=" " if table is tables[0] else "\n")]
    meanings = [MEANING, *(table.caption for table in tables if table.caption)]
    parts += [Text(), *map(Text, meanings), Text(accuracy_card(images, rows).line)]
    return Group(*parts)


def all_notes(images: EvaluationSet, rows: Sequence[MeasuredModel]) -> list[str]:
    """Notes for readers of the measures, on the set and on each model."""
    return [*images.notes, *(note for row in rows for note in notes_of(row, images))]


def about(images: EvaluationSet) -> Iterator[str]:
    """The size of the set, the reference that it was checked against, and an order that surprises, in lines."""
    groups = "" if images.units is None else f", {images.units.number}"
    yield f"{counted(len(images.items), 'image')}, {counted(images.class_count, 'class')}{groups}"
    if images.checked is not None:
        yield f"SHA-256 of every image as in {images.checked}"
    if statement := order_statement(images.classes):
        yield statement


def leaderboard(order: Sequence[MeasuredModel], classes: ClassTable) -> MeasureTable:
    """The measures of each model, the most accurate first."""
    columns = columns_with(classes)
    rows = [
        (
            (str(rank), row.name),
            [
                *(measure_cell(each.of(row.measures), each.factor, unit=each.unit) for each in columns),
                *(measure_cell(each.found, 1, CUSTOM_DIGITS) for each in row.custom),
            ],
        )
        for rank, row in enumerate(order, start=1)
    ]
    titles = [*(each.title for each in columns), *(each.name.partition(":")[2] for each in order[0].custom)]
    return MeasureTable(("#", "model"), titles, rows)


def columns_with(classes: ClassTable) -> list[DeclaredMeasure]:
    """The measures that have a column with these classes."""
    return [each for each in MEASURES if classes.has_top5 or not each.needs_five_classes]


def leaderboard_for_paper(images: EvaluationSet, rows: Sequence[MeasuredModel]) -> MeasureTable:
    """The leaderboard for a paper."""
    order = by_accuracy(rows)
    tested = ranked_pairs(order)
    notes = evaluation_notes(images, order, tests_note(tested))
    return for_paper(leaderboard(order, images.classes), tested, "Accuracy in percent, with 95 % intervals", notes)


def evaluation_notes(images: EvaluationSet, rows: Sequence[MeasuredModel], tests: str) -> list[Note]:
    """The notes of a table of the measures of models on a set."""
    limits = [note for row in rows for note in notes_of(row, images)]
    intervals = "; ".join(filter(None, [CONFIDENCE_INTERVAL, DIFFERENCE_INTERVAL if tests else ""]))
    return table_notes(accuracy_card(images, rows), images.facts, intervals=intervals, tests=tests, limits=limits)


def tests_note(tested: Sequence[Pair]) -> str:
    """The note on the tests of a table for a paper; empty without tests."""
    if not tested:
        return ""
    holm = f"{HOLM}, over {tested[0].tests} pairs" if tested[0].tests > 1 else ""
    return f"p of McNemar's exact test{_by_groups(tested)}, two-sided, against {tested[0].model}{holm}"


def _by_groups(tested: Sequence[Pair]) -> str:
    """The unit of the tests, where it is not the image."""
    groups = tested[0].groups
    return "" if groups is None else f" by {groups:,} groups"


def for_paper(table: MeasureTable, tested: Sequence[Pair], caption: str, notes: Sequence[Note]) -> MeasureTable:
    """A table without ranks; where models were tested, with differences from the best of them and p-values."""
    # the pairs of the first model come first
    best = tested[0].model if tested else None
    cells_of = {pair.other: tested_cells(pair) for pair in tested if pair.model == best}
    titles = list(table.titles)
    rows = []
    if tested:
        titles += ["difference", "p"]
        caption += f"; difference from {best} in percentage points"
    for texts, cells in table.rows:
        name = texts[-1].partition("\n")[0]
        missing = Cell(problem=REFERENCE_ROW if name == best else NO_ANSWERS)
        rows.append(((name,), [*cells, *(cells_of.get(name, (missing, missing)) if tested else ())]))
    return MeasureTable(("model",), titles, rows, caption=caption, notes=notes)


def tested_cells(pair: Pair) -> tuple[Cell, Cell]:
    """The difference of the second model from the first, and the p-value."""
    return cell(-pair.value, (-pair.high, -pair.low)), p_cell(pair.p_holm, UNTESTED)


MEANING_OF_RATIOS = (
    "Error ratio: the error on images with the factor, divided by that on all annotated images; interval by bootstrap."
)


INDEPENDENT = " Images are counted as independent, those of one group, too."


def factor_table(order: Sequence[MeasuredModel]) -> MeasureTable:
    """The error ratio of each model by factor, with the images that have it."""
    shown = order[:MAX_RATIOS]
    titles = [f"#{rank}" for rank in range(1, len(shown) + 1)]
    others = INDEPENDENT if order[0].group_of else ""
    others += "" if len(order) <= MAX_RATIOS else " The JSON has the other models."
    return MeasureTable(("error ratio by factor",), ["images", *titles], _ratios(shown), MEANING_OF_RATIOS + others)


def _ratios(order: Sequence[MeasuredModel]) -> list[tuple[tuple[str], list[Cell]]]:
    found = [row.factors.of_factors for row in order if row.factors is not None]
    return [
        ((each[0].factor,), [Cell(f"{each[0].images:,}"), *(measure_cell(one.ratio, 1) for one in each)])
        for each in zip(*found, strict=True)
    ]


def factors_for_paper(images: EvaluationSet, rows: Sequence[MeasuredModel]) -> MeasureTable:
    """The error ratios by factor for a paper, a column for each model."""
    order = by_accuracy(rows)
    return MeasureTable(
        ("factor",),
        ["images", *(row.name for row in order)],
        _ratios(order),
        caption="Error ratio by factor of ImageNet-X, with 95 % intervals by bootstrap",
        notes=[
            note._replace(text=f"{percent(LEVEL, 0)}, bootstrap within classes.{INDEPENDENT if images.units else ''}")
            if note.name == "intervals"
            else note
            for note in evaluation_notes(images, order, "")
        ],
    )


def _tiers(order: Sequence[MeasuredModel]) -> MeasureTable:
    tiers = order[0].measures.tiers
    rows = [
        ((str(rank), row.name), [measure_cell(each.measure, digits=1) for each in row.measures.tiers.values()])
        for rank, row in enumerate(order, start=1)
    ]
    titles = [f"{tier}\n({accuracy.images:,})" for tier, accuracy in tiers.items()]
    return MeasureTable(("#", "accuracy by tier, %"), titles, rows)


def multilabel_table(order: Sequence[MeasuredModel]) -> MeasureTable:
    """The multi-label accuracies of each model by each definition, with the number of images that count."""
    definitions = order[0].multilabel
    rows = [
        ((str(rank), row.name), [measure_cell(each, digits=1) for each in row.multilabel])
        for rank, row in enumerate(order, start=1)
    ]
    titles = [f"{each.definition.title}\n({each.images:,})" for each in definitions]
    caption = "Multi-label, in percent. " + ". ".join(
        f"{each.definition.title}, by {each.source}: {each.definition.meaning}" for each in definitions
    )
    return MeasureTable(("#", "multi-label, %"), titles, rows, caption=f"{caption}.")


def pairs_table(names: Sequence[str], tested: Sequence[Pair]) -> MeasureTable:
    """The best of the tested models against each other one; `names` are in the order of the ranks."""
    ranks = {name: rank for rank, name in enumerate(names, start=1)}
    rows = []
    for pair in (each for each in tested if each.model == tested[0].model):
        counts = pair.counts
        only = [Cell(f"{each:,}") for each in (counts.only_first, counts.only_second)]
        name = f"#{ranks[pair.model]} – #{ranks[pair.other]}"
        rows.append(((name,), [measure_cell(pair), *only, p_cell(pair.p_holm, UNTESTED)]))
    caption = f"{MEANING_OF_PAIRS.format(_by_groups(tested))}{HOLM if tested[0].tests > 1 else ''}."
    return MeasureTable(("pair",), ("difference", "only first", "only second", "p"), rows, caption)


def hardest_classes(order: Sequence[MeasuredModel], most: int) -> list[int]:
    """The classes with a misclassified image, lowest mean accuracy first, ties by class index."""
    shares = {
        each: sum(row.measures.classes[each].share for row in order) / len(order) for each in order[0].measures.classes
    }
    return [each for each in sorted(shares, key=lambda each: (shares[each], each)) if shares[each] < 1][:most]


def _of_models(order: Sequence[MeasuredModel], of_many: str) -> list[str]:
    """The title of a column for each model, or of one of all."""
    return [f"#{rank}" for rank in range(1, len(order) + 1)] if len(order) <= MAX_COLUMNS else [of_many]


def _classes(order: Sequence[MeasuredModel], hardest: Sequence[int], classes: ClassTable) -> MeasureTable:
    rows = []
    for each in hardest:
        shares = [row.measures.classes[each].share for row in order]
        if len(shares) > MAX_COLUMNS:
            shares = [sum(shares) / len(shares)]
        name = classes.names[each]
        images = Cell(f"{order[0].measures.classes[each].images:,}")
        rows.append(((name.key, name.name), [images, *(cell(share, digits=0, unit=" %") for share in shares)]))
    return MeasureTable((classes.key_column, "hardest classes"), ["images", *_of_models(order, "mean")], rows)


def confusion_counts(order: Sequence[MeasuredModel], most: int) -> list[tuple[int, int, list[int]]]:
    """The `most` most frequent confusions of all models together: label, prediction, and the images of each model."""
    of_model = [{(each.label, each.prediction): each.images for each in row.measures.confusions} for row in order]
    found = {pair: [counts.get(pair, 0) for counts in of_model] for pair in set().union(*of_model)}
    ranked = sorted(found, key=lambda pair: (-sum(found[pair]), pair))
    return [(*pair, found[pair]) for pair in ranked[:most]]


def _confusions(order: Sequence[MeasuredModel], most: int, classes: ClassTable) -> MeasureTable:
    rows = []
    for label, prediction, counts in confusion_counts(order, most):
        cells = [Cell(f"{count:,}") for count in (counts if len(counts) <= MAX_COLUMNS else [sum(counts)])]
        rows.append(((classes.names[label].name, classes.names[prediction].name), cells))
    return MeasureTable(("most frequent confusions", "predicted as"), _of_models(order, "sum"), rows)


TEMPLATES = Path(__file__).parent / "templates"
PAGE = "index.html"
# classes and confusions that the page lists
MAX_ROWS = 50


def write_page(folder: Path, images: EvaluationSet, rows: Sequence[MeasuredModel]) -> None:
    """Write the page into a folder, made if it is missing, and replace an earlier page.

    The same measures give the same text, however the predictions were computed.
    """
    # a table in a terminal does without it
    from cleanset.report.pages import page_environment

    environment = page_environment(images.classes, TEMPLATES)
    environment.filters |= {"cell": cell, "measure_cell": measure_cell}
    environment.globals |= {
        "columns": columns_with(images.classes)[1:],
        "class_column": images.classes.key_column,
        "search_words": images.classes.search_words,
    }
    order = by_accuracy(rows)
    pairs = ranked_pairs(rows)
    text = environment.get_template("evaluation.html").render(
        about=about(images),
        notes=all_notes(images, order),
        table_notes=evaluation_notes(images, order, ""),
        set_name=images.name,
        multilabel=multilabel_table(order) if order[0].multilabel else None,
        models=order,
        rank_of={row.name: rank for rank, row in enumerate(order, start=1)},
        pairs=pairs,
        all_pairs=pairs[0].tests if pairs else 0,
        # of many models they are most of the page
        has_images=len(rows) <= MAX_PAIRED,
        # one more, to say whether there are more
        hardest=hardest_classes(order, MAX_ROWS + 1),
        confusions=confusion_counts(order, MAX_ROWS + 1),
        max_rows=MAX_ROWS,
        names=images.classes.names,
        factors=_ratios(order) if images.factors is not None else [],
        meaning_of_ratios=MEANING_OF_RATIOS + (INDEPENDENT if images.units else ""),
    )
    write_text(folder / PAGE, text)
