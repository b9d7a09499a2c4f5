"""The page of a contest and its small images: standing, history, what people decided on each image, the defences."""

import datetime
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from PIL import Image

from cleanset.errors import CleansetError
from cleanset.files import replacing, sha256, write_text
from cleanset.images.codec import decode, png
from cleanset.images.preprocessing import enlarged_difference, jpeg
from cleanset.report.pages import page_environment
from cleanset.studies.attacks.page import TEMPLATES as COVERAGE_TEMPLATES
from cleanset.studies.attacks.page import limited_points
from cleanset.studies.attacks.warnings import read_warnings
from cleanset.studies.contest.files import (
    Appeal,
    BoardDecision,
    ContestFiles,
    Defence,
    DefenceRun,
    Submission,
    SubmittedImage,
    counted,
    points,
    until,
)
from cleanset.studies.contest.image_state import ImageState
from cleanset.studies.contest.judging import (
    REASONS,
    STATEMENTS,
    ImageVerdict,
    JudgeAnswer,
    RejectionReason,
    agreement_by_question,
    box_area,
    by_rule,
    doubled_area,
)
from cleanset.studies.contest.reading import submitted_paths
from cleanset.studies.contest.rules import ABSTAIN, SIZE_RULES
from cleanset.studies.contest.standing import DefenceStanding, Shares, Standing, history, standing
from cleanset.tables import parquet_content

TEMPLATES = Path(__file__).parent / "templates"


class SmallImage(NamedTuple):
    """A small copy of an image: its path from the page, and its size in pixels."""

    file: str
    width: int
    height: int


class AttackCard(NamedTuple):
    """The origin of a submitted image: an attack of the edition's study on the model of a role, and its clean image.

    `clean` and `difference`: that image and the change, enlarged by `factor`; None if the clean image is not stored.
    """

    attack: str
    role: str
    image_id: str
    clean: SmallImage | None
    difference: SmallImage | None
    factor: float


ModelWarnings = Mapping[str, Sequence[tuple[str, str]]]
"""By the role of a model of the edition: the signs that it only looks strong, each with its evidence."""


class HistoryRow(NamedTuple):
    """A day on which the standing changed: the state of each defence, and whether its status is new."""

    on: datetime.date
    defences: Sequence[DefenceStanding | None]
    changed: Sequence[bool]
    attackers: Shares
    defenders: Shares


@dataclass(frozen=True, slots=True)
class JudgedBy:
    """A judge's answers to an image; the outline's area and that of its box are shares of the image."""

    judge: str
    answer: JudgeAnswer
    area: float | None
    box: float | None


@dataclass(frozen=True, slots=True)
class ImageCard:
    """A published image, all that is known of it, and the answer of each defence in its last run."""

    image: SubmittedImage
    submission: Submission
    state: ImageState
    thumbnail: SmallImage
    attacked: AttackCard | None
    given: Mapping[str, str]
    judged_by: Sequence[JudgedBy]
    appeals: Sequence[Appeal]
    decisions: Sequence[BoardDecision]
    rules: Mapping[str, ImageVerdict]

    def is_mistake(self, given: str) -> bool:
        """Whether an answer gives an unambiguous image the other group."""
        group = self.state.verdict and self.state.verdict.group
        return group is not None and given not in (group, ABSTAIN)


