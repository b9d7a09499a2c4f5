"""The images of a set where their owner has them, and whatever shows that they are the originals."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from cleanset.dataset.archives import OFFICIAL_IMAGES_MD5
from cleanset.dataset.ilsvrc import wnids
from cleanset.dataset.layouts import Location, locate
from cleanset.errors import CleansetError
from cleanset.files import read_bytes, sha256
from cleanset.images.codec import Facts, inspect
from cleanset.published.archive_md5 import check_archive_there
from cleanset.published.digests import read_digests
from cleanset.published.inputs import DIGESTS, ilsvrc_class
from cleanset.vocabulary import SourceCheck

MAX_NAMED = 10
"""Missing images that a message names."""
MAX_SHARE_OF_ONE_SIDE = 0.9
"""Share of images with one short, or one long, side above which a folder was resized.

Of 500 original images 67 % have a long side of 500 pixels, and 22 % a short one of 375; no side is more frequent.
"""


class SourceImages:
    """The images of a set, read from a tar or a folder, and compared with a table of digests if there is one.

    Raises CleansetError for a missing archive and for an invalid table.
    """

    def __init__(self, images: Path, digests: Path | None) -> None:
        self.images = images
        self.is_archive = not images.is_dir()
        if self.is_archive:
            check_archive_there(images)
        path = digests or (DIGESTS if DIGESTS.is_file() else None)
        self.table = table = read_digests(path) if path else None
        self.table_sha256 = sha256(read_bytes(path)) if path else ""
        self.expected_md5 = table.archive_md5 if table else OFFICIAL_IMAGES_MD5
        checks: tuple[SourceCheck, SourceCheck] = ("archive_md5", "image_sha256" if table else "none")
        self.check: SourceCheck = checks[0] if self.is_archive else checks[1]
        self._locations: Mapping[str, Location] = {}

    @property
    def is_official(self) -> bool:
        """Whether the images are ImageNet's, as far as can be known."""
        return self.check == "none" or self.expected_md5 == OFFICIAL_IMAGES_MD5

    def locate(self, needed: pd.DataFrame) -> None:
        """Look the images up. Raises CleansetError if one is missing, or in the folder of another class."""
        self._locations = locate(self.images)
        missing = sorted(set(needed["image_id"]) - self._locations.keys())
        if missing:
            more = f" and {len(missing) - MAX_NAMED:,} more" if len(missing) > MAX_NAMED else ""
            raise CleansetError(
                f"{self.images}: missing images: {len(missing):,} of {len(needed):,}: "
                f"{', '.join(missing[:MAX_NAMED])}{more}; expected ImageNet's validation images: add them"
            )
        for image_id in needed["image_id"]:
            found, expected = self._locations[image_id].wnid, wnids()[ilsvrc_class(image_id)]
            if found not in (None, expected):
                raise CleansetError(
                    f"{self.images}: {image_id} in the folder or with the name of {found}; expected {expected}, its "
                    "ILSVRC2012 label: move it"
                )

    def read(self, image_id: str) -> tuple[bytes, Facts]:
        """The bytes of an image, and what is measured on it. Raises CleansetError if they are not the original."""
        data = self._locations[image_id].read()
        if self.table is not None:
            self.table.check(image_id, data, str(self.images))
        try:
            return data, inspect(data)
        except ValueError as error:
            raise CleansetError(
                f"{self.images}: {image_id} cannot be decoded ({error}); expected the JPEG of ImageNet: fetch it again"
            ) from None


def check_sides(images: Path, measured: Sequence[Facts]) -> None:
    """Raise CleansetError if nearly all images have one short or one long side: then they were resized."""
    for name, shorter in (("short", min), ("long", max)):
        side, count = Counter(shorter(each.width, each.height) for each in measured).most_common(1)[0]
        if count > MAX_SHARE_OF_ONE_SIDE * len(measured):
            raise CleansetError(
                f"{images}: {count:,} of {len(measured):,} images have a {name} side of {side} pixels: resized; "
                "expected the originals, whose sides differ: take these"
            )
