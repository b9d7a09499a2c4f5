"""Writing the results of a contest: results/standing.json, results/notices/, and results/page.html with its images."""

import datetime
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from cleanset.errors import CleansetError
from cleanset.files import replacing, sha256, write_text
from cleanset.images.codec import decode, png
from cleanset.images.preprocessing import enlarged_difference, jpeg
from cleanset.studies.attacks.warnings import read_warnings
from cleanset.studies.contest.files import ContestFiles
from cleanset.studies.contest.folder_checks import FORMATS
from cleanset.studies.contest.page import AttackCard, ModelWarnings, SmallImage, contest_page
from cleanset.studies.contest.reading import IMAGES
from cleanset.studies.contest.report import as_json, notices
from cleanset.studies.contest.standing import Standing

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
        return pd.read_parquet(table, columns=COLUMNS)
    except (OSError, ValueError) as error:
        first = str(error).partition("\n")[0]
        raise CleansetError(
            f"{table}: cannot be read ({first}); expected the results of an attack: dvc checkout"
        ) from None


def write_standing(folder: Path, files: ContestFiles, standing: Standing) -> None:
    """Write a standing and the notices to defenders, in place of those that are there."""
    results = folder / "results"
    write_text(results / "standing.json", as_json(standing))
    # the whole folder: notices that no longer apply have to go
    with replacing(results / "notices") as partial:
        partial.mkdir()
        for name, text in notices(files, standing).items():
            write_text(partial / name, text)


def write_page(folder: Path, files: ContestFiles, on: datetime.date) -> Path:
    """Write results/page.html, the standing at the end of a day, and results/page_images/; the path of the page.

    It shows the warnings of the study beside the contest, and the clean version of each image that an attack made, if
    these exist. Raises CleansetError as `standing` does, and for a published image that is missing or changed.
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
    return _decoded(path, data)


def _decoded(path: Path, data: bytes) -> Image.Image:
    try:
        return decode(data, FORMATS).convert("RGB")
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
