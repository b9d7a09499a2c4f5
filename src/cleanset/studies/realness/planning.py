"""`cleanset study plan`: the number of people needed; writes a plan's lists, stimuli, key and copy of the page.

All stimuli have one size and format, so that nothing else reveals which are real. The number of people is the one that
the two one-sided tests of `analysis` need.

In a balanced study the effect is a difference of two means, and its variance is (Snijders and Bosker, "Multilevel
Analysis", 2nd ed. 2012, chapter 11, with images as a second, crossed factor)

    slope / people + residual * (1 / all real ratings + 1 / all modified ratings)
                   + real / real images + modified / modified images

An image counts at most as often as it is used: many people cannot make up for few images. The power applies to two
one-sided tests with people - 1 degrees of freedom, from the t distribution around the true effect.
"""

import io
import json
import math
import shutil
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageOps
from scipy.stats import t

from cleanset.classes import ClassTable
from cleanset.errors import CleansetError
from cleanset.image_ids import IMAGE_SUFFIXES, ImageNames
from cleanset.images.codec import decode_file
from cleanset.plumbing.files import new_folder, sha256, write_text
from cleanset.plumbing.json_files import with_digest, write_json
from cleanset.plumbing.progress import tracked
from cleanset.sets.folder import read_image, read_regular_file, read_set
from cleanset.sets.manifest import Entry
from cleanset.statistics.formats import decimal, rounded
from cleanset.studies.realness.analysis import fit_ratings
from cleanset.studies.realness.edits import EDITS, visibly_edited
from cleanset.studies.realness.layout import ImageLayout
from cleanset.studies.realness.mixed import Variances
from cleanset.studies.realness.plan import (
    PlanRequest,
    StudyImage,
    StudyPlan,
    example_file,
    key_csv,
    make_plan,
    page_data,
    seeded_order,
    trials_csv,
)
from cleanset.studies.realness.plan_files import (
    KEY,
    PAGE_FOLDER,
    PAGE_IMAGES,
    PLAN,
    TEXTS,
    TRIALS,
    USUAL_TEXTS,
    digests,
    read_texts,
)
from cleanset.studies.realness.plates import MIN_SIDE
from cleanset.studies.realness.plates import plate as draw_plate
from cleanset.studies.realness.protocol import SHOWN_MILLISECONDS, Protocol, check_parts, parts_of, protocol_in_words
from cleanset.studies.realness.ratings import ImageKind, read_ratings, texts_of

MAX_SIDE = 2048
TILES = 4
"""Tiles along each side of an obviously modified image."""

PUBLISHED_FIT = Variances(person=0.198, slope=0.376, covariance=-0.191, real=0.501, modified=0.143, residual=0.928)
"""The medians over the six published studies of different people (without cadv_4_6), each by `mixed.fit`."""
MAX_PEOPLE = 100_000


class StudyDesign(NamedTuple):
    """A planned study: the numbers of real and of modified images, and the requirements on lists and test."""

    real_images: int
    modified_images: int
    wish: PlanRequest
    variances: Variances = PUBLISHED_FIT

    def standard_error(self, people: int) -> float:
        """The standard error of the effect with a number of people."""
        found = self.variances
        real = people * self.wish.real
        modified = people * self.wish.modified
        ratings = found.slope / people + found.residual * (1 / real + 1 / modified)
        # an image counts once, however many people rate it
        images = found.real / min(real, self.real_images) + found.modified / min(modified, self.modified_images)
        return math.sqrt(ratings + images)

    def power(self, people: int) -> float:
        """The probability, 0 to 1, that the tests find equivalence; `people` is at least 2."""
        error = self.standard_error(people)
        degrees = people - 1
        critical = t.ppf(1 - self.wish.alpha, degrees)
        misses = (t.sf((self.wish.bound + side * self.wish.effect) / error - critical, degrees) for side in (1, -1))
        # in a study that is much too small both misses are likely, and their sum is above 1
        return max(0.0, 1 - float(sum(misses)))

    def people_needed(self) -> int:
        """The smallest number of people with at least the power that is wanted.

        Raises CleansetError if no number of people is enough, because the images are too few or the effect is not
        smaller than the bound.
        """
        if self.power(MAX_PEOPLE) < self.wish.power:
            raise CleansetError(
                f"the plan: even {MAX_PEOPLE:,} people who rate {self.real_images} real and {self.modified_images} "
                f"modified images have less than {100 * self.wish.power:g} % power for a bound of {self.wish.bound:g}; "
                f"take more images or a wider bound"
            )
        # the power grows with the number of people
        return 2 + bisect_left(range(2, MAX_PEOPLE), True, key=lambda people: self.power(people) >= self.wish.power)


