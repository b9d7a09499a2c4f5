"""The page of a contest and its thumbnails: standing, history, people's decisions on each image, the defences."""

import datetime
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from cleanset.classes import imagenet
from cleanset.images.codec import decode_file, png
from cleanset.images.preprocessing import enlarged_difference, jpeg
from cleanset.plumbing.files import replacing, write_text
from cleanset.report.pages import page_environment
from cleanset.report.thumbnails import PageImage
from cleanset.statistics.coverage import coverage_points
from cleanset.studies.attacks.coverage_lines import limited_points
from cleanset.studies.attacks.page import TEMPLATES as COVERAGE_TEMPLATES
from cleanset.studies.attacks.results import ATTACKED
from cleanset.studies.attacks.warnings import read_warnings
from cleanset.studies.contest.entries import Appeal, BoardDecision, DefenceRun, SubmittedImage
from cleanset.studies.contest.files import ContestFiles, Submission, counted, submitted_images
from cleanset.studies.contest.history import PastStanding, changed, history
from cleanset.studies.contest.image_course import ImageState
from cleanset.studies.contest.judges import JudgeRecords
from cleanset.studies.contest.judging import (
    FAULTS,
    STATEMENTS,
    ImageVerdict,
    JudgeAnswer,
    agreement_by_question,
    box_area,
    by_rule,
    doubled_area,
)
from cleanset.studies.contest.log_lines import Line
from cleanset.studies.contest.log_state import state
from cleanset.studies.contest.objects import Objects, refuse_link
from cleanset.studies.contest.rules import ABSTAIN, MIN_COSIGNERS, SIZE_RULES, SizeRule, after
from cleanset.studies.contest.signers import may_void
from cleanset.studies.contest.standing import Standing, standing
from cleanset.tables import read_table

TEMPLATES = Path(__file__).parent / "templates"
COPY_PIXELS = 320
"""Longest side of the images on the page."""

COPY_QUALITY = 85
"""JPEG quality of the images on the page."""

THUMBNAILS = "page_images"
ATTACKS_FOLDER = Path("..", "attacks")
"""The attacks on the edition's models, from the folder of the contest."""
NONE = "none"
"""The attack that changes nothing; its files are the images as the models see them."""
ATTACKED_COLUMNS = ["image_id", "png", "png_sha256"]


class AttackedImage(NamedTuple):
    """A file made by an attack on a model, and its image; `clean`: the file of that image, if it is stored."""

    attack: str
    role: str
    image_id: str
    clean: Path | None


@dataclass(frozen=True, slots=True)
class CardImage:
    """The small copy of a submitted image, and its origin if an attack of the edition's study made it."""

    thumbnail: PageImage
    attacked: AttackedImage | None = None
    clean: PageImage | None = None
    """Its clean image; None if that is not stored."""

    difference: PageImage | None = None
    """The change from the clean image, enlarged by `factor`."""

    factor: float = 1


ModelWarnings = Mapping[str, Sequence[tuple[str, str]]]
"""By the role of a model of the edition: the signs of gradient masking, each with its evidence."""


def contest_page(
    files: ContestFiles,
    on: datetime.date,
    images: Mapping[str, CardImage],
    *,
    warnings: ModelWarnings,
    past: Sequence[PastStanding],
) -> str:
    """The page at the end of a day; `images`: each published image by its SHA-256; `past`: the standings up to it.

    Raises CleansetError as `standing` does.
    """
    current = standing(files, on)
    files = replace(files, submissions=counted(files.submissions))
    runs = files.runs_by_defence()
    groups = files.rules.groups().names
    cards = image_cards(files, current)
    context: dict[str, object] = {
        "standing": current,
        "history": [(each, {one.name: one.status for one in each.defences}) for each in past],
        "defences": [(each, files.defences[each.name], *run_and_line(runs[each.name])) for each in current.defences],
        "cards": cards,
        "images": images,
        "groups": groups,
        "rules": files.rules,
        "size_rules": SIZE_RULES,
        "statements": STATEMENTS,
        "reasons": reason_counts(current),
        "warnings": warnings_by_defence(files, warnings),
        "agreement": agreement_by_question([[one for _, one in each.judged_by] for each in cards], groups),
        "abstain": ABSTAIN,
        "min_cosigners": MIN_COSIGNERS,
        "doubled_area": doubled_area,
        "box_area": box_area,
    }
    return page_environment(imagenet(), TEMPLATES, COVERAGE_TEMPLATES).get_template("contest.html").render(context)


