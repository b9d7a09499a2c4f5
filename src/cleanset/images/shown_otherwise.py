"""Images that viewers show otherwise than their decoded pixels: metadata on colors, bytes after the end."""

import io
import struct

from PIL import Image

from cleanset.images.codec import ORIENTATION, end_of_jpeg, is_png, opened, png_chunks

PIXEL_MODES = ("RGB", "L")
_ALLOWED_CHUNKS = {
    # 1/2.2, and the primaries of sRGB, in hundred-thousandths: what viewers take anyway
    b"gAMA": struct.pack(">I", 45455),
    b"cHRM": struct.pack(">8I", *(31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000)),
}
_CHUNK_PROBLEMS = {
    b"gAMA": "a gamma (gAMA), by which viewers change its brightness",
    b"cHRM": "primaries (cHRM), by which viewers change its colors",
    b"acTL": "an animation (acTL), whose other frames may be shown",
    b"cICP": "a color space (cICP), by which viewers change its colors",
}


def problem_for_viewers(image: Image.Image, data: bytes) -> str | None:
    """Why a whole PNG or JPEG looks otherwise to people than to models; None if it does not.

    `image`: as decoded from `data`.
    """
    if image.mode not in PIXEL_MODES or "transparency" in image.info:
        return f"mode {image.mode}; expected RGB or grayscale without transparency: convert it"
    if getattr(image, "n_frames", 1) != 1:
        return "an animation; expected one image"
    if image.getexif().get(ORIENTATION, 1) != 1:
        return "an EXIF orientation; expected an image without one, since viewers turn the image, models do not"
    beside = problem_beside_pixels(data)
    return None if beside is None else f"{beside}; expected nothing but its pixels: save them alone"


def problem_beside_pixels(data: bytes) -> str | None:
    """What in a file, next to its pixels, people may be shown otherwise; None for nothing."""
    end = png_chunks(data)[1] if is_png(data) else end_of_jpeg(data)
    if end is None:
        return "no end (IEND)"
    if end < len(data):
        return f"{len(data) - end:,} bytes after the end of the image"
    with opened(io.BytesIO(data), data) as image:
        if "icc_profile" in image.info:
            return "an ICC profile, by which viewers change its colors"
    return chunk_problem(data)


def chunk_problem(data: bytes) -> str | None:
    """A chunk of a PNG by which viewers show it otherwise; None for nothing, and for a JPEG."""
    chunks = png_chunks(data)[0] if is_png(data) else {}
    changed = (kind for kind in _CHUNK_PROBLEMS if kind in chunks and chunks[kind] != _ALLOWED_CHUNKS.get(kind))
    return next((_CHUNK_PROBLEMS[kind] for kind in changed), None)
