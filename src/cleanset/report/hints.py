"""The command `hints`: the hints of the review page at any images, as a table and as one page."""

import base64
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from rich.console import Group, RenderableType

from cleanset.classes import ClassTable, imagenet
from cleanset.dataset.folder import image_locations, images_below
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError, install_command
from cleanset.image_ids import IMAGE_SUFFIXES, check_image_names, parse_image_name
from cleanset.images.codec import decode
from cleanset.images.fingerprints import can_fingerprint
from cleanset.images.local_features import can_find_features
from cleanset.plumbing.csv_files import csv_text
from cleanset.plumbing.files import is_there, sha256, write_text
from cleanset.plumbing.kept_files import KeptFiles
from cleanset.plumbing.machine import available_cores, keep_freed_memory
from cleanset.plumbing.progress import found_in_threads, print_notice, tracked
from cleanset.plumbing.validation import join_names
from cleanset.report.pages import page_environment
from cleanset.report.thumbnails import PageImage, kept_thumbnails, usual_thumbnail_files
from cleanset.review.hints.hints import Measuring
from cleanset.review.hints.kinds import MEASURED_HINTS, measured_hints
from cleanset.review.hints.ranked import (
    MAX_COMPARED_PARTS,
    MAX_SHARED_PARTS,
    HintedImage,
    ImageLook,
    hinted_images,
    look_at,
    not_compared_parts,
)
from cleanset.review.hints.text import KEPT_LINES, can_read_text, lines_of_text, usual_text_files
from cleanset.review.terminal import grid
from cleanset.sets.fetching.releases import opened
from cleanset.sets.folder import check_outside, one_set, read_image, read_set
from cleanset.sets.manifest import MANIFEST, check_not_empty
from cleanset.statistics.basics import most_first
from cleanset.statistics.formats import counted, decimal

COLUMNS = ("image", "hint", "severity", "sign", "measure", "value", "limit", "other")
CUSTOM = "--custom-hint"
MAX_TEXT_UNASKED = 1_000
"""Images whose text is read without being asked for: a core takes 0.15 to 0.65 s for one."""
TEXT_SECONDS = 0.2
"""Processor seconds to read the text of an image, as most take."""
MAX_ON_PAGE = 500
"""Images on the page by default: 25 KB each."""
ROWS_IN_TERMINAL = 20
_CHUNK = 16
_MIN_OF_PROCESSES = 100
"""Images for which further processes are worth their start."""

Read = Callable[[], bytes]


@dataclass(frozen=True, slots=True)
class HintedPlace:
    """Any images: those of a finished set, or of a folder."""

    source: Path
    read: Mapping[str, Read]
    """From an image's path below `source` to its bytes."""

    classes: ClassTable


@dataclass(frozen=True, slots=True)
class Hints:
    """The hints at any images."""

    source: Path
    count: int
    """Number of images that were looked at."""

    hinted: tuple[HintedImage, ...]
    """The images with a hint, the most severe first."""

    notices: tuple[str, ...]
    """What was not looked for, in sentences."""


def write(
    place: str,
    page: Path | None,
    *,
    most: int = MAX_ON_PAGE,
    text: bool | None = None,
    custom: Sequence[str] = (),
) -> Hints:
    """Find the hints at the images of the only set in a place, or of a folder; write them to a new file `page`.

    `most`: images on the page. `text`: whether text is read; None: of MAX_TEXT_UNASKED images at most. `custom`: hints
    of users by MODULE:NAME. Raises CleansetError for a place without an image that can be read, for a file that is
    there, and as `measured_hints` does.
    """
    if page is not None:
        _check_page(page)
    hints = measured_hints(custom, CUSTOM)
    images = images_in(place)
    if page is not None:
        check_outside(page, images.source)
    reads_text = is_text_read(len(images.read), text)
    looks, unreadable = _looks(images, usual_text_files(), reads_text=reads_text, hints=hints)
    found = Hints(
        source=images.source,
        count=len(looks),
        hinted=tuple(hinted_images(looks, images.classes)),
        notices=(*unreadable, *_notices(list(looks), asked=text, reads_text=reads_text)),
    )
    if page is not None:
        write_text(page, _page_text(found, images, most))
    return found


def is_text_read(images: int, text: bool | None) -> bool:
    """Whether text is read of a number of images; `text`: whether it is asked for, None if not said."""
    return can_read_text() and (images <= MAX_TEXT_UNASKED if text is None else text)


