"""Whether an edition's images are those of the official archive, where an image id names bytes."""

from collections.abc import Mapping
from pathlib import PurePosixPath

OFFICIAL_IMAGES_MD5 = "29b22e2961454d5413ddabcf34fc5622"
"""Of ILSVRC2012_img_val.tar, as image-net.org gives it."""


def are_official(images: str, digests: Mapping[str, str]) -> bool:
    """Whether `images` (`dataset.images`) is a tar that `digests`, the MD5 by path of raw.md5, fixes as the official.

    Stage preprocess compares the tar with that MD5. A folder of the same images has none: there every image is
    compared by its SHA-256.
    """
    return PurePosixPath(images).suffix == ".tar" and digests.get(images) == OFFICIAL_IMAGES_MD5