Size = tuple[int, int]


def shown_image(image: Image.Image, size: Size) -> Image.Image:
    """The stored pixels of an image as RGB, its middle cut to the aspect ratio and resized to the size.

    An image of that size is not resampled.
    """
    image = image.convert("RGB")
    if image.size != size:
        image = ImageOps.fit(image, size, Image.Resampling.LANCZOS)
    # a copy without metadata, which might reveal the source
    return Image.fromarray(np.asarray(image))


def plain_png(image: Image.Image) -> bytes:
    """PNG of an image without compression: all images of one size in pixels have the same number of bytes.

    Noise and other changes compress badly, so that the length of a compressed file reveals which images are modified.
    """
    out = io.BytesIO()
    image.save(out, format="PNG", compress_level=0)
    return out.getvalue()


def scramble(image: Image.Image, seed: int) -> Image.Image:
    """An obviously modified copy: cut into tiles, which change places, every other one as a negative."""
    pixels = np.asarray(image).copy()
    height, width = (side // TILES for side in pixels.shape[:2])
    places = [(row * height, column * width) for row in range(TILES) for column in range(TILES)]
    order = seeded_order([str(place) for place in range(len(places))], seed, "tiles")
    original = pixels.copy()
    # negatives, too: in an even image, tiles that only change places show nothing
    for place, (target, source) in enumerate(zip(places, (places[int(each)] for each in order), strict=True)):
        tile = original[source[0] : source[0] + height, source[1] : source[1] + width]
        pixels[target[0] : target[0] + height, target[1] : target[1] + width] = (
            255 - tile if sum(divmod(place, TILES)) % 2 else tile
        )
    return Image.fromarray(pixels)


def attacked_images(folder: Path) -> list[str]:
    """The JPEGs and PNGs in a folder, at any depth, by their path in it, sorted; hidden ones are left out."""
    if not folder.is_dir():
        raise CleansetError(f"{folder}: not a folder; expected one with attacked images")
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.suffix.lower() in IMAGE_SUFFIXES)
    names = sorted(path.as_posix() for path in found if not any(part.startswith(".") for part in path.parts))
    if not names:
        raise CleansetError(f"{folder}: no images; expected attacked images as JPEGs or PNGs")
    return names


def source_of(name: str, classes: ClassTable, entries: Iterable[Entry] = ()) -> str:
    """The id of the image that an attacked one was made from, by its file's name; "" without one.

    For your own images, the name ends as a file or id of the set, whatever the suffixes.
    """
    files = {entry.file: entry.image_id for entry in entries}
    return ImageNames(files.values(), classes, files).find(name) or ""


def common_size(paths: Mapping[str, Path]) -> Size:
    """The width and height of all images. Raises CleansetError if they differ."""
    sizes = {name: decode_file(read_regular_file(path), path).size for name, path in paths.items()}
    first = next(iter(sizes))
    for name, size in sizes.items():
        if size != sizes[first]:
            found = f"{name} has {size[0]} x {size[1]} pixels, {first} {sizes[first][0]} x {sizes[first][1]}"
            raise CleansetError(f"{found}; expected attacked images of one size: choose one for all with --side")
    if max(sizes[first]) > MAX_SIDE:
        raise CleansetError(
            f"{first}: {sizes[first]} pixels; expected at most {MAX_SIDE} a side: choose one with --side"
        )
    return sizes[first]


