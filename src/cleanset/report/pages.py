"""The report's pages, from the numbers and thumbnails: Jinja2 templates, everything inlined, all text escaped."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from cleanset.dataset.class_names import class_names
from cleanset.images.boxes import Box
from cleanset.report.figures import ClassState, Counts, Histogram, Rejects, Step
from cleanset.report.sheets import Kept, Sheet
from cleanset.report.thumbnails import Thumbnail
from cleanset.review.agreement import Agreement, VerdictAgreement

TEMPLATES = Path(__file__).parent / "templates"

MAX_SHORT_CLASSES = 100
"""Short classes listed on the first page; the page of all classes has them all."""

MAX_COMBINATIONS = 40
"""Combinations of models listed; with ten models there may be 1,023."""

ACCURACY_LINES = {
    "accuracy_top1": "top-1 accuracy, %",
    "accuracy_top1_minus_published": "difference from the published top-1 accuracy, percentage points",
    "accuracy_top5": "top-5 accuracy, %",
    "accuracy_real": "ReaL accuracy, %",
    "correct_of_one_label": "correct on images with one label",
    "margin_smallest_ppm": "smallest margin, in millionths",
    "log_odds_margin_smallest_ppm": "smallest margin in log-odds, in millionths",
    "margins_below_1e-5": "classes with a margin below 0.00001",
}
"""The titles of the metrics on accuracy and margins, by their names."""

ShownImage = tuple[str, Box | None]
"""An image id, and the crop box to draw in it and cut out; None for a whole image."""


@dataclass(frozen=True, slots=True)
class ReportData:
    """All that the pages show, beside the images."""

    roles: tuple[str, ...]
    images_per_class: int
    readings: tuple[str, ...]
    steps: tuple[Step, ...]
    states: tuple[ClassState, ...]
    by_size: Mapping[int, Counts]
    histograms: tuple[Histogram, ...]
    distinct_images: int
    overlaps: tuple[tuple[tuple[str, ...], int], ...]
    pairwise: Mapping[tuple[str, str], int]
    rejects: tuple[Rejects, ...]
    totals: Mapping[str, Mapping[str, float]]
    reviewers: Mapping[str, Counts]
    agreement: Agreement
    verdicts: Mapping[str, VerdictAgreement]
    pairs: Mapping[tuple[str, str], Agreement]
    differences: int
    kept: Mapping[int, Sequence[Kept]]
    sheets: tuple[Sheet, ...]
    bases: Mapping[str, Counts] = field(default_factory=dict)


def pages(report: ReportData, thumbnails: Mapping[ShownImage, Sequence[Thumbnail]]) -> dict[str, str]:
    """The text of each page, by its file name."""
    environment = _environment()
    on_sheet = {state.class_index: sheet.file for sheet in report.sheets for state in sheet.classes}
    common = {"report": report, "names": class_names(), "sheet_of": on_sheet, "thumbnails": thumbnails}
    written = {
        name: environment.get_template(name).render(common) for name in ("index.html", "classes.html", "rejected.html")
    }
    for place, sheet in enumerate(report.sheets):
        neighbours = {
            "previous": report.sheets[place - 1] if place else None,
            "next": report.sheets[place + 1] if place + 1 < len(report.sheets) else None,
        }
        written[sheet.file] = environment.get_template("sheet.html").render(common, sheet=sheet, **neighbours)
    return written


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    environment.filters |= {
        "number": _number, "share": _share, "kappa": _kappa, "words": _words, "breakable": _breakable,
    }  # fmt: skip
    environment.globals |= {
        "max_short_classes": MAX_SHORT_CLASSES,
        "max_combinations": MAX_COMBINATIONS,
        "accuracy_lines": ACCURACY_LINES,
    }
    return environment


def _number(value: float) -> str:
    """A whole number with commas, another one as short as it is exact."""
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


def _share(value: float | None) -> str:
    """Percent, with the digits that the metrics have."""
    return "–" if value is None else f"{round(100 * value, 2):g} %"


def _kappa(value: float | None) -> str:
    return "–" if value is None else f"{round(value, 4):g}"


def _words(name: str) -> str:
    return name.replace("_", " ")


def _breakable(name: str) -> Markup:
    """A name that may be broken after its underscores."""
    return Markup("<wbr>").join(Markup(escape(part)) for part in name.replace("_", "_ ").split(" "))
