"""The report's pages, from the numbers and the images: Jinja2 templates, style and script inlined, text escaped."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar
from unicodedata import bidirectional

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from cleanset.classes import ClassTable
from cleanset.images.boxes import UNKNOWN_BOX, Box
from cleanset.report.fates import HardClass, ReportedCandidate
from cleanset.report.figures import ClassState, CountsByName, FunnelStep, Histogram, Rejects
from cleanset.report.thumbnails import PageImage
from cleanset.review.agreement import Agreement, VerdictAgreement
from cleanset.review.store import BOARD, basis_of
from cleanset.review.verdicts import Review
from cleanset.selection.class_size import ImagesPerClass
from cleanset.statistics.raters import coefficient_text
from cleanset.statistics.shares import in_percent

TEMPLATES = Path(__file__).parent / "templates"

Page = TypeVar("Page")

ShownImage = tuple[str, Box | None]
"""An image id, and the crop box to draw in it and cut out; None for a whole image."""


CLASSES_PER_SHEET = 50


@dataclass(frozen=True, slots=True)
class Sheet:
    """One page: the file's name, and the classes on it."""

    file: str
    classes: tuple[ClassState, ...]


def sheets(states: Sequence[ClassState]) -> list[Sheet]:
    """The classes in pages of CLASSES_PER_SHEET, by class index."""
    pages = [tuple(states[start : start + CLASSES_PER_SHEET]) for start in range(0, len(states), CLASSES_PER_SHEET)]
    digits = len(str(len(pages)))
    return [Sheet(f"sheet-{number:0{digits}}.html", page) for number, page in enumerate(pages, start=1)]


PageImages = Mapping[ShownImage, Sequence[PageImage]]
"""The files of each image that is shown: one of a whole image, two of a cropped one, before and after the crop."""


@dataclass(frozen=True, slots=True)
class ReportData:
    """All that the pages show, beside the images."""

    classes: ClassTable
    roles: tuple[str, ...]
    """The models, in the order of params.yaml."""

    networks: Mapping[str, str]
    """The network of each model in words, by role."""

    notices: tuple[str, ...]
    """Limits of the sets as a whole, in sentences."""

    images_per_class: ImagesPerClass
    """Number of images that each class should have."""

    readings: tuple[str, ...]
    """The choices where a source's text and its authors' practice differ, in sentences."""

    candidates_of: CountsByName
    """Number of candidates by role."""

    steps: tuple[FunnelStep, ...]
    states: tuple[ClassState, ...]
    """The state of each class, by class index."""

    by_size: Mapping[range, CountsByName]
    """Number of classes by role, by the number of images kept in them, or several numbers together."""

    histograms: tuple[Histogram, ...]
    distinct_images: int
    """Number of different images in all sets together."""

    overlaps: tuple[tuple[tuple[str, ...], int], ...]
    """Number of images that exactly these models keep."""

    pairwise: Mapping[tuple[str, str], int]
    """Number of images that both models of a pair keep."""

    rejects: tuple[Rejects, ...]
    rejected: int
    """Number of images that no model keeps and some model rejects for a flaw."""

    reviewed: int
    """Number of different images with a verdict."""

    hardest: tuple[HardClass, ...]
    totals: Mapping[str, Mapping[str, float]]
    """A number by role, by the name of its line in `dvc metrics show`."""

    reviewers: Mapping[str, CountsByName]
    """Number of verdicts of each kind, by reviewer."""

    agreement: Agreement
    verdicts: Mapping[str, VerdictAgreement]
    pairs: Mapping[tuple[str, str], Agreement]
    """The agreement of two reviewers, by their names."""

    differences: int
    """Number of images on which reviewers differ."""

    candidates: Mapping[int, Sequence[ReportedCandidate]]
    """By class index."""

    sheets: tuple[Sheet, ...]
    bases: Mapping[str, CountsByName] = field(default_factory=dict)
    """Number of verdicts on each basis, by reviewer; of those alone who gave one that is not explicit."""

    is_scored: bool = True
    """Whether some model has scores; otherwise the images are in a random order."""

    has_networks: bool = True
    """Whether some model is a network, which was run on the crops, too."""