def _check_page(page: Path) -> None:
    if page.suffix != ".html":
        raise CleansetError(f"{page}: not the name of a page; expected a new file that ends in .html")
    if is_there(page):
        raise CleansetError(f"{page}: exists already; expected a new file: remove it, or take another name")


# Images


def images_in(place: str) -> HintedPlace:
    """The images of the only set in a place, or of a folder. Raises CleansetError for a place without any."""
    source = one_set(opened(place))
    if is_there(source / MANIFEST):
        found = read_set(source)
        check_not_empty(found.entries, source)
        entries = sorted(found.entries, key=lambda entry: entry.file)
        return HintedPlace(source, {entry.file: partial(read_image, source, entry) for entry in entries}, found.classes)
    if not source.is_dir():
        raise CleansetError(f"{source}: missing, or not a folder; expected a folder of images, or a finished set")
    if Edition(source).params_yaml.is_file():
        raise CleansetError(
            f"{source}: an edition without a finished set; expected one, or a folder of images: name the folder of its "
            "images, or run dvc repro"
        )
    ids = sorted(images_below(source))
    if not ids:
        raise CleansetError(f"{source}: no image in it; expected files that end in {', '.join(IMAGE_SUFFIXES)}")
    check_image_names(ids, str(source))
    read = {name: location.read for name, location in image_locations(source, ids, str(source)).items()}
    return HintedPlace(source, read, imagenet() if _are_imagenets(ids) else ClassTable(()))


def _are_imagenets(ids: Sequence[str]) -> bool:
    """Whether all images have official names, or are in folders named by wnids."""
    wnids = imagenet().indices
    return all(parse_image_name(PurePosixPath(name).name) or name.partition("/")[0] in wnids for name in ids)


def _looks(
    images: HintedPlace, kept: KeptFiles, *, reads_text: bool, hints: Measuring
) -> tuple[dict[str, ImageLook], list[str]]:
    """A look at each image, by its id, and a line that names those that cannot be read, if there are any.

    Raises CleansetError with that line if none can be read.
    """
    look = partial(look_of, kept=kept, reads_text=reads_text, hints=hints)
    reads = images.read.values()
    processes = looking_processes(len(reads))
    if processes == 1:
        found = list(tracked(map(look, reads), len(reads), "hints"))
    else:
        with ProcessPoolExecutor(processes, initializer=keep_freed_memory) as pool:
            found = list(tracked(pool.map(look, reads, chunksize=_CHUNK), len(reads), "hints"))
    looks = {name: each for name, each in zip(images.read, found, strict=True) if isinstance(each, ImageLook)}
    unreadable = [f"{name} ({each})" for name, each in zip(images.read, found, strict=True) if isinstance(each, str)]
    if not unreadable:
        return looks, []
    those = counted(len(unreadable), "image")
    line = (
        f"{images.source}: {those} of {len(found):,} cannot be read: {join_names(unreadable)}; "
        "expected whole JPEGs or PNGs: repair or remove them"
    )
    if not looks:
        raise CleansetError(line)
    return looks, [line]


def looking_processes(images: int) -> int:
    """The number of processes that look at a number of images; 1: this one alone."""
    return 1 if images < _MIN_OF_PROCESSES else available_cores()


def look_of(read: Read, *, kept: KeptFiles, reads_text: bool, hints: Measuring = MEASURED_HINTS) -> ImageLook | str:
    """The look at an image; the reason why it cannot be read."""
    data = read()
    try:
        image = decode(data)
    except ValueError as error:
        return str(error)
    if not reads_text:
        return look_at(image, hints=hints)
    digest = sha256(data)
    lines = kept.read_value(digest, KEPT_LINES)
    if lines is None:
        try:
            lines = lines_of_text(image)
        except ValueError:  # a shape that is not read: it has no line
            lines = ()
        kept.keep_value(digest, KEPT_LINES, lines)
    return look_at(image, lines, hints)


