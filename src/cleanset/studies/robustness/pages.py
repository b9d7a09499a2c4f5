"""A study's pages: tables, heat maps, curves, the regression, and sheets of changed images."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from cleanset.report.pages import page_environment
from cleanset.studies.robustness.families import FAMILIES, families_in
from cleanset.studies.robustness.family import Family, PagesData
from cleanset.studies.robustness.names import UNCHANGED
from cleanset.studies.robustness.results import MIN_IMAGES

TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True, slots=True)
class Value:
    """A measure with the ends of its interval, shares in percent; None where it is not defined, and why."""

    value: float | None
    low: float | None
    high: float | None
    problem: str


def pages(data: PagesData) -> dict[str, str]:
    """The text of each page, by its name; a family without changes has none."""
    environment = page_environment(TEMPLATES, *(family.template.parent for family in FAMILIES))
    families = families_in(data.params)
    templates = {family.page: family.template.name for family in families} | {"images.html": "study_images.html"}
    contexts = {family.page: _measures(data, family) | family.page_context(data) for family in families}
    contexts["images.html"] = _images(data, families)
    common = {
        "roles": data.roles,
        "params": data.params,
        "headlines": {name: title for family in FAMILIES for name, title in family.headlines.items()},
        "pages": {**{family.page: family.name.capitalize() for family in families}, "images.html": "Changed images"},
        "notices": data.notices,
    }
    return {
        name: environment.get_template(templates[name]).render(common | {"page": name} | context)
        for name, context in contexts.items()
    }


def _images(data: PagesData, families: Sequence[Family]) -> dict[str, Any]:
    return {
        "sheets": data.sheets,
        "changes": {family.name: _sheet_changes(family, data) for family in families},
        "layouts": {family.name: family.sheet for family in families},
    }


def _sheet_changes(family: Family, data: PagesData) -> list[str]:
    """The changes of a family on the page of changed images, a row or a tile each."""
    changes = dict.fromkeys(name for name, _ in family.section_in(data.params).changes())
    # a row begins with the unchanged image; among tiles it needs one of its own
    return [UNCHANGED, *changes] if family.sheet.is_tiled and family.sheet.has_unchanged else list(changes)


def _measures(data: PagesData, family: Family) -> dict[str, Any]:
    """The part of a page that every family has: its lines, the selections and the differences."""
    lines, differences = data.tables[family.name], data.tables[f"{family.singular}_differences"]
    selections = list(dict.fromkeys(lines["selection"]))
    return {
        "selections": {name: _selected(lines, name) for name in selections},
        "of": _by_key(lines, family),
        "first": selections[0],
        "not_shares": family.not_shares,
        "differences": [
            row | {"factor": _factor(row["measure"], family)}
            for row in differences[differences["measure"].isin(family.shown_differences)].to_dict("records")
        ],
    }


class Selected(NamedTuple):
    """The number of images in a selection, as text, and whether it is enough for any model."""

    counts: str
    is_measured: bool


def _selected(lines: pd.DataFrame, selection: str) -> Selected:
    """One number, or one for each model where they differ."""
    of_models = lines[lines["selection"] == selection].drop_duplicates("model")
    counts = dict(zip(of_models["model"], of_models["images"], strict=True))
    text = ", ".join(f"{model} {count:,}" for model, count in counts.items())
    if len(set(counts.values())) == 1:
        text = f"{next(iter(counts.values())):,}"
    is_measured = max(counts.values()) >= MIN_IMAGES
    return Selected(text if is_measured else f"{text}; intervals need {MIN_IMAGES} or more", is_measured)


def _by_key(lines: pd.DataFrame, family: Family) -> dict[tuple[str, str, str, str], Value]:
    """Each line by selection, model, measure and change."""
    # pandas reads empty cells as NaN
    texts = lines.astype({"change": object, "problem": object}).fillna({"change": "", "problem": ""}).to_dict("records")
    found = {}
    for row in texts:
        factor = _factor(row["measure"], family)
        ends = [None if np.isnan(row[end]) else factor * row[end] for end in ("value", "low", "high")]
        key = row["selection"], row["model"], row["measure"], row["change"]
        found[key] = Value(ends[0], ends[1], ends[2], row["problem"])
    return found


def _factor(measure: str, family: Family) -> int:
    """100 for shares, which are shown in percent, else 1."""
    return 1 if measure.startswith(family.not_shares) else 100
