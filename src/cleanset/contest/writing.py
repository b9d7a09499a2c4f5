"""What a contest writes: results/standing.json, results/notices/, and results/page.html with small images."""

import datetime
from pathlib import Path

import numpy as np
from PIL import Image

from cleanset.contest.files import ContestFiles
from cleanset.contest.folder_checks import FORMATS
from cleanset.contest.page import Thumbnail, Warnings, contest_page
from cleanset.contest.reading import IMAGES
from cleanset.contest.report import as_json, notices
from cleanset.contest.standing import Standing
from cleanset.errors import CleansetError
from cleanset.files import read_text, replacing, sha256, write_text
from cleanset.images.codec import decode
from cleanset.images.encoding import jpeg
from cleanset.parsing import parse_json

SHOWN_PIXELS, QUALITY = 320, 85
"""The longer side of the images on the page, at most."""
THUMBNAILS = "page_images"
STUDY = Path("..", "robustness")
"""The edition's study of robustness, from the folder of the contest."""


def write_standing(folder: Path, files: ContestFiles, standing: Standing) -> None:
    """Write a standing and the notices to defenders, in place of those that are there."""
    results = folder / "results"
    write_text(results / "standing.json", as_json(standing))
    with replacing(results / "notices") as partial:
        partial.mkdir()
        for name, text in notices(files, standing).items():
            write_text(partial / name, text)


def write_page(folder: Path, files: ContestFiles, on: datetime.date) -> Path:
    """Write results/page.html, the standing at the end of a day, and results/page_images/; the path of the page.

    Warnings are shown as far as the study of robustness beside the contest has looked for them. Raises CleansetError
    as `standing` does, and for a published image that is missing or changed.
    """
    results, thumbnails = folder / "results", {}
    contents: dict[str, bytes] = {}
    for each in files.submissions:
        if each.week <= on:
            for image in each.manifest.images:
                content, size = thumbnail(folder / str(each) / IMAGES / image.file, image.sha256)
                thumbnails[image.sha256] = Thumbnail(f"{THUMBNAILS}/{image.sha256}.jpg", *size)
                contents[image.sha256] = content
    text = contest_page(files, on, thumbnails, warnings_of(folder / STUDY))
    with replacing(results / THUMBNAILS) as partial:
        partial.mkdir()
        for name, content in sorted(contents.items()):
            (partial / f"{name}.jpg").write_bytes(content)
    write_text(results / "page.html", text)
    return results / "page.html"


def thumbnail(path: Path, digest: str) -> tuple[bytes, tuple[int, int]]:
    """A small JPEG of an image, and its width and height."""
    if not path.is_file() or sha256(data := path.read_bytes()) != digest:
        raise CleansetError(f"{path}: missing or changed; expected SHA-256 {digest}: run dvc pull, or git checkout it")
    try:
        image = decode(data, FORMATS).convert("RGB")
    except ValueError as error:
        raise CleansetError(f"{path}: cannot be read ({error}); expected a whole PNG or JPEG") from None
    image.thumbnail((SHOWN_PIXELS, SHOWN_PIXELS), Image.Resampling.BICUBIC)
    return jpeg(np.asarray(image), QUALITY), image.size


def warnings_of(study: Path) -> Warnings:
    """What the stage attack_warnings of a study found, by the role of the model; nothing where it has not run."""
    found = {}
    for path in sorted((study / "data" / "attack_warnings").glob("*.json")):
        content = parse_json(read_text(path, "run dvc repro attack_warnings in the study"), str(path), "warnings")
        found[content["role"]] = [(each["sign"], each["text"]) for each in content["warnings"]]
    return found