def write_stimuli(
    folder: Path,
    plan: StudyPlan,
    size: Size,
    protocol: Protocol,
    *,
    set_folder: Path,
    entries: Mapping[str, Entry],
    attacked: Path,
) -> dict[tuple[ImageKind, str], str]:
    """Write all images in the order of their new names; the SHA-256 of the bytes that each was made from."""
    folder.mkdir(parents=True)
    digests = {}

    def read(image: StudyImage) -> tuple[bytes, Image.Image]:
        is_real = image.kind == "real"
        path = (set_folder if is_real else attacked) / image.name
        data = read_image(set_folder, entries[image.name]) if is_real else read_regular_file(path)
        return data, shown_image(decode_file(data, path), size)

    # else the times of the files would show which images are real
    order = sorted(plan.images, key=plan.stimulus)
    for image in tracked(order, len(order), "images"):
        data, shown = read(image)
        digests[image.kind, image.name] = sha256(data)
        (folder / f"{plan.stimulus(image)}.png").write_bytes(plain_png(shown))
    for number, pair in enumerate(plan.pairs):
        _, plain = read(pair.image)
        is_edited = protocol.pair_change == "edits"
        modified = visibly_edited(plain, number, plan.seed) if is_edited else scramble(plain, plan.seed)
        for side, file in (("left", pair.left), ("right", pair.right)):
            (folder / file).write_bytes(plain_png(modified if side == pair.modified else plain))
    for plate in plan.plates:
        drawn = draw_plate(plate.digit, plate.deficiency, size, plan.seed)
        (folder / f"{plate.stimulus}.png").write_bytes(plain_png(drawn))
    if plan.example is not None:
        _, plain = read(plan.example)
        for name in ("", *EDITS):
            edited = EDITS[name](plain, plan.seed) if name else plain
            (folder / example_file(plan.seed, plan.example, name)).write_bytes(plain_png(edited))
    return digests


def example_files(plan: StudyPlan) -> list[str]:
    """The files of the examples: the original image, then each edit of EDITS."""
    if plan.example is None:
        return []
    return [example_file(plan.seed, plan.example, name) for name in ("", *EDITS)]


STATIC = (
    "index.html", "study.css", "study.js", "card.js", "digits.js", "seen.js", "pixels.js", "loader.js",
    "jspsych.min.js", "html-button-response.min.js", "jspsych.LICENSE",
)  # fmt: skip


def static_file(name: str) -> bytes:
    """A file of the page that is the same in every plan."""
    package = "web" if name in ("digits.js", "seen.js", "pixels.js", "loader.js") else "studies.realness"
    return (files(f"cleanset.{package}") / "static" / name).read_bytes()


class PlanOutcome(NamedTuple):
    """A plan, its images on the screen, and its design; `needed`: people for the bound (None: no number is enough)."""

    plan: StudyPlan
    layout: ImageLayout
    design: StudyDesign
    needed: int | None


def write_plan(
    set_folder: Path, attacked: Path, out: Path, wish: PlanRequest, pilot: Path | None = None
) -> PlanOutcome:
    """Write the plan into `out`, a new or empty folder. Raises CleansetError for images that cannot be read."""
    check_parts(wish)
    texts = wish.texts or USUAL_TEXTS
    data = read_texts(texts)
    found = read_set(set_folder)
    classes = found.classes
    entries = {entry.file: entry for entry in sorted(found.entries, key=lambda entry: entry.file)}
    made = attacked_images(attacked)
    images = [StudyImage("real", name, entry.image_id, entry.wnid) for name, entry in entries.items()]
    images += [StudyImage("modified", name, source_of(name, classes, entries.values())) for name in made]
    design = StudyDesign(len(entries), len(made), wish, PUBLISHED_FIT if pilot is None else variances_of(pilot))
    try:
        needed = design.people_needed()
    except CleansetError:
        if wish.people is None:
            raise
        needed = None
    people = wish.people or needed or 0
    plan = make_plan(images, replace(wish, people=people))
    if max(most for _, most in plan.shown.values()) < 2:
        raise CleansetError(
            f"the plan: no image is rated twice by {people} people with {wish.real} real and {wish.modified} modified "
            "images each, and nothing can be estimated; expected more people, or fewer images in the two folders"
        )
    # the size of the attacked images by default, so that these are not resampled
    size = (wish.side, wish.side) if wish.side else common_size({name: attacked / name for name in made})
    if plan.plates and min(size) < MIN_SIDE:
        raise CleansetError(
            f"plates: images of {size[0]} x {size[1]} pixels; expected {MIN_SIDE} a side or more for digits of dots: "
            "choose a size with --side, or plates=0"
        )
    layout = ImageLayout(size=size, width_mm=wish.width_mm)
    outcome = PlanOutcome(plan=plan, layout=layout, design=design, needed=needed)
    with new_folder(out) as folder:
        sources = write_stimuli(
            folder / PAGE_IMAGES, plan, size, wish, set_folder=set_folder, entries=entries, attacked=attacked
        )
        write_text(folder / KEY, key_csv(plan, sources, classes))
        write_text(folder / TRIALS, trials_csv(plan))
        pinned = with_digest(record(outcome) | {"sha256": digests(folder)})
        write_json(folder / PLAN, pinned)
        for name in STATIC:
            (folder / PAGE_FOLDER / name).write_bytes(static_file(name))
        shutil.copyfile(texts, folder / TEXTS)
        page = page_data(data, layout, wish, example_files(plan))
        page["lists"] = [[each.data() for each in trials] for trials in plan.lists]
        content = json.dumps(page, separators=(",", ":"))
        write_text(folder / PAGE_FOLDER / "lists.js", f"const STUDY = {content};\n")
    return outcome