def _notices(ids: Sequence[str], *, asked: bool | None, reads_text: bool) -> Iterator[str]:
    """What was not looked for."""
    if not can_read_text():
        yield f"Text is not looked for: {install_command('text')}"
    elif not reads_text and asked is None:
        minutes = max(round(len(ids) * TEXT_SECONDS / 60 / available_cores()), 1)
        yield (
            f"Text is not looked for in more than {MAX_TEXT_UNASKED:,} images unless you ask for it with --text: about "
            f"{minutes:,} min here."
        )
    is_by_features = can_find_features() and len(ids) <= MAX_SHARED_PARTS
    if not can_fingerprint():
        yield f"Near-duplicates are not looked for by hashes: {install_command('review')}"
    elif not is_by_features and (folders := not_compared_parts(ids)):
        yield (
            f"Cropped copies are not looked for in folders of more than {MAX_COMPARED_PARTS:,} images: "
            f"{join_names(folders)}"
        )
    if not can_find_features():
        yield f"Copies that are cropped by more than 8 % of a side are not looked for: {install_command('text')}"
    elif len(ids) > MAX_SHARED_PARTS:
        yield f"Copies cropped by more than 8 % of a side are not looked for in over {MAX_SHARED_PARTS:,} images."


# Tables


def as_csv(found: Hints) -> str:
    """A row for each hint, the images by severity."""
    return csv_text(COLUMNS, _rows(found.hinted))


def _rows(hinted: Sequence[HintedImage]) -> Iterator[tuple[str, ...]]:
    for image in hinted:
        for hint in image.hints:
            sign = hint.sign
            yield (
                image.image_id,
                hint.kind,
                decimal(sign.severity, 3),
                sign.text,
                sign.measure,
                _number(sign.value),
                _number(sign.limit),
                hint.other,
            )


def _number(value: float) -> str:
    """A measure or limit in three digits after the point, without zeros at the end."""
    return decimal(value, 3).rstrip("0").rstrip(".")


def counts_by_kind(found: Hints) -> dict[str, int]:
    """The number of images with each kind of hint, the most frequent first."""
    counts = Counter[str](kind for image in found.hinted for kind in {hint.kind for hint in image.hints})
    return most_first(counts)


def summary(found: Hints) -> str:
    """The number of images, and of those with each hint, in a line."""
    each = ", ".join(f"{kind.replace('_', ' ')} {count:,}" for kind, count in counts_by_kind(found).items())
    of_all = counted(found.count, "image")
    return f"{found.source}: {len(found.hinted):,} of {of_all} with a hint{': ' if each else ''}{each}"


def as_table(found: Hints) -> RenderableType:
    """The most severe hints for the terminal, and how many there are of each kind."""
    rows = list(_rows(found.hinted))
    parts: list[RenderableType] = []
    if rows:
        shown = [
            (image, kind.replace("_", " "), sign, value, limit)
            for image, kind, _, sign, _, value, limit, _ in rows[:ROWS_IN_TERMINAL]
        ]
        parts.append(grid(("image", "hint", "sign", "value", "limit"), shown, left=3))
    parts.append(summary(found))
    if len(rows) > ROWS_IN_TERMINAL:
        parts.append(f"The {ROWS_IN_TERMINAL} most severe of {len(rows):,} hints; --format csv prints all.")
    return Group(*parts)


# The page


@dataclass(frozen=True, slots=True)
class _Card:
    image: HintedImage
    shown: PageImage
    others: tuple[tuple[str, PageImage], ...]
    """Images that its hints compare it with."""


def _page_text(found: Hints, images: HintedPlace, most: int) -> str:
    shown = found.hinted[:most]
    needed = dict.fromkeys(name for image in shown for name in (image.image_id, *_others(image)))
    make = partial(_inlined, images, usual_thumbnail_files())
    inlined = dict(zip(needed, found_in_threads(make, needed, "page"), strict=True))
    cards = [
        _Card(image, inlined[image.image_id], tuple((name, inlined[name]) for name in _others(image)))
        for image in shown
    ]
    return (
        page_environment(images.classes)
        .get_template("hints.html")
        .render(
            title=f"Hints: {found.source.resolve().name}",
            found=found,
            counts=counts_by_kind(found),
            cards=cards,
            measured=_number,
        )
    )


def _others(image: HintedImage) -> list[str]:
    return [hint.other for hint in image.hints if hint.other]


def _inlined(images: HintedPlace, kept: KeptFiles, name: str) -> PageImage:
    """The thumbnail of an image, inside its address."""
    data = images.read[name]()
    (made,) = kept_thumbnails(kept, sha256(data), lambda: data, None, enlarged=False)
    return PageImage(f"data:image/jpeg;base64,{base64.b64encode(made.jpeg).decode()}", made.width, made.height)


def print_notices(found: Hints) -> None:
    """Print what was not looked for on standard error."""
    for notice in found.notices:
        print_notice(notice)