@dataclass(frozen=True, slots=True)
class CoverageOfDefence:
    """The line of a defence's accuracy over coverage on the eligibility list."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class DefenceCard:
    """A defence, its standing, and its first run, which decides on its eligibility."""

    standing: DefenceStanding
    defence: Defence
    run: DefenceRun | None
    line: CoverageOfDefence | None


def contest_page(
    files: ContestFiles,
    on: datetime.date,
    thumbnails: Mapping[str, SmallImage],
    warnings: ModelWarnings,
    attacked: Mapping[str, AttackCard],
) -> str:
    """The page at the end of a day.

    `thumbnails`: of each published image, by its SHA-256. `attacked`: those of them that the study's attacks made.

    Raises CleansetError as `standing` does.
    """
    # before `until`: these two leave out later entries themselves
    current, past = standing(files, on), history(files, on)
    files = until(files, on)
    files = replace(files, submissions=counted(files.submissions))
    cards = image_cards(files, current, thumbnails, attacked)
    context: dict[str, Any] = {
        "standing": current,
        "history": history_rows(past, [each.name for each in current.defences]),
        "defences": defence_cards(files, current),
        "cards": cards,
        "groups": files.rules.groups().names,
        "rules": files.rules,
        "size_rules": SIZE_RULES,
        "statements": STATEMENTS,
        "reasons": reason_counts(cards),
        "warnings": warnings_by_defence(files, warnings),
        "agreement": agreement_by_question(
            [[each.answer for each in card.judged_by] for card in cards], files.rules.groups().names
        ),
        "abstain": ABSTAIN,
        "as_text": as_text,
        "shares": shares_text,
    }
    return page_environment(TEMPLATES, COVERAGE_TEMPLATES).get_template("contest.html").render(context)


def warnings_by_defence(files: ContestFiles, warnings: ModelWarnings) -> dict[str, list[tuple[str, str]]]:
    """The signs by defence, from its last run and from the study of its model; only defences with signs.

    The study's findings on a bare model do not apply to the model in a wrapper.
    """
    found: dict[str, list[tuple[str, str]]] = {}
    for name, defence in sorted(files.defences.items()):
        seen: dict[str, str] = {}
        for run in sorted((each for each in files.runs if each.defence == name), key=lambda each: each.date):
            # a run without probes says nothing about signs: those of the run before stay
            seen = seen if run.signs is None else {each.sign: each.text for each in run.signs}
        if defence.model is not None and defence.model.wrapper is None:
            seen |= dict(warnings.get(defence.model.role, ()))
        if seen:
            found[name] = list(seen.items())
    return found


def history_rows(past: Sequence[Standing], names: Sequence[str]) -> list[HistoryRow]:
    """A row for each of the standings, with the defences by name; None for one that was not submitted yet."""
    found: list[HistoryRow] = []
    for each in past:
        states = {one.name: one for one in each.defences}
        shown = [states.get(name) for name in names]
        before = found[-1].defences if found else [None] * len(names)
        changed = [
            one is not None and (old is None or old.status != one.status)
            for old, one in zip(before, shown, strict=True)
        ]
        found.append(HistoryRow(each.on, shown, changed, each.attackers, each.defenders))
    return found


def image_cards(
    files: ContestFiles, current: Standing, thumbnails: Mapping[str, SmallImage], attacked: Mapping[str, AttackCard]
) -> list[ImageCard]:
    """A card for each published image, in the order of submission."""
    submitted = {image.sha256: (image, each) for each in files.submissions for image in each.manifest.images}
    given = last_answers(files.runs)
    return [
        ImageCard(
            submitted[sha256][0],
            submitted[sha256][1],
            state,
            thumbnails[sha256],
            attacked.get(sha256),
            given.get(sha256, {}),
            judged := judged_by(files, submitted[sha256][0]),
            sorted((each for each in files.board.appeals if each.image == sha256), key=lambda each: each.date),
            sorted((each for each in files.board.decisions if each.image == sha256), key=lambda each: each.date),
            rules_of(files, submitted[sha256][0], counted_answers(judged, state)),
        )
        for sha256, state in current.images.items()
    ]


def last_answers(runs: Sequence[DefenceRun]) -> dict[str, dict[str, str]]:
    """By image and defence, the answer of the last run over the image."""
    found: dict[str, dict[str, str]] = {}
    for run in sorted(runs, key=lambda each: (each.defence, each.date)):
        for image, answer in run.answers.items():
            found.setdefault(image, {})[run.defence] = answer
    return found


def judged_by(files: ContestFiles, image: SubmittedImage) -> list[JudgedBy]:
    """The answers to an image, by the day and the judge's id."""
    area = image.width * image.height
    found = []
    for each in files.answers:
        answer = each.answers.get(image.sha256)
        if answer is not None:
            outline = answer.outline
            # the area is kept doubled, so that it is a whole number
            shares = (None, None) if outline is None else (doubled_area(outline) / 2 / area, box_area(outline) / area)
            found.append(JudgedBy(each.judge, answer, *shares))
    return sorted(found, key=lambda each: (each.answer.date, each.judge))


