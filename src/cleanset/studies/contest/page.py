"""The page of a contest and its thumbnails: standing, history, people's decisions on each image, the defences."""

import datetime
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from cleanset.classes import imagenet
from cleanset.images.codec import decode_file
from cleanset.images.outlines import doubled_area
from cleanset.images.preprocessing import jpeg
from cleanset.plumbing.files import replacing, write_text
from cleanset.report.pages import page_environment
from cleanset.report.thumbnails import PageImage
from cleanset.studies.attacks.warnings import read_warnings
from cleanset.studies.contest.judging import REASONS, STATEMENTS
from cleanset.studies.contest.log import Log
from cleanset.studies.contest.objects import Objects, refuse_link
from cleanset.studies.contest.rules import ABSTAIN
from cleanset.studies.contest.standing import PastStanding, Standing, history, standing

TEMPLATES = Path(__file__).parent / "templates"
COPY_PIXELS = 320
"""Longest side of the images on the page."""
COPY_QUALITY = 85
"""JPEG quality of the images on the page."""
THUMBNAILS = "page_images"
WARNINGS = Path("..", "attacks", "data", "attack_warnings")
"""The warnings of the study of attacks on the edition's models, from the folder of the contest."""

ModelWarnings = Mapping[str, Sequence[tuple[str, str]]]
"""By the role of a model of the edition: the signs of gradient masking, each with its evidence."""


def contest_page(
    current: Standing, images: Mapping[str, PageImage], *, warnings: ModelWarnings, past: Sequence[PastStanding]
) -> str:
    """The page at the end of a day; `images`: each published image by its SHA-256; `past`: the standings up to it."""
    contest = current.contest
    courses = contest.defences
    verdicts = [each.verdict for each in contest.images.values() if each.verdict is not None]
    first = Counter(each.reason for each in verdicts)
    every = Counter(reason for each in verdicts for reason in each.reasons)
    roles = {name: each.defence.model.role for name, each in sorted(courses.items()) if each.defence.model is not None}
    context: dict[str, object] = {
        "standing": current,
        "history": [(each, {one.name: one.status for one in each.defences}) for each in past],
        "courses": courses,
        "cards": contest.images,
        "images": images,
        "groups": contest.rules.groups().names,
        "rules": contest.rules,
        "statements": STATEMENTS,
        "reasons": [(reason, first[reason], every[reason]) for reason in REASONS if every[reason]],
        "warnings": {name: warnings[role] for name, role in roles.items() if warnings.get(role)},
        "abstain": ABSTAIN,
        "doubled_area": doubled_area,
    }
    return page_environment(imagenet(), TEMPLATES).get_template("contest.html").render(context)


def write_page(folder: Path, log: Log, on: datetime.date) -> Path:
    """Write results/page.html, the standing at the end of a day, and results/page_images/; the path of the page.

    It shows the warnings of the study of attacks beside the contest, if there is one. Raises CleansetError as
    `standing` does, and for a published image that is missing or changed.
    """
    results = folder / "results"
    refuse_link(results)
    objects = Objects(folder)
    current = standing(log, on)
    records = [read_warnings(path) for path in sorted((folder / WARNINGS).glob("*.json"))]
    warnings = {record.role: [(each.sign, each.text) for each in record.warnings] for record in records}
    with replacing(results / THUMBNAILS) as partial:
        partial.mkdir()
        images = {}
        for digest in sorted(current.contest.images):
            image = decode_file(objects.read(digest), objects.path(digest)).convert("RGB")
            small = image.resize(shown_size(image), Image.Resampling.BICUBIC)
            (partial / f"{digest}.jpg").write_bytes(jpeg(np.asarray(small), COPY_QUALITY))
            images[digest] = PageImage(f"{THUMBNAILS}/{digest}.jpg", *small.size)
        text = contest_page(current, images, warnings=warnings, past=history(log, on))
    write_text(results / "page.html", text)
    return results / "page.html"


def shown_size(image: Image.Image) -> tuple[int, int]:
    """Width and height of the copy of an image: its longer side has at most COPY_PIXELS."""
    scale = min(1.0, COPY_PIXELS / max(image.size))
    return max(1, round(scale * image.width)), max(1, round(scale * image.height))
