"""The report's pages, from the numbers and the images: Jinja2 templates, style and script inlined, text escaped."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TypeVar
from unicodedata import bidirectional

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from cleanset.classes import ClassName, ClassTable
from cleanset.image_ids import short_id
from cleanset.images.boxes import UNKNOWN_BOX, Box
from cleanset.plumbing.files import sha256
from cleanset.report.fates import HardClass, ReportedCandidate
from cleanset.report.figures import ClassState, CountsByName, FunnelStep, Histogram, Rejects
from cleanset.report.thumbnails import PageImage
from cleanset.review.agreement import Agreement, VerdictAgreement
from cleanset.review.store import BOARD, basis_of
from cleanset.review.verdicts import Review
from cleanset.selection.rule import ImagesPerClass
from cleanset.statistics.formats import FILTERS, decimal, in_percent
from cleanset.statistics.raters import coefficient_text

TEMPLATES = Path(__file__).parent / "templates"

Neighbour = TypeVar("Neighbour")

ShownImage = tuple[str, Box | None]
"""An image id, and the crop box to draw in it and cut out; None for a whole image."""


CLASSES_PER_SHEET = 50
IMAGES_PER_SHEET = 2_500
"""Images that a model keeps in the classes of a sheet; one class is never split: ImageNet has 50 in each of 50
classes."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """One page: the file's name, and the classes on it."""

    file: str
    classes: tuple[ClassState, ...]


def sheets(states: Sequence[ClassState]) -> list[Sheet]:
    """The classes in pages of at most CLASSES_PER_SHEET and, of several, IMAGES_PER_SHEET, by class index."""
    found: list[list[ClassState]] = []
    images = 0
    for state in states:
        kept = max(state.kept.values(), default=0)
        if not found or len(found[-1]) == CLASSES_PER_SHEET or images + kept > IMAGES_PER_SHEET:
            found.append([])
            images = 0
        found[-1].append(state)
        images += kept
    digits = len(str(len(found)))
    return [Sheet(f"sheet-{number:0{digits}}.html", tuple(page)) for number, page in enumerate(found, start=1)]


PageImages = Mapping[ShownImage, Sequence[PageImage]]
"""The files of each image that is shown: one of a whole image, two of a cropped one, before and after the crop."""


@dataclass(frozen=True, slots=True)
class ReportData:
    """All that the pages show, next to the images."""

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
    """Number of verdicts on each basis, by reviewer; only reviewers who gave one that is not explicit."""

    is_scored: bool = True
    """Whether some model has scores; otherwise the images are in a random order."""

    has_networks: bool = True
    """Whether some model is a network, which was run on the crops, too."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the report, which is drawn when its text is asked for."""

    draw: Callable[[], str]
    made_from: str = ""
    """SHA-256 of all that `draw` reads, other than code; empty for a page of the report as a whole."""


@dataclass(frozen=True, slots=True)
class ReportPart:
    """The fields of ReportData for some classes: templates of their pages find no others."""

    roles: tuple[str, ...]
    images_per_class: ImagesPerClass
    is_scored: bool
    has_networks: bool
    candidates: Mapping[int, Sequence[ReportedCandidate]]


@dataclass(frozen=True, slots=True)
class ClassPart:
    """All that the page of a class and its sheet show of it."""

    name: ClassName
    state: ClassState
    sheet: str
    """The file of its sheet."""

    candidates: tuple[ReportedCandidate, ...]
    images: PageImages


def pages(report: ReportData, images: PageImages) -> dict[str, Page]:
    """Each page, by its path."""
    environment = page_environment(report.classes)
    on_sheet = {state.class_index: sheet.file for sheet in report.sheets for state in sheet.classes}
    context = _context(report, report.classes.names, on_sheet, images)
    by_key = {(each.class_index, each.image_id): each for every in report.candidates.values() for each in every}
    reviewers = [name for name in report.reviewers if name != BOARD]
    whole: dict[str, dict[str, object]] = {
        "index.html": {"reviewers": reviewers},
        "classes.html": {},
        "rejected.html": {"candidate_of": by_key},
    }
    written = {
        name: Page(partial(environment.get_template(name).render, {**context, **own})) for name, own in whole.items()
    }
    return written | dict(_pages_of_classes(report, images, on_sheet, environment))