def counted_answers(judged: Sequence[JudgedBy], state: ImageState) -> list[JudgeAnswer]:
    """The answers up to the day on which enough judges had answered."""
    last = state.judged_on or datetime.date.max
    return [each.answer for each in judged if each.answer.date <= last]


def rules_of(files: ContestFiles, image: SubmittedImage, answers: Sequence[JudgeAnswer]) -> dict[str, ImageVerdict]:
    """The verdict on an image under each rule of size; empty while there are too few judges."""
    minimum = files.rules.judges.minimum
    # `by_rule` raises for too few judges
    if len(answers) < minimum:
        return {}
    return {str(rule): each for rule, each in by_rule(answers, image.width, image.height, minimum).items()}


def reason_counts(cards: Sequence[ImageCard]) -> list[tuple[RejectionReason, int, int]]:
    """Each reason, with the number of rejected images that have it first, and that have it at all."""
    rejected = [card.state.verdict for card in cards if card.state.verdict and card.state.verdict.group is None]
    first = Counter(each.reason for each in rejected)
    every = Counter(reason for each in rejected for reason in each.reasons)
    return [(reason, first[reason], every[reason]) for reason in REASONS if every[reason]]


def defence_cards(files: ContestFiles, current: Standing) -> list[DefenceCard]:
    """A card for each defence, by name."""
    found = []
    for each in current.defences:
        runs = sorted((run for run in files.runs if run.defence == each.name), key=lambda run: run.date)
        lines = [line_of(run) for run in runs if run.coverage is not None]
        # the first run decides on eligibility (standing._why_ineligible)
        first = runs[0] if runs else None
        found.append(DefenceCard(each, files.defences[each.name], first, lines[0] if lines else None))
    return found


def line_of(run: DefenceRun) -> CoverageOfDefence:
    """The line of accuracy over coverage in a run."""
    steps = [(covered, mistakes) for covered, mistakes in run.coverage or []]
    return CoverageOfDefence(run.defence, limited_points(points(steps, run.eligibility.images)))


def as_text(verdict: ImageVerdict) -> str:
    """The group of an unambiguous image, else every reason why it is rejected."""
    if verdict.group is not None:
        return verdict.group
    return ", ".join(reason.replace("_", " ") for reason in verdict.reasons) or "rejected"


def shares_text(shares: Shares) -> str:
    """Shares such as `orchard 1/2, grove 1/2`, by team."""
    return ", ".join(f"{team} {share}" for team, share in sorted(shares.items()))


SHOWN_PIXELS, QUALITY = 320, 85
"""Longest side of the images on the page, and their JPEG quality."""


THUMBNAILS = "page_images"


STUDY = Path("..", "attacks")
"""The attacks on the edition's models, from the folder of the contest."""


NONE = "none"
"""The attack that changes nothing; its files are the images as the models see them."""


COLUMNS = ["image_id", "png", "png_sha256"]


@dataclass(frozen=True, slots=True)
class AttackedImage:
    """A file made by an attack on a model, and its image; `clean`: the file of that image, if it is stored."""

    attack: str
    role: str
    image_id: str
    clean: Path | None


def attacked_images(study: Path, wanted: Collection[str]) -> dict[str, AttackedImage]:
    """By SHA-256, the wanted files that an attack of the study made, each with the first attack and model.

    Empty if no attack has run. Raises CleansetError for a table that cannot be read.
    """
    found: dict[str, AttackedImage] = {}
    attacks = study / "data" / "attacks"
    # without submitted images no table has to be read
    for table in sorted(attacks.glob("*/*/attacked.parquet")) if wanted else []:
        attack, role = table.parent.parent.name, table.parent.name
        if attack == NONE:
            continue
        rows = read_attacked(table)
        for image_id, file, digest in rows[rows["png_sha256"].isin(wanted)].itertuples(index=False):
            # under the same name, since the attack `none` stores each image as the model sees it
            clean = attacks / NONE / role / file
            found.setdefault(digest, AttackedImage(attack, role, image_id, clean if clean.is_file() else None))
    return found


