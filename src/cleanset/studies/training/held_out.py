"""The check that no image of an edition is trained on: neither its bytes nor its pixels."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.exports.folder import read_entries
from cleanset.tables import INDEX, read_table


class HeldOut(NamedTuple):
    """The images of an edition: where each is, by the SHA-256 of its bytes and by that of its pixels."""

    files: Mapping[str, str]
    pixels: Mapping[str, str]

    def check(self, images: Iterable[tuple[str, str, str]]) -> None:
        """Raise CleansetError if one of the images, as file, SHA-256 of its bytes and of its pixels, is held out."""
        for file, digest, pixels in images:
            found = self.files.get(digest) or self.pixels.get(pixels)
            if found is not None:
                what = "bytes" if digest in self.files else "pixels"
                raise CleansetError(
                    f"{file}: its {what} are those of {found} of the edition, which may not be trained on; expected "
                    "other images: remove it"
                )


def held_out_images(edition: Edition) -> HeldOut:
    """All images of the edition's index and of its finished sets. Raises CleansetError for a missing table or set."""
    index = read_table(edition.index, INDEX, ["image_id", "sha256", "pixels_sha256"])
    files = dict(zip(index["sha256"], index["image_id"], strict=True))
    pixels = dict(zip(index["pixels_sha256"], index["image_id"], strict=True))
    for role in read_params(edition.folder).models:
        for entry in read_entries(edition.export(role)):
            # a crop has other bytes and other pixels than its image
            name = f"{entry.image_id}, in the set of {role},"
            files.setdefault(entry.file_sha256, name)
            pixels.setdefault(entry.pixels_sha256, name)
    return HeldOut(files, pixels)