def warnings_by_defence(files: ContestFiles, warnings: ModelWarnings) -> dict[str, list[tuple[str, str]]]:
    """The signs by defence, from its last run and from the study of its model; only defences with signs."""
    found: dict[str, list[tuple[str, str]]] = {}
    runs = files.runs_by_defence()
    for name, defence in sorted(files.defences.items()):
        # a run without probes says nothing about signs: those of the run before stay
        signs = next((each.signs for each in reversed(runs[name]) if each.signs is not None), [])
        seen = {each.sign: each.text for each in signs}
        # what the study finds of a bare model does not apply to the model in a wrapper
        if defence.model is not None and defence.model.wrapper is None:
            seen |= dict(warnings.get(defence.model.role, ()))
        if seen:
            found[name] = list(seen.items())
    return found


class CoverageLine(NamedTuple):
    """A line of accuracy over coverage, each 0 to 1."""

    name: str
    points: Sequence[tuple[float, float]]


def run_and_line(runs: Sequence[DefenceRun]) -> tuple[DefenceRun | None, CoverageLine | None]:
    """The first run of a defence, which decides on its eligibility, and its first line of accuracy over coverage."""
    for run in runs:
        if run.coverage is not None:
            steps = coverage_points([(covered, mistakes) for covered, mistakes in run.coverage], run.eligibility.images)
            return runs[0], CoverageLine(run.defence, limited_points(steps))
    return (runs[0] if runs else None), None


@dataclass(frozen=True, slots=True)
class ImageCard:
    """All that is known of a published image."""

    image: SubmittedImage
    submission: Submission
    state: ImageState
    given: Mapping[str, str]
    """The answer of each defence, in its last run."""

    judged_by: Sequence[tuple[str, JudgeAnswer]]
    """The judges with their answers, by day."""

    appeals: Sequence[Appeal]
    decisions: Sequence[BoardDecision]
    rules: Mapping[SizeRule, ImageVerdict]
    """The verdict under each rule of size; empty while too few judges have answered."""


def image_cards(files: ContestFiles, current: Standing) -> list[ImageCard]:
    """A card for each published image, in the order of submission."""
    submitted = {image.sha256: (image, each) for each, image in submitted_images(files.submissions)}
    given: dict[str, dict[str, str]] = {}
    for run in sorted(files.runs, key=lambda each: (each.defence, each.date)):
        for sha, answer in run.answers.items():
            given.setdefault(sha, {})[run.defence] = answer
    answers: dict[str, list[tuple[str, JudgeAnswer]]] = {}
    counted_answers: dict[str, list[JudgeAnswer]] = {}
    records = JudgeRecords(files)
    for each in files.answers:
        for sha, one in each.answers.items():
            answers.setdefault(sha, []).append((each.judge, one))
        for sha, one in records.counted(each.judge, each.answers):
            counted_answers.setdefault(sha, []).append(one)
    found = []
    for sha, of_image in current.images.items():
        image, submission = submitted[sha]
        # those up to the day on which enough judges had answered
        last = of_image.judged_on or datetime.date.max
        counting = [answer for answer in counted_answers.get(sha, ()) if answer.date <= last]
        size = (image.width, image.height)
        minimum = files.rules.judges.minimum
        found.append(
            ImageCard(
                image=image,
                submission=submission,
                state=of_image,
                given=given.get(sha, {}),
                judged_by=sorted(answers.get(sha, ()), key=lambda each: (each[1].date, each[0])),
                appeals=sorted((one for one in files.appeals if one.image == sha), key=lambda one: one.date),
                decisions=sorted((one for one in files.decisions if one.image == sha), key=lambda one: one.date),
                rules=by_rule(counting, *size) if len(counting) >= minimum else {},
            )
        )
    return found


def reason_counts(current: Standing) -> list[tuple[str, int, int]]:
    """Each reason, with the number of rejected images that have it first, and that have it at all."""
    rejected = [each.verdict for each in current.images.values() if each.verdict and each.verdict.group is None]
    first = Counter(each.reason for each in rejected)
    every = Counter(reason for each in rejected for reason in each.reasons)
    return [(reason, first[reason], every[reason]) for reason in FAULTS if every[reason]]


