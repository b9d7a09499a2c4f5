"""Printing the results of `attacks evaluate`: robust accuracies first, then each attack, then the warnings."""

from math import isnan

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cleanset.studies.attacks.evaluation import AttackedModels
from cleanset.studies.attacks.measures import AttackMeasure
from cleanset.studies.attacks.params import WORST_CASE

MEANING = (
    "robust: classified correctly, and broken by no attack. success: of the images that are classified correctly, "
    "those that the attack breaks. Both with Wilson's 95 % interval."
)


def as_text(evaluated: AttackedModels) -> Group:
    """The images, a table of the robust accuracies, one of the attacks, and the warnings; fits into 80 columns."""
    images = evaluated.images
    count, classes = len(images.images), images.images["class_index"].nunique()
    parts: list[RenderableType] = [Text(f"{images.name}: {count:,} images of {classes:,} classes")]
    parts += map(Text, images.notes)
    parts += [Text(), _robust(evaluated), Text(), _attacks(evaluated), Text(), Text(MEANING)]
    for model, record in evaluated.warnings.items():
        parts.append(Text())
        if not record.warnings:
            parts.append(Text(f"{model}: no sign that it only looks strong ({record.images} images)"))
        parts += [Text(f"{model}: {each.sign}: {each.text}", style="red") for each in record.warnings]
        parts += [Text(f"{model}: {each.sign} cannot be told: {each.text}") for each in record.not_told]
    return Group(*parts)


def _table(*columns: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("model", overflow="fold", min_width=12)
    for column in columns:
        table.add_column(column, justify="left" if column == "attack" else "right", no_wrap=True)
    return table


def _robust(evaluated: AttackedModels) -> Table:
    table = _table("images", "clean", "robust")
    for model in evaluated.models:
        names = ("clean_accuracy", "robust_accuracy", "tried_by_all")
        clean, robust, tried = (evaluated.value(WORST_CASE, model, measure) for measure in names)
        images = "–" if robust is None else f"{robust.images:,}"
        if robust is not None and tried is not None and tried.value < 1:
            images = f"{images}, {round(tried.value * tried.images):,} by all attacks"
        table.add_row(Text(model), images, _share(clean, has_interval=False), _share(robust))
    return table


def _attacks(evaluated: AttackedModels) -> Table:
    table = _table("attack", "images", "success", "queries")
    for model in evaluated.models:
        for place, attack in enumerate(evaluated.params.attacks):
            success, queries = (evaluated.value(attack, model, measure) for measure in ("success", "queries"))
            cells = ["–" if queries is None else f"{queries.images:,}", _share(success)]
            cells.append("–" if queries is None else f"{queries.value:,.0f}")
            table.add_row(Text(model if place == 0 else ""), attack, *cells)
    return table


def _share(line: AttackMeasure | None, *, has_interval: bool = True) -> str:
    """Percent, with the ends of the interval where there are any."""
    if line is None or isnan(line.value):
        return "–"
    text = f"{100 * line.value:.1f}"
    return text if isnan(line.low) or not has_interval else f"{text} ({100 * line.low:.1f}–{100 * line.high:.1f})"