def read_attacked(table: Path) -> pd.DataFrame:
    """Read the columns that identify the files of an attack."""
    try:
        rows: pd.DataFrame = parquet_content(table).select(COLUMNS).to_pandas()
    except (OSError, ValueError, KeyError) as error:
        first = str(error).partition("\n")[0]
        raise CleansetError(
            f"{table}: cannot be read ({first}); expected the results of an attack: dvc checkout"
        ) from None
    return rows


def write_page(folder: Path, files: ContestFiles, on: datetime.date) -> Path:
    """Write results/page.html, the standing at the end of a day, and results/page_images/; the path of the page.

    It shows the warnings of the study beside the contest, and the clean version of each image that an attack made, if
    these exist. Raises CleansetError as `standing` does, and for a published image that is missing or changed.
    """
    results = folder / "results"
    published = submitted_paths(folder, (each for each in files.submissions if each.week <= on))
    found, thumbnails, attacked = attacked_images(folder / STUDY, published.keys()), {}, {}
    with replacing(results / THUMBNAILS) as partial:
        partial.mkdir()
        saved = _Thumbnails(partial)
        for digest, path in published.items():
            image = read_image(path, digest)
            thumbnails[digest] = saved.jpeg(f"{digest}.jpg", image)
            if digest in found:
                attacked[digest] = saved.attacked(digest, image, found[digest])
        text = contest_page(files, on, thumbnails, warnings_of(folder / STUDY), attacked)
    write_text(results / "page.html", text)
    return results / "page.html"


def read_image(path: Path, digest: str) -> Image.Image:
    """A submitted image. Raises CleansetError if it is missing, changed or cannot be read."""
    if not path.is_file() or sha256(data := path.read_bytes()) != digest:
        raise CleansetError(f"{path}: missing or changed; expected SHA-256 {digest}: run dvc pull, or git checkout it")
    return _decoded(path, data)


def _decoded(path: Path, data: bytes) -> Image.Image:
    try:
        return decode(data).convert("RGB")
    except ValueError as error:
        raise CleansetError(f"{path}: cannot be read ({error}); expected a whole PNG or JPEG") from None


class _Thumbnails:
    """Small images in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def jpeg(self, name: str, image: Image.Image) -> SmallImage:
        """Write a copy of at most SHOWN_PIXELS a side."""
        small = image.resize(shown_size(image), Image.Resampling.BICUBIC)
        (self._folder / name).write_bytes(jpeg(np.asarray(small), QUALITY))
        return SmallImage(f"{THUMBNAILS}/{name}", *small.size)

    def attacked(self, digest: str, image: Image.Image, found: AttackedImage) -> AttackCard:
        """Write the clean image, where it is stored, and the difference."""
        if found.clean is None:
            return AttackCard(found.attack, found.role, found.image_id, None, None, 1)
        clean = _decoded(found.clean, found.clean.read_bytes())
        shown, factor = enlarged_difference(np.asarray(clean), np.asarray(image), shown_size(image))
        name = f"{digest}_difference.png"
        (self._folder / name).write_bytes(png(shown))
        difference = SmallImage(f"{THUMBNAILS}/{name}", *shown.size)
        small = self.jpeg(f"{digest}_clean.jpg", clean)
        return AttackCard(found.attack, found.role, found.image_id, small, difference, factor)


def shown_size(image: Image.Image) -> tuple[int, int]:
    """Width and height of the copy of an image: its longer side has at most SHOWN_PIXELS."""
    scale = min(1.0, SHOWN_PIXELS / max(image.size))
    return max(1, round(scale * image.width)), max(1, round(scale * image.height))


def warnings_of(study: Path) -> ModelWarnings:
    """The findings of a study's stage attack_warnings by the role of the model; empty if it has not run."""
    records = [read_warnings(path) for path in sorted((study / "data" / "attack_warnings").glob("*.json"))]
    return {record.role: [(each.sign, each.text) for each in record.warnings] for record in records}
