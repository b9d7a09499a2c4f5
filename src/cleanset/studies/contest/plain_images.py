"""Bytes after the end of an image, and metadata by which a viewer shows other colors than a model sees."""

import io
import struct

from PIL import Image

_PNG, _JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8"
_SRGB_GAMMA = 45455
"""1/2.2 in hundred-thousandths: what viewers take anyway."""
_SRGB_PRIMARIES = (31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000)
_WITHOUT_LENGTH = {0x01, 0xD8, *range(0xD0, 0xD8)}
_END = 0xD9


def problem_beside_pixels(data: bytes) -> str | None:
    """Why people may be shown something else than a model gets from a whole PNG or JPEG; None if they are not."""
    end = _end_of_png(data) if data.startswith(_PNG) else _end_of_jpeg(data)
    if end < len(data):
        return f"{len(data) - end:,} bytes after the end of the image"
    with Image.open(io.BytesIO(data)) as image:
        if "icc_profile" in image.info:
            return "an ICC profile, by which viewers change its colors"
    chunks = _png_chunks(data) if data.startswith(_PNG) else {}
    if chunks.get(b"gAMA", struct.pack(">I", _SRGB_GAMMA)) != struct.pack(">I", _SRGB_GAMMA):
        return "a gamma (gAMA), by which viewers change its brightness"
    if chunks.get(b"cHRM", struct.pack(">8I", *_SRGB_PRIMARIES)) != struct.pack(">8I", *_SRGB_PRIMARIES):
        return "primaries (cHRM), by which viewers change its colors"
    if b"acTL" in chunks:
        return "an animation (acTL), whose other frames may be shown"
    if b"cICP" in chunks:
        return "a color space (cICP), by which viewers change its colors"
    return None


def _png_chunks(data: bytes) -> dict[bytes, bytes]:
    """The first chunk of each kind up to IEND."""
    found: dict[bytes, bytes] = {}
    place = len(_PNG)
    while place + 8 <= len(data):
        length, kind = int.from_bytes(data[place : place + 4], "big"), data[place + 4 : place + 8]
        found.setdefault(kind, data[place + 8 : place + 8 + length])
        place += length + 12
        if kind == b"IEND":
            break
    return found


def _end_of_png(data: bytes) -> int:
    place = len(_PNG)
    while place + 8 <= len(data):
        length, kind = int.from_bytes(data[place : place + 4], "big"), data[place + 4 : place + 8]
        place += length + 12
        if kind == b"IEND":
            return place
    return len(data)


def _end_of_jpeg(data: bytes) -> int:
    """The place after the marker that ends the image; the whole length where there is none."""
    place = len(_JPEG)
    while place + 2 <= len(data):
        # after the header of a scan its data follow, in which 0xFF is marked by a 0
        place = data.find(b"\xff", place)
        if place < 0 or place + 2 > len(data):
            break
        marker = data[place + 1]
        if marker == _END:
            return place + 2
        if marker == 0xFF:
            place += 1
        elif marker == 0 or marker in _WITHOUT_LENGTH:
            place += 2
        else:
            place += 2 + int.from_bytes(data[place + 2 : place + 4], "big")
    return len(data)