def variances_of(pilot: Path) -> Variances:
    """The variance components of a pilot study's ratings."""
    found = read_ratings(texts_of([pilot]))
    if found.invalid:
        raise CleansetError(found.invalid[0])
    return fit_ratings(found.ratings).variances


def record(outcome: PlanOutcome) -> dict[str, object]:
    """The content of plan.json: the options of the plan, and its power."""
    plan = outcome.plan
    design = outcome.design
    wish = design.wish
    kinds = [image.kind for image in plan.images]
    return {
        "people": len(plan.lists),
        "seed": plan.seed,
        "images": {
            "real": kinds.count("real"),
            "modified": kinds.count("modified"),
            "pixels": list(outcome.layout.size),
            "width_mm": wish.width_mm,
        },
        "list": {"real": wish.real, "modified": wish.modified},
        "protocol": asdict(parts_of(wish)),
        "examples": example_files(plan),
        "people_of_an_image": {kind: list(ends) for kind, ends in plan.shown.items()},
        "people_who_see_two_of_one_source": plan.sources_twice,
        "test": {"bound": wish.bound, "alpha": wish.alpha, "effect": wish.effect},
        "variances": {name: rounded(value, 4) for name, value in asdict(design.variances).items()},
        "standard_error": rounded(design.standard_error(len(plan.lists)), 4),
        "power": rounded(design.power(len(plan.lists)), 4),
        "people_needed": {"power": wish.power, "people": outcome.needed},
        "shown_milliseconds": SHOWN_MILLISECONDS,
    }


def plan_summary(outcome: PlanOutcome, out: Path) -> str:
    """The plan in a few lines of text."""
    plan = outcome.plan
    design = outcome.design
    wish = design.wish
    shown = "; ".join(
        f"each {kind} image to {low if low == high else f'{low} or {high}'}" for kind, (low, high) in plan.shown.items()
    )
    needed = f"{outcome.needed:,} people" if outcome.needed else "more images: no number of people is enough"
    lines = [
        f"{out}: {len(plan.lists):,} lists of {wish.real} real and {wish.modified} modified images, "
        f"{wish.attention} attention checks and {wish.pairs} pairs",
        f"protocol: {protocol_in_words(parts_of(wish))}",
        f"people who see it: {shown}",
        f"power for a bound of ±{wish.bound:g} at alpha {wish.alpha:g}: {decimal(design.power(len(plan.lists)))} "
        f"(standard error {decimal(design.standard_error(len(plan.lists)), 3)}); {wish.power:g} needs {needed}",
    ]
    lines.append(_window(outcome))
    if plan.sources_twice:
        lines.append(f"{plan.sources_twice:,} people see two images of one source: more images would prevent it")
    return "\n".join(
        [*lines, f"give people {out / PAGE_FOLDER}, index.html?list=1 and so on; keep {KEY} and {PLAN} to yourself"]
    )


def _window(outcome: PlanOutcome) -> str:
    """The smallest window in which the page asks."""
    wish = outcome.design.wish
    layout = outcome.layout
    images = 2 if wish.pairs else 1
    sizes = [layout.least_window(images, ratio) for ratio in (1, 2)]
    usual, fine = (f"{across} x {down}" for across, down in sizes)
    if layout.width_mm is not None:
        return f"smallest window: about {usual} CSS pixels, by the screen, which people measure with a card"
    return f"smallest window: {usual} CSS pixels at a pixel ratio of 1, {fine} at 2"
