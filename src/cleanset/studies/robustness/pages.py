"""Stage `pages`: tables, heat maps, curves, the regression and sheets of changed images; and tables for papers.

The pages open without a server or a network. The part of each family is in its folder. The command `robustness table`
prints measures with their intervals in LaTeX, Markdown or CSV.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from jinja2 import UndefinedError
from PIL import Image

from cleanset.errors import CleansetError
from cleanset.evaluation.measures import NOT_MEASURED, Measure, images_text
from cleanset.evaluation.measures import read_measures as read_lines
from cleanset.evaluation.notes import Note
from cleanset.evaluation.table import Cell, MeasureTable, measure_cell
from cleanset.images.preprocessing import jpeg
from cleanset.plumbing.files import replacing, write_text
from cleanset.plumbing.validation import check_known, shown
from cleanset.report.pages import page_environment
from cleanset.studies.robustness.families import (
    FAMILIES,
    ChangePlan,
    OpenedStudy,
    families_in,
    notice,
)
from cleanset.studies.robustness.family import Family, PagesData, SheetImage
from cleanset.studies.robustness.images import ChangeName, Study
from cleanset.studies.robustness.measuring import MEASURE_REMEDY, read_measures
from cleanset.studies.robustness.results import LINE_COLUMNS, MIN_IMAGES
from cleanset.studies.robustness.sections import UNCHANGED

TEMPLATES = Path(__file__).parent / "templates"
SHOWN_SIZE = (112, 112)
"""Width and height of the images on the sheets, in pixels."""

QUALITY = 85
"""JPEG quality of the images on the sheets."""


def pages(data: PagesData) -> dict[str, str]:
    """The text of each page, by its name; families without changes are left out."""
    # each family brings its own template, which extends those here
    environment = page_environment(data.classes, TEMPLATES, *(family.template.parent for family in FAMILIES))
    families = families_in(data.params)
    templates = {family.page: family.template.name for family in families} | {"images.html": "study_images.html"}
    contexts = {family.page: _measures(data, family) | family.page_context(data) for family in families}
    contexts["images.html"] = {
        "sheets": data.sheets,
        "changes": {family.name: _sheet_changes(family, data) for family in families},
        "layouts": {family.name: family.sheet for family in families},
    }
    common = {
        "roles": data.roles,
        "params": data.params,
        "headlines": {name: title for family in FAMILIES for name, title in family.headlines.items()},
        "pages": {**{family.page: family.name.capitalize() for family in families}, "images.html": "Changed images"},
        "notices": data.notices,
        "notes": {},
    }
    return {
        name: environment.get_template(templates[name]).render(common | {"page": name} | context)
        for name, context in contexts.items()
    }


def _sheet_changes(family: Family, data: PagesData) -> list[str]:
    """The changes of a family on the page of changed images, a row or a tile each."""
    changes = dict.fromkeys(name for name, _ in family.section_in(data.params).changes())
    # a row begins with the unchanged image; among tiles it needs one of its own
    return [UNCHANGED, *changes] if family.sheet.is_tiled and family.sheet.has_unchanged else list(changes)


def _measures(data: PagesData, family: Family) -> dict[str, object]:
    """The part of a page that every family has: its lines, the selections and the differences."""
    lines = data.tables[family.name]
    differences = data.tables[family.differences]
    selections = list(dict.fromkeys(lines["selection"]))
    return {
        "selections": {name: _selected(lines, name) for name in selections},
        "of": _by_key(read_lines(lines, LINE_COLUMNS), family),
        "first": selections[0],
        "notes": {name: _notes_in(data.tables["notes"], family.name, name) for name in selections},
        "not_shares": family.not_shares,
        "differences": [
            row | {"factor": family.scale(row["measure"])[0]}
            for row in differences[differences["measure"].isin(family.shown_differences)].to_dict("records")
        ],
    }


def _selected(lines: pd.DataFrame, selection: str) -> dict[str, object]:
    """The number of images in a selection, one or one for each model, and whether it is enough for any of them."""
    of_models = lines[lines["selection"] == selection].drop_duplicates("model")
    counts = dict(zip(of_models["model"], of_models["images"], strict=True))
    text = images_text(counts)
    is_measured = max(counts.values()) >= MIN_IMAGES
    text += "" if is_measured else f"; intervals need {MIN_IMAGES} or more"
    return {"counts": text, "is_measured": is_measured}


def _by_key(lines: Iterable[Measure], family: Family) -> dict[tuple[str, ...], Measure]:
    """Each line by selection, model, measure and change, shares in percent."""
    return {
        (each.selection, each.model, each.measure, each.change): each.scaled(family.scale(each.measure)[0])
        for each in lines
    }


def run(study: Study) -> None:
    """Read the measures and some images of the finished sets, write report/."""
    opened = OpenedStudy.read(study)
    params = opened.params
    families = families_in(params)
    models = params.models(opened.roles)
    tables = read_measures(study.measures, families, models)
    plans = list(map(opened.plan, families))
    notices = {plan.name: notice(plan.family, params, opened.images.rows, opened.classes) for plan in plans}
    with replacing(study.report) as folder:
        # images first: the pages name their files
        sheets = save_sheets(plans, folder)
        data = PagesData(
            roles=models,
            classes=opened.classes,
            params=params,
            tables=tables,
            sheets=sheets,
            notices=notices,
            masks=opened.sources.masks,
            published_top1=opened.edition.count.published_top1,
        )
        try:
            texts = pages(data)
        except (IndexError, KeyError, UndefinedError) as error:  # each table is whole, but not the set of them
            raise CleansetError(
                f"{study.measures}: rows are missing ({error}); expected tables of one run of stage measure: "
                f"{MEASURE_REMEDY}"
            ) from None
        for name, text in texts.items():
            write_text(folder / name, text)


def save_sheets(plans: Sequence[ChangePlan], folder: Path) -> dict[str, list[SheetImage]]:
    """Write small copies of some images with the changes of each family: half the size, as JPEG."""
    found = dict[str, list[SheetImage]]()
    for plan in plans:
        sheet = plan.family.sheet
        images = f"images/{plan.name}"
        changes = [*([(UNCHANGED, 0)] if sheet.has_unchanged else []), *plan.changes]
        rows = spread_over_classes(plan.images, sheet.images)
        if rows.empty:
            continue
        changed = plan.changed_images()
        found[plan.name] = []
        for file, image_id, class_index in zip(rows["file"], rows["image_id"], rows["class_index"], strict=True):
            files = {change: f"{images}/{image_id}_{change[0]}_{change[1]}.jpg" for change in changes}
            for (change, step), name in files.items():
                small = changed(ChangeName(file, change, step)).resize(SHOWN_SIZE, Image.Resampling.BICUBIC)
                # an id of your own images has folders
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(jpeg(np.asarray(small), QUALITY))
            found[plan.name].append(SheetImage(image_id, plan.classes.names[class_index].name, files))
    return found


def spread_over_classes(images: pd.DataFrame, count: int) -> pd.DataFrame:
    """The first image of each of `count` classes, spread over all classes."""
    first = images.drop_duplicates("class_index").sort_values("class_index")
    count = min(count, len(first))
    return first.iloc[[place * len(first) // count for place in range(count)]]


def paper_table(folder: Path, family_name: str, measure: str | None, selection: str | None) -> MeasureTable:
    """The measures of a family in the folder `measures`, of a study or of `robustness evaluate`.

    A row for each model with its measures over all changes; or with `measure`, such as error or ce, a row for each
    change and a column for each model. `selection`: None stands for the first one. Raises CleansetError for a folder
    without measures, and for a family, measure or selection that is not there.
    """
    measures = next((each for each in (folder / "data" / "measures", folder / "measures") if each.is_dir()), None)
    if measures is None:
        raise CleansetError(
            f"{folder}: no measures; expected the folder of a study whose stage measure has run, or one that "
            "cleanset robustness evaluate has written"
        )
    measured = {family.name: family for family in FAMILIES if (measures / f"{family.name}.csv").is_file()}
    check_known("family", family_name, measured)
    family = measured[family_name]
    tables = read_measures(measures, [family], None)
    every = read_lines(tables[family_name], LINE_COLUMNS)
    selection = selection or every[0].selection
    check_known("selection", selection, dict.fromkeys(each.selection for each in every))
    lines = [each for each in every if each.selection == selection]
    notes = _notes_in(tables["notes"], family_name, selection)
    caption = f"{family_name}, {'shares in ' if family.not_shares else ''}percent, with 95 % intervals"
    whole = [each for each in lines if not each.change]
    if measure is None:
        return replace(whole_table(whole, family, family.headlines), caption=caption, notes=notes)
    # a measure that is missing over all changes has the reason there
    reasons = [each.problem for each in whole if each.measure == f"m{measure}" and each.problem]
    by_change = [each for each in lines if each.change]
    names = dict.fromkeys(each.measure for each in by_change)
    if measure not in names and reasons:
        raise CleansetError(f"measure {shown(measure)}: {reasons[0]}")
    check_known("measure", measure, names)
    found = [each for each in by_change if each.measure == measure]
    models = list(dict.fromkeys(each.model for each in found))
    rows = _rows(found, family, label="change", column="model", columns=models)
    return MeasureTable(("change",), models, rows, caption=f"{_title(family, measure)}; {caption}", notes=notes)


def _title(family: Family, measure: str) -> str:
    """The title of a measure of a change, from that of its mean over changes."""
    if mean := family.headlines.get(f"mean_{measure}"):
        return mean.removeprefix("mean ")
    return family.headlines.get(f"m{measure}", measure.replace("_", " ")).removeprefix("m")


def whole_table(lines: Sequence[Measure], family: Family, titles: Mapping[str, str]) -> MeasureTable:
    """A row for each model, a column for each of the measures that have a title and are among the lines."""
    measured = {each.measure for each in lines}
    shown_titles = {name: title for name, title in titles.items() if name in measured}
    rows = _rows(lines, family, label="model", column="measure", columns=list(shown_titles))
    return MeasureTable(("model",), list(shown_titles.values()), rows)


def _notes_in(table: pd.DataFrame, family: str, selection: str) -> list[Note]:
    """The notes of a table of a family's measures on a selection, from the file of notes."""
    rows = table[(table["family"] == family) & (table["selection"] == selection)]
    return [Note(str(name), str(text)) for name, text in zip(rows["note"], rows["text"], strict=True)]


def _rows(
    lines: Iterable[Measure], family: Family, *, label: str, column: str, columns: Sequence[str]
) -> list[tuple[tuple[str], list[Cell]]]:
    """The rows of a table: one for each value of the field `label`.

    `columns`: the values of the field `column` that have a cell.
    """
    missing = measure_cell(NOT_MEASURED)
    cells: dict[str, dict[str, Cell]] = {}
    for each in lines:
        cells.setdefault(getattr(each, label), {})[getattr(each, column)] = family.cell(each)
    return [((name,), [found.get(each, missing) for each in columns]) for name, found in cells.items()]