def _pages_of_classes(
    report: ReportData, images: PageImages, on_sheet: Mapping[int, str], environment: Environment
) -> Iterator[tuple[str, Page]]:
    """The sheets and the page of each class, each made from what it shows and nothing else."""
    parts = {state.class_index: _class_part(report, images, state, on_sheet) for state in report.states}
    # the records have all their fields in their representation
    digests = {index: sha256(repr(part).encode()) for index, part in parts.items()}
    common = repr((_report_part(report, ()), report.classes.key_column, report.classes.search_words))

    def page(
        template: str, shown: Sequence[ClassPart], around: Mapping[str, object], own: Mapping[str, object]
    ) -> Page:
        made_from = (template, common, *(digests[part.state.class_index] for part in shown), repr(around))
        return Page(
            draw=partial(_draw, environment.get_template(template), report, shown, {**around, **own}),
            made_from=sha256("\n".join(made_from).encode()),
        )

    for sheet, around in _with_neighbours(report.sheets):
        # of the sheets next to it the files alone, of the classes the names
        files = {word: each and Sheet(each.file, ()) for word, each in around.items()}
        shown = [parts[state.class_index] for state in sheet.classes]
        yield sheet.file, page("sheet.html", shown, files, {"sheet": sheet})
    for state, beside in _with_neighbours(report.states):
        names = {word: each and parts[each.class_index].name for word, each in beside.items()}
        shown = [parts[state.class_index]]
        yield f"classes/{shown[0].name.key}.html", page("class.html", shown, names, {"state": state, "up": "../"})


def _draw(template: Template, report: ReportData, shown: Sequence[ClassPart], own: Mapping[str, object]) -> str:
    names = {part.name.class_index: part.name for part in shown}
    names |= {name.class_index: name for name in own.values() if isinstance(name, ClassName)}
    on_sheet = {part.name.class_index: part.sheet for part in shown}
    images = {image: files for part in shown for image, files in part.images.items()}
    return template.render({**_context(_report_part(report, shown), names, on_sheet, images), **own})


def _context(
    report: ReportData | ReportPart,
    names: Sequence[ClassName] | Mapping[int, ClassName],
    on_sheet: Mapping[int, str],
    images: PageImages,
) -> dict[str, object]:
    """The variables of every template."""
    return {
        "report": report, "names": names, "sheet_of": on_sheet, "images": images, "up": "",
        "several": len(report.roles) > 1, "word": "model" if report.is_scored else "set",
    }  # fmt: skip


def _report_part(report: ReportData, shown: Iterable[ClassPart]) -> ReportPart:
    return ReportPart(
        roles=report.roles,
        images_per_class=report.images_per_class,
        is_scored=report.is_scored,
        has_networks=report.has_networks,
        candidates={part.state.class_index: part.candidates for part in shown},
    )


def _class_part(report: ReportData, images: PageImages, state: ClassState, on_sheet: Mapping[int, str]) -> ClassPart:
    candidates = tuple(report.candidates.get(state.class_index, ()))
    keys = [(each.image_id, each.crop) for each in candidates if not each.is_left_over]
    return ClassPart(
        name=report.classes.names[state.class_index],
        state=state,
        sheet=on_sheet[state.class_index],
        candidates=candidates,
        images={key: images[key] for key in keys},
    )


def _with_neighbours(pages: Sequence[Neighbour]) -> Iterator[tuple[Neighbour, dict[str, Neighbour | None]]]:
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
        "number": _number, "share": _share, "coefficient": coefficient_text, "words": _words,
        "breakable": _breakable, "probability": _probability, "opinion": _opinion, "short_id": _short_id,
        "directed": _directed, "flattened": chain.from_iterable, **FILTERS,
    }  # fmt: skip
    environment.tests["unknown_box"] = lambda box: box is UNKNOWN_BOX
    return environment


def _number(value: float) -> str:
    """A whole number with commas, another one as short as possible."""
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


def _share(value: float | None) -> str:
    """Percent, with the digits that the metrics have."""
    return "–" if value is None else f"{in_percent(value):g} %"


def _probability(value: float | None) -> str:
    return decimal(value, 3)


def _opinion(review: Review) -> str:
    """A verdict with its reason, and its basis where it is not explicit."""
    basis = basis_of(review)
    parts = [review.verdict.kind, *([_words(review.reason)] if review.reason else [])]
    return ", ".join(parts) + ("" if basis == "explicit" else f" ({basis})")


def _short_id(image_id: str, key: str = "") -> str:
    """An image id without what all have in common, or those of the class with this key."""
    return short_id(image_id).removeprefix(f"{key}/")


def _words(name: str) -> str:
    return name.replace("_", " ")


def _directed(name: str) -> str:
    """A name in the direction of its letters: Arabic runs from right to left, whatever is next to it."""
    runs_left = any(bidirectional(letter) in ("R", "AL") for letter in name)
    return Markup('<bdi dir="auto">{}</bdi>').format(name) if runs_left else name


def _breakable(name: str) -> Markup:
    """A name that may be broken after its underscores."""
    return Markup("<wbr>").join(Markup(escape(part)) for part in name.replace("_", "_ ").split(" "))
