"""The photographs that benches measure with: the real ones where they are, else drawn ones of their size."""

import io

import numpy as np
from PIL import Image

from measuring import REAL

DRAWN = 150
"""Number of drawn images where there is no photograph."""


def photographs_or_drawings() -> tuple[str, list[bytes]]:
    """The real photographs beside the project or in CLEANSET_REAL; drawn ones where there are none."""
    photographs = [path.read_bytes() for path in sorted((REAL / "photos").glob("*.JPEG"))]
    if photographs:
        return f"{len(photographs)} real photographs, repeated", photographs
    rng = np.random.default_rng(0)
    return f"{DRAWN} drawn ones, repeated", [drawing(rng) for _ in range(DRAWN)]


def variant(data: bytes, number: int) -> bytes:
    """The JPEG with other pixels for each number up to 511: its first quantization table changed, nothing encoded.

    Bit n of the number decides whether the n-th of the lowest frequencies is taken as larger. `cleanset verify` would
    find images that differ in a comment alone to be the same.
    """
    at = 2
    while data[at + 1] != 0xDB:  # the segment of the tables
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    width = 1 + (data[at + 4] >> 4)  # bytes of a value
    changed = bytearray(data)
    for bit in range(number.bit_length()):
        low_byte = at + 5 + width * (bit + 2) - 1
        changed[low_byte] += (number >> bit & 1) * (1 if changed[low_byte] < 255 else -1)
    return bytes(changed)


def drawing(rng: np.random.Generator) -> bytes:
    """A JPEG of the size, in pixels and in bytes, of the usual image of ImageNet."""
    coarse = Image.fromarray(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8)).resize((500, 375))
    pixels = np.asarray(coarse) + rng.normal(0, 14, (375, 500, 3))
    out = io.BytesIO()
    Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(out, "JPEG", quality=94)
    return out.getvalue()