def attacked_images(study: Path, wanted: Collection[str]) -> dict[str, AttackedImage]:
    """By SHA-256, the wanted files that an attack of the study made, each with the first attack and model.

    Empty if no attack has run. Raises CleansetError for a table that cannot be read.
    """
    found: dict[str, AttackedImage] = {}
    attacks = study / "data" / "attacks"
    # without submitted images no table has to be read
    for table in sorted(attacks.glob("*/*/attacked.parquet")) if wanted else []:
        attack = table.parent.parent.name
        role = table.parent.name
        if attack == NONE:
            continue
        rows = read_table(table, ATTACKED, imagenet(), columns=ATTACKED_COLUMNS)
        for image_id, file, digest in rows[rows["png_sha256"].isin(wanted)].itertuples(index=False):
            # under the same name, since the attack `none` stores each image as the model sees it
            clean = attacks / NONE / role / file
            found.setdefault(digest, AttackedImage(attack, role, image_id, clean if clean.is_file() else None))
    return found


def past_standings(lines: Sequence[Line], on: datetime.date) -> list[PastStanding]:
    """The standings up to a day that differ from the one before, each from the entries that counted on its own day."""
    limits = lines[0].entry.limits
    due = {"answers": limits.appeal_days, "stake": limits.unbroken_days}
    days = {each.day for each in lines} | {after(each.day, due[each.kind]) for each in lines if each.kind in due}
    # what a later line makes void counted before, and a new key may make a team a member's own: the days up to it apart
    ends = {after(each.day, -1) for each in lines if may_void(each) or each.kind == "key"} | {on}
    found: list[Iterable[PastStanding]] = []
    before = datetime.date.min
    for end in sorted(each for each in ends if each <= on):
        within = sorted(day for day in days if before < day <= end)
        if within:
            found.append(history(state(lines, end), within))
        before = end
    return changed(chain.from_iterable(found))


def write_page(folder: Path, lines: Sequence[Line], on: datetime.date) -> Path:
    """Write results/page.html, the standing at the end of a day, and results/page_images/; the path of the page.

    It shows the warnings of the study beside the contest, and the clean version of each image that an attack made, if
    these exist. Raises CleansetError as `standing` does, and for a published image that is missing or changed.
    """
    results = folder / "results"
    refuse_link(results)
    study = folder / ATTACKS_FOLDER
    files = state(lines, on)
    objects = Objects(folder)
    weeks = (each for each in files.submissions if each.week <= on)
    published = {image.sha256: objects.path(image.sha256) for _, image in submitted_images(weeks)}
    attacked = attacked_images(study, published.keys())
    records = [read_warnings(path) for path in sorted((study / "data" / "attack_warnings").glob("*.json"))]
    warnings = {record.role: [(each.sign, each.text) for each in record.warnings] for record in records}
    with replacing(results / THUMBNAILS) as partial:
        partial.mkdir()
        images = {
            digest: _shown(partial, digest, decoded(path, objects.read(digest)), attacked.get(digest))
            for digest, path in sorted(published.items())
        }
        text = contest_page(files, on, images, warnings=warnings, past=past_standings(lines, on))
    write_text(results / "page.html", text)
    return results / "page.html"


def decoded(path: Path, data: bytes) -> Image.Image:
    """A submitted image in RGB. Raises CleansetError if it cannot be read."""
    return decode_file(data, path).convert("RGB")


def _shown(folder: Path, digest: str, image: Image.Image, attacked: AttackedImage | None) -> CardImage:
    """Write the small copies of an image into a folder, with the clean image and the difference if that is stored."""
    thumbnail = _small_copy(folder, f"{digest}.jpg", image)
    if attacked is None or attacked.clean is None:
        return CardImage(thumbnail, attacked)
    clean = decoded(attacked.clean, attacked.clean.read_bytes())
    pixels, factor = enlarged_difference(np.asarray(clean), np.asarray(image), shown_size(image))
    name = f"{digest}_difference.png"
    (folder / name).write_bytes(png(pixels))
    return CardImage(
        thumbnail=thumbnail,
        attacked=attacked,
        clean=_small_copy(folder, f"{digest}_clean.jpg", clean),
        difference=_page_image(name, pixels),
        factor=factor,
    )


def _small_copy(folder: Path, name: str, image: Image.Image) -> PageImage:
    small = image.resize(shown_size(image), Image.Resampling.BICUBIC)
    (folder / name).write_bytes(jpeg(np.asarray(small), COPY_QUALITY))
    return _page_image(name, small)


def _page_image(name: str, image: Image.Image) -> PageImage:
    width, height = image.size
    return PageImage(f"{THUMBNAILS}/{name}", width, height)


def shown_size(image: Image.Image) -> tuple[int, int]:
    """Width and height of the copy of an image: its longer side has at most COPY_PIXELS."""
    scale = min(1.0, COPY_PIXELS / max(image.size))
    return max(1, round(scale * image.width)), max(1, round(scale * image.height))
