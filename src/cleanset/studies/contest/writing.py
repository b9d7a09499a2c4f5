"""What a contest writes: results/standing.json, results/notices/, and results/page.html with small images."""

import datetime
from pathlib import Path

import numpy as np
from PIL import Image

from cleanset.errors import CleansetError
from cleanset.files import replacing, sha256, write_text
from cleanset.images.codec import decode, png
from cleanset.images.differences import enlarged_difference
from cleanset.images.encoding import jpeg
from cleanset.studies.attacks.warning_record import read_warnings
from cleanset.studies.contest.attacked import AttackedImage, attacked_images
from cleanset.studies.contest.files import ContestFiles
from cleanset.studies.contest.folder_checks import FORMATS
from cleanset.studies.contest.page import Attacked, Thumbnail, Warnings, contest_page
from cleanset.studies.contest.reading import IMAGES
from cleanset.studies.contest.report import as_json, notices
from cleanset.studies.contest.standing import Standing

SHOWN_PIXELS, QUALITY = 320, 85
"""The longer side of the images on the page, at most."""
THUMBNAILS = "page_images"
STUDY = Path("..", "attacks")
"""The attacks on the edition's models, from the folder of the contest."""


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

    Of the attacks beside the contest it shows warnings, and the clean image of each that an attack made,
    as far as they are there. Raises CleansetError as `standing` does, and for a published image that is missing or
    changed.
    """
    results = folder / "results"
    published = {
        image.sha256: folder / str(each) / IMAGES / image.file
        for each in files.submissions
        if each.week <= on
        for image in each.manifest.images
    }
    found, thumbnails, attacked = attacked_images(folder / STUDY, published.keys()), {}, {}
    with replacing(results / THUMBNAILS) as partial:
        partial.mkdir()
        saved = _Thumbnails(partial)
        for digest, path in sorted(published.items()):
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
    try:
        return decode(data, FORMATS).convert("RGB")
    except ValueError as error:
        raise CleansetError(f"{path}: cannot be read ({error}); expected a whole PNG or JPEG") from None


class _Thumbnails:
    """Small images in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def jpeg(self, name: str, image: Image.Image) -> Thumbnail:
        """Write a copy of at most SHOWN_PIXELS a side."""
        small = image.resize(shown_size(image), Image.Resampling.BICUBIC)
        (self._folder / name).write_bytes(jpeg(np.asarray(small), QUALITY))
        return Thumbnail(f"{THUMBNAILS}/{name}", *small.size)

    def attacked(self, digest: str, image: Image.Image, found: AttackedImage) -> Attacked:
        """Write the clean image, where it is stored, and the difference."""
        if found.clean is None:
            return Attacked(found.attack, found.role, found.image_id, None, None, 1)
        clean = decode(found.clean.read_bytes(), FORMATS).convert("RGB")
        shown, factor = enlarged_difference(np.asarray(clean), np.asarray(image), shown_size(image))
        name = f"{digest}_difference.png"
        (self._folder / name).write_bytes(png(shown))
        difference = Thumbnail(f"{THUMBNAILS}/{name}", *shown.size)
        small = self.jpeg(f"{digest}_clean.jpg", clean)
        return Attacked(found.attack, found.role, found.image_id, small, difference, factor)


def shown_size(image: Image.Image) -> tuple[int, int]:
    """Width and height of the copy of an image: its longer side has at most SHOWN_PIXELS."""
    scale = min(1.0, SHOWN_PIXELS / max(image.size))
    return max(1, round(scale * image.width)), max(1, round(scale * image.height))


def warnings_of(study: Path) -> Warnings:
    """What the stage attack_warnings of a study found, by the role of the model; nothing where it has not run."""
    records = [read_warnings(path) for path in sorted((study / "data" / "attack_warnings").glob("*.json"))]
    return {record.role: [(each.sign, each.text) for each in record.warnings] for record in records}
