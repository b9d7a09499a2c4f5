"""Whether the images of an edition are those of the official archive."""

from cleanset.dataset.archives import read_md5_list
from cleanset.dataset.official import are_official
from cleanset.edition.paths import Edition


def images_are_official(edition: Edition, images: str) -> bool:
    """Whether the images of an edition are those of the official archive; `images` is dataset.images of its params.

    The archive itself need not be there, raw.md5 must.
    """
    if not edition.raw_md5.is_file() or edition.path(images).is_dir():
        return False
    return are_official(images, read_md5_list(edition.raw_md5))