def pages(report: ReportData, images: PageImages) -> dict[str, str]:
    """The text of each page, by its path."""
    names = report.classes.names
    environment = page_environment(report.classes)
    on_sheet = {state.class_index: sheet.file for sheet in report.sheets for state in sheet.classes}
    common = {
        "report": report, "names": names, "sheet_of": on_sheet, "images": images, "up": "",
        "several": len(report.roles) > 1, "word": "model" if report.is_scored else "set",
    }  # fmt: skip
    by_key = {(each.class_index, each.image_id): each for every in report.candidates.values() for each in every}
    written = {
        "index.html": environment.get_template("index.html").render(
            common, reviewers=[name for name in report.reviewers if name != BOARD]
        ),
        "classes.html": environment.get_template("classes.html").render(common),
        "rejected.html": environment.get_template("rejected.html").render(common, candidate_of=by_key),
    }
    for sheet, neighbours in _with_neighbours(report.sheets):
        written[sheet.file] = environment.get_template("sheet.html").render(common, sheet=sheet, **neighbours)
    of_class = environment.get_template("class.html")
    for state, around in _with_neighbours(report.states):
        text = of_class.render({**common, "up": "../"}, state=state, **around)
        written[f"classes/{names[state.class_index].key}.html"] = text
    return written


def _with_neighbours(pages: Sequence[Page]) -> Iterator[tuple[Page, dict[str, Page | None]]]:
    """Each page, with the one before and the one after it."""
    for before, page, after in zip([None, *pages], pages, [*pages[1:], None], strict=False):
        yield page, {"previous": before, "next": after}


def page_environment(classes: ClassTable, *folders: Path) -> Environment:
    """The environment of the report's templates, and of those in `folders`, which may extend base.html."""
    # StrictUndefined: a misspelled name raises, where Jinja2 by default prints nothing
    environment = Environment(
        loader=FileSystemLoader([*folders, TEMPLATES]), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    environment.globals |= {"class_column": classes.key_column, "search_words": classes.search_words}
    environment.filters |= {
        "number": _number, "counted": _counted, "share": _share, "coefficient": coefficient_text, "words": _words,
        "breakable": _breakable, "probability": _probability, "opinion": _opinion, "short_id": _short_id,
        "directed": _directed,
    }  # fmt: skip
    environment.tests["unknown_box"] = lambda box: box is UNKNOWN_BOX
    return environment


def _number(value: float) -> str:
    """A whole number with commas, another one as short as it is exact."""
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' if count != 1 else ''}"


def _share(value: float | None) -> str:
    """Percent, with the digits that the metrics have."""
    return "–" if value is None else f"{in_percent(value):g} %"


def _probability(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _opinion(review: Review) -> str:
    """A verdict with its reason, and its basis where it is not explicit."""
    basis = basis_of(review)
    parts = [review.verdict.kind, *([_words(review.reason)] if review.reason else [])]
    return ", ".join(parts) + ("" if basis == "explicit" else f" ({basis})")


def _short_id(image_id: str, key: str = "") -> str:
    """An image id without what all have in common, or those of the class with this key."""
    return image_id.removeprefix("ILSVRC2012_val_").removeprefix(f"{key}/")


def _words(name: str) -> str:
    return name.replace("_", " ")


def _directed(name: str) -> str:
    """A name in the direction of its letters: Arabic runs from right to left, whatever stands beside it."""
    runs_left = any(bidirectional(letter) in ("R", "AL") for letter in name)
    return Markup('<bdi dir="auto">{}</bdi>').format(name) if runs_left else name


def _breakable(name: str) -> Markup:
    """A name that may be broken after its underscores."""
    return Markup("<wbr>").join(Markup(escape(part)) for part in name.replace("_", "_ ").split(" "))
