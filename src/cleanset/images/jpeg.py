"""The segments of a JPEG: what of it decides the pixels, its EXIF orientation, and the number of its scans.

Pillow parses metadata on opening and fails on damaged ones, and takes an orientation from XMP; so it is
given the file without them.
"""

import struct
from collections.abc import Iterator

_START, _SCAN, _EXIF_SEGMENT = 0xD8, 0xDA, 0xE1
_METADATA = {*range(0xE1, 0xEE), 0xEF, 0xFE}
"""APP1 to APP13, APP15 and comments. APP0 (JFIF) and APP14 (Adobe) tell the colour space."""

_EXIF = b"Exif\0\0"
_ORIENTATION, _SHORT = 0x0112, 3


def without_metadata(data: bytes) -> bytes:
    """The JPEG without EXIF, XMP, colour profile, comments and other metadata; the pixels are the same."""
    kept, end = [data[:2]], 2
    for marker, start, stop in _segments(data):
        end = stop
        if marker not in _METADATA:
            kept.append(data[start:stop])
    return b"".join([*kept, data[end:]]) if end > 2 else data


def scans(data: bytes) -> int:
    """The number of scans of a JPEG without metadata: one, or about ten of a progressive one."""
    return data.count(bytes([0xFF, _SCAN]))


def orientation(data: bytes) -> int:
    """The EXIF orientation, 1 to 8; 1 where there is none or it cannot be read."""
    for marker, start, stop in _segments(data):
        if marker == _EXIF_SEGMENT and data[start + 4 : start + 10] == _EXIF:
            return _orientation(data[start + 10 : stop])
    return 1


def _segments(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Marker, start and end of each segment between the start of a JPEG and its first scan."""
    if data[:2] != bytes([0xFF, _START]):
        return
    at = 2
    while at + 4 <= len(data) and data[at] == 0xFF:
        marker, length = struct.unpack_from(">BH", data, at + 1)
        if marker == 0xFF:  # filling
            at += 1
            continue
        if marker == _SCAN or not 0xC0 <= marker <= 0xFE or 0xD0 <= marker <= 0xD9 or length < 2:
            return
        if at + 2 + length > len(data):
            return
        yield marker, at, at + 2 + length
        at += 2 + length


def _orientation(tiff: bytes) -> int:
    """The orientation in the first directory of TIFF data."""
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(tiff[:4])
    if order is None:
        return 1
    try:
        (at,) = struct.unpack_from(f"{order}I", tiff, 4)
        (entries,) = struct.unpack_from(f"{order}H", tiff, at)
        for entry in range(at + 2, at + 2 + 12 * entries, 12):
            tag, kind, count, value = struct.unpack_from(f"{order}HHIH", tiff, entry)
            if tag == _ORIENTATION:
                return value if kind == _SHORT and count == 1 and 1 <= value <= 8 else 1
    except struct.error:  # it ends early
        pass
    return 1
