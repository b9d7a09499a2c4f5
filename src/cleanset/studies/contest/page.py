"""The page of a contest and its thumbnails: standing, people's decisions on each image, the defences."""

import datetime
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from cleanset.classes import imagenet
from cleanset.images.outlines import doubled_area
from cleanset.plumbing.files import check_no_links, replacing, write_text
from cleanset.report.pages import page_environment
from cleanset.report.thumbnails import PageImage, thumbnail
from cleanset.studies.contest.judging import REASONS, STATEMENTS
from cleanset.studies.contest.log import Log
from cleanset.studies.contest.objects import Objects
from cleanset.studies.contest.rules import ABSTAIN
from cleanset.studies.contest.standing import Standing, standing

TEMPLATES = Path(__file__).parent / "templates"
THUMBNAILS = "page_images"


def contest_page(current: Standing, images: Mapping[str, PageImage]) -> str:
    """The page at the end of a day; `images`: each published image by its SHA-256."""
    contest = current.contest
    verdicts = [each.verdict for each in contest.images.values() if each.verdict is not None]
    first = Counter(each.reason for each in verdicts)
    every = Counter(reason for each in verdicts for reason in each.reasons)
    context: dict[str, object] = {
        "standing": current,
        "courses": contest.defences,
        "cards": contest.images,
        "images": images,
        "groups": contest.rules.groups().names,
        "rules": contest.rules,
        "statements": STATEMENTS,
        "reasons": [(reason, first[reason], every[reason]) for reason in REASONS if every[reason]],
        "abstain": ABSTAIN,
        "doubled_area": doubled_area,
    }
    return page_environment(imagenet(), TEMPLATES).get_template("contest.html").render(context)


def write_page(folder: Path, log: Log, on: datetime.date) -> Path:
    """Write results/page.html, the standing at the end of a day, and results/page_images/; the path of the page.

    Raises CleansetError as `standing` does, and for a published image that is missing or changed.
    """
    results = folder / "results"
    check_no_links(folder, results)
    objects = Objects(folder)
    current = standing(log, on)
    images = {}
    with replacing(results / THUMBNAILS) as partial:
        partial.mkdir()
        for digest in current.contest.images:
            small = thumbnail(objects.read(digest))
            (partial / f"{digest}.jpg").write_bytes(small.jpeg)
            images[digest] = PageImage(f"{THUMBNAILS}/{digest}.jpg", small.width, small.height)
    write_text(results / "page.html", contest_page(current, images))
    return results / "page.html"
