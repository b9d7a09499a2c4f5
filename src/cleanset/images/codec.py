"""Decoding JPEGs and PNGs, whose EXIF orientation is not applied; cropping, encoding PNGs; JPEG segments.

Pillow parses metadata on opening, fails on damaged metadata, and takes an orientation from XMP; so it is given the file
without it.

No EXIF orientation is applied anywhere: models see the stored pixels, and boxes are
given in stored pixels; only viewers turn them.
"""

import io
import re
import struct
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from PIL import Image, UnidentifiedImageError, features
from PIL import __version__ as _pillow

from cleanset.errors import CleansetError, reason
from cleanset.images.boxes import Box, Crop, check_box
from cleanset.plumbing.files import sha256

# second bytes of the markers of a JPEG; the first is 0xFF
_START = 0xD8
_END = 0xD9
_SCAN = 0xDA
_JFIF = 0xE0
_EXIF_SEGMENT = 0xE1
_METADATA = {*range(0xE1, 0xEE), 0xEF, 0xFE}
"""APP1 to APP13, APP15 and comments. APP0 (JFIF) and APP14 (Adobe) define the colour space."""

_OTHER_CODINGS = {0xC3, *range(0xC5, 0xD0)}
"""Frames that are neither baseline nor progressive, such as arithmetic coding, and its tables."""

_MARKER = re.compile(rb"\xff+([^\x00\x01\xff\xd0-\xd8])", re.DOTALL)
"""The markers of segments, and of the end; TEM, RST and a second SOI have no segment."""

_EXIF = b"Exif\0\0"
_ICC_SEGMENT = 0xE2
_ICC = b"ICC_PROFILE\0"
_PROFILE_HEADER = 128
"""Bytes of the header of an ICC profile."""
MAX_PROFILE_BYTES = 2**20
"""Largest ICC profile that a crop keeps: Pillow opens no PNG with a larger one."""
_FRAMES = (0xC0, 0xC1, 0xC2)
"""Frames of baseline, extended and progressive JPEGs."""

_CRITICAL = (b"IHDR", b"PLTE", b"IDAT", b"IEND")
_PNG_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""Values of a pixel of a PNG, by its type of colours."""

_ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
"""First column and row of each pass of an interlaced PNG, and the distances to the next ones."""

_PNG = b"\x89PNG\r\n\x1a\n"
_PNG_HEADER = 33
"""Bytes of a PNG that have its size and bits."""
ORIENTATION = 0x0112
_SHORT = 3


def without_metadata(data: bytes) -> bytes:
    """The JPEG without EXIF, XMP, colour profile, comments and other metadata; the pixels are the same."""
    kept = [data[:2]]
    end = 2
    for marker, start, stop in _segments(data):
        end = stop
        if marker not in _METADATA:
            kept.append(data[start:stop])
    return b"".join([*kept, data[end:]]) if end > 2 else data


def _is_jpeg(data: bytes) -> bool:
    return data[:2] == bytes([0xFF, _START])


def _markers(data: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Each marker of a JPEG after its start, in scans too: where it begins and ends, and where its segment does."""
    at = 2
    while (found := _MARKER.search(data, at)) is not None:
        marker = found[1][0]
        start = found.end()
        at = start if marker == _END else start + int.from_bytes(data[start : start + 2], "big")
        yield marker, found.start(), start, at


def end_of_jpeg(data: bytes) -> int:
    """The place after the marker that ends the image; the whole length without one."""
    return next((end for marker, _, _, end in _markers(data) if marker == _END), len(data))


def as_browsers_show(data: bytes) -> bytes | None:
    """The RGB or grey JPEG without metadata and trailing bytes; None if some browser cannot show its pixels."""
    kept = [data[:2]]
    before = 2
    for marker, begin, start, at in _markers(data):
        kept.append(data[before:begin])  # the scan before it
        if marker == _END:
            return b"".join([*kept, data[begin:at]])
        before = at
        has_thumbnail = marker == _JFIF and at != start + 16
        if has_thumbnail or marker in _OTHER_CODINGS:
            return None
        if marker not in _METADATA:
            kept.append(data[start - 2 : at])
    return None


def scans(data: bytes) -> int:
    """The number of scans of a JPEG without metadata: one, or about ten of a progressive one."""
    return data.count(bytes([0xFF, _SCAN]))


def orientation(data: bytes) -> int:
    """The EXIF orientation of a JPEG, 1 to 8; 1 if it is missing or unreadable."""
    for marker, start, stop in _segments(data):
        if marker == _EXIF_SEGMENT and data[start + 4 : start + 10] == _EXIF:
            return _orientation(data[start + 10 : stop])
    return 1


def _rgb_profile(data: bytes, image: Image.Image) -> bytes:
    """The ICC profile in the bytes of an image, if it is one of RGB colours; empty without one, or for a damaged one.

    A grey or CMYK image becomes RGB where it is cropped, and its profile does not apply to that.
    """
    profile = _joined_profile(data) if _is_jpeg(data) else image.info.get("icc_profile") or b""
    is_whole = len(profile) >= _PROFILE_HEADER and int.from_bytes(profile[:4], "big") == len(profile)
    is_rgb = profile[16:20] == b"RGB " and profile[36:40] == b"acsp"
    return profile if is_whole and is_rgb and len(profile) <= MAX_PROFILE_BYTES else b""


def _joined_profile(data: bytes) -> bytes:
    """The ICC profile in the segments of a JPEG, each with its number and their count; empty unless all are there."""
    parts: dict[int, bytes] = {}
    counts = set()
    for marker, start, stop in _segments(data):
        head = start + 4
        if marker == _ICC_SEGMENT and data[head : head + 12] == _ICC and stop >= head + 14:
            parts[data[head + 12]] = data[head + 14 : stop]
            counts.add(data[head + 13])
    return b"".join(parts[number] for number in sorted(parts)) if [*counts] == [len(parts)] else b""


def _segments(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Marker, start and end of each segment of a well-formed header: between the start of a JPEG and its first scan."""
    if not _is_jpeg(data):
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
            if tag == ORIENTATION:
                return value if kind == _SHORT and count == 1 and 1 <= value <= 8 else 1
    except struct.error:  # it ends early
        pass
    return 1


Read = Callable[[str], bytes]
"""From an image id to the bytes of the image."""

Source = Callable[[Any], bytes | Image.Image]
"""From a name to the bytes of a JPEG, or to a part of it that is decoded already."""

MAX_AREA = 100_000_000
"""Pixels. ImageNet's largest validation image has under 20 million; a bomb has far more."""

MAX_SCANS = 64
"""Scans of a progressive JPEG, which usually has ten; each costs as much time as a whole baseline image."""

MAX_ASPECT_RATIO = 200
"""Long side by short side. A preprocessing scales the short side to some 256 pixels, the long one with it."""


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """Properties of an image that are measured once; `mode` is Pillow's: RGB, L or CMYK."""

    width: int
    height: int
    mode: str
    pixels_sha256: str


IMAGE_FORMATS = ("JPEG", "PNG")
"""The formats of images that are read, by Pillow's names."""


def decode(data: bytes, formats: tuple[str, ...] = IMAGE_FORMATS) -> Image.Image:
    """The whole image as Pillow reads it, of a JPEG with its EXIF orientation and no other metadata.

    Raises ValueError, with the reason, if that fails.
    """
    content = without_metadata(data)
    if _is_jpeg(content) and scans(content) > MAX_SCANS:
        raise ValueError(f"{scans(content)} scans, more than {MAX_SCANS}")
    image = opened(io.BytesIO(content), data, formats)
    try:
        image.load()
    except Exception as error:  # Pillow raises whatever damaged bytes lead it to
        raise ValueError(reason(error)) from None
    if content is not data:
        set_orientation(image, orientation(data))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of entries that are cut off
            image.getexif()
    except Exception:  # damaged EXIF data of a PNG: whoever asks for the orientation would fail on them
        image.info.pop("exif", None)
    return image


def opened(file: IO[bytes], start: bytes, formats: tuple[str, ...] = IMAGE_FORMATS) -> Image.Image:
    """The image whose header alone was read from a file that begins with `start`, with whatever metadata.

    Raises ValueError, with the reason, if that fails.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a bomb, of damaged metadata that are not used
            image = Image.open(file, formats=formats)
    except UnidentifiedImageError:
        if is_lfs_pointer(start):
            raise ValueError("a pointer of git LFS in place of the image: run git lfs pull") from None
        raise ValueError("empty" if not start else f"not a {' or '.join(formats)}") from None
    except Exception as error:  # Pillow raises whatever damaged bytes lead it to
        raise ValueError(reason(error)) from None
    if image.width * image.height > MAX_AREA:
        raise ValueError(f"{image.width} x {image.height} pixels, more than {MAX_AREA:,}")
    return image


_LFS_POINTER = b"version https://git-lfs.github.com/spec/"


def is_lfs_pointer(data: bytes) -> bool:
    """Whether bytes are the text that git LFS leaves in place of a file that was not fetched."""
    return data.startswith(_LFS_POINTER)


WHOLE_IMAGE = "a whole JPEG or PNG"


def decode_file(data: bytes, where: object, expected: str = WHOLE_IMAGE, *formats: str) -> Image.Image:
    """The image in the bytes of a file. Raises CleansetError with `where` and `expected` if they hold no image."""
    try:
        return decode(data, formats or IMAGE_FORMATS)
    except ValueError as error:
        raise unreadable_image(where, error, expected) from None


def unreadable_image(where: object, error: Exception, expected: str = WHOLE_IMAGE) -> CleansetError:
    """The error for a file that holds no image."""
    return CleansetError(f"{where}: cannot be read ({error}); expected {expected}")


def set_orientation(image: Image.Image, value: int) -> None:
    """Give an image an EXIF orientation, 1 to 8, and no other EXIF data."""
    exif = image.getexif()
    exif.clear()
    if value != 1:
        exif[ORIENTATION] = value


def inspect(data: bytes, formats: tuple[str, ...] = ("JPEG",)) -> ImageFacts:
    """Decode an image and measure it. Raises ValueError as `decode` does, and for extreme shapes.

    If `formats` has PNG, also for damaged data, as `check_whole` does, for images of other than 8 bits of red, green
    and blue, or grey, and for several in one file: decoded here, they would look different than in other programs.
    """
    image = decode(data, formats)
    if "PNG" in formats:
        _check_plain(image, data)
        check_whole(data)
    _check_shape(image)
    return ImageFacts(image.width, image.height, image.mode, pixels_sha256(image))


def can_check_jpegs() -> bool:
    """Whether the library is there, of the extra build, that reports the warnings of the JPEG decoder."""
    return find_spec("simplejpeg") is not None


def check_whole(data: bytes) -> None:
    """Raise ValueError for damage that Pillow decodes: a JPEG with a warning of its decoder, missing scans or rows.

    Pillow drops the warnings of libjpeg-turbo, such as of a scan that ends early, behind which it paints one colour,
    and those of rows that a PNG lacks. A progressive JPEG that ends behind one of its scans is decoded without any.
    """
    if is_png(data):
        _check_whole_png(data)
    elif can_check_jpegs():
        import simplejpeg

        plain = without_metadata(data)
        try:
            simplejpeg.decode_jpeg(plain, strict=True)
        except ValueError as error:
            raise ValueError(f"damaged: {error}") from None
        if not _has_all_scans(plain):
            raise ValueError("damaged: scans are missing at its end")


def _has_all_scans(data: bytes) -> bool:
    """Whether the scans of a JPEG have every coefficient of every component, to its last bit."""
    # by component, the lowest bit of each coefficient that a scan has brought
    bits = dict[int, list[int | None]]()
    for marker, _, start, end in _markers(data):
        segment = data[start + 2 : end]
        if marker == _END:
            break
        if marker in _FRAMES:
            bits = {segment[6 + 3 * place]: [None] * 64 for place in range(segment[5])}
        elif marker == _SCAN:
            first, last, precision = segment[-3:]
            for component in segment[1 : 1 + 2 * segment[0] : 2]:
                bits[component][first : last + 1] = [precision & 15] * (last + 1 - first)
    return all(each == [0] * 64 for each in bits.values())


def _check_whole_png(data: bytes) -> None:
    """Raise ValueError for a PNG without an end, with a chunk that has another checksum, or with too few pixels."""
    if png_chunks(data)[1] is None:
        raise ValueError("damaged: no end (IEND)")
    unpacked = 0
    stream = zlib.decompressobj()
    for kind, content, checksum in _png_chunks(data):
        if kind in _CRITICAL and zlib.crc32(kind + content) != checksum:
            raise ValueError(f"damaged: chunk {kind.decode()} with another checksum")
        if kind == b"IHDR":
            width, height, depth, colours, _, _, is_interlaced = struct.unpack(">IIBBBBB", content)
        if kind == b"IDAT":
            try:
                unpacked += len(stream.decompress(content))
            except zlib.error as error:
                raise ValueError(f"damaged: {reason(error)}") from None
    bits = depth * _PNG_CHANNELS[colours]
    passes = _ADAM7 if is_interlaced else [(0, 0, 1, 1)]
    sizes = [(-((left - width) // right), -((top - height) // down)) for left, top, right, down in passes]
    if unpacked < sum(rows * (1 + (columns * bits + 7) // 8) for columns, rows in sizes if columns) or not stream.eof:
        raise ValueError("damaged: pixels are missing at its end")


def is_png(data: bytes) -> bool:
    """Whether bytes begin as a PNG."""
    return data.startswith(_PNG)


def png_chunks(data: bytes) -> tuple[dict[bytes, bytes], int | None]:
    """The first chunk of each kind of a PNG, and the place after its end; None without an end."""
    chunks: dict[bytes, bytes] = {}
    place = len(_PNG)
    for kind, content, checksum in _png_chunks(data):
        chunks.setdefault(kind, content)
        place += len(content) + 12
        if kind == b"IEND" and checksum is not None:
            return chunks, place
    return chunks, None


def _png_chunks(data: bytes) -> Iterator[tuple[bytes, bytes, int | None]]:
    """Kind, content and checksum of each chunk of a PNG up to its end; without a checksum where the data end before."""
    place = len(_PNG)
    kind = b""
    while place + 8 <= len(data) and kind != b"IEND":
        length = int.from_bytes(data[place : place + 4], "big")
        kind = data[place + 4 : place + 8]
        end = place + 8 + length
        checksum = int.from_bytes(data[end : end + 4], "big") if end + 4 <= len(data) else None
        yield kind, data[place + 8 : end], checksum
        place = end + 4


def size_in_header(path: Path) -> tuple[int, int]:
    """Width and height of the JPEG or PNG in a file; only the header is read.

    Raises ValueError, as `inspect` does, for what the header shows.
    """
    with path.open("rb") as file:
        start = file.read(_PNG_HEADER)
        file.seek(0)
        with opened(file, start, IMAGE_FORMATS) as image:
            _check_plain(image, start)
            _check_shape(image)
            return image.size


def _check_shape(image: Image.Image) -> None:
    if max(image.size) > MAX_ASPECT_RATIO * min(image.size):
        raise ValueError(
            f"{image.width} x {image.height} pixels, one side more than {MAX_ASPECT_RATIO} times the other"
        )


def _check_plain(image: Image.Image, data: bytes) -> None:
    """Raise ValueError unless an image is one of 8 bits of red, green and blue, or grey, without transparency."""
    bits = data[24] if image.format == "PNG" else 8  # Pillow cuts 16 bits of red, green and blue to 8 unseen
    # of an MPO file, which is a JPEG with another behind it, the first one is decoded
    frames = 1 if image.format == "MPO" else getattr(image, "n_frames", 1)
    if frames > 1:
        raise ValueError(f"animated, {frames} images; expected one")
    if bits != 8 or image.mode not in ("RGB", "L"):
        other = "transparency" if bits == 8 else f"{bits} bits"
        kind = {"CMYK": "CMYK", "P": "a palette", "1": "black and white"}.get(image.mode, other)
        raise ValueError(f"{kind}; expected 8 bits of RGB or grey")
    if "transparency" in image.info:
        raise ValueError("transparency; expected 8 bits of RGB or grey")


def pixels_sha256(image: Image.Image) -> str:
    """SHA-256 of the RGB bytes, row by row, three bytes a pixel."""
    return sha256(image.convert("RGB").tobytes())


def cropped(data: bytes, box: Box) -> Image.Image:
    """The part of an image inside `box`, as RGB, with the image's EXIF orientation and profile of RGB colours.

    Other metadata is left out.

    Raises ValueError as `decode` does, and for a box that is not inside the image.
    """
    image = decode(data)
    check_box(box, image.width, image.height)
    part = image.convert("RGB").crop(box)
    profile = _rgb_profile(data, image)
    # without it viewers would show other colours than those of the whole image
    part.info = {"icc_profile": profile} if profile else {}
    exif = image.info.get("exif", b"")  # of a PNG: JPEGs are decoded without
    set_orientation(part, _orientation(exif.removeprefix(_EXIF)) if exif else orientation(data))
    return part


def part(read: Read, crops: Mapping[str, Crop], name: str) -> Image.Image:
    """The crop of that name, read with `read`. Raises ValueError as `decode` does."""
    crop = crops[name]
    return cropped(read(crop.image_id), crop.box)


def png(image: Image.Image) -> bytes:
    """PNG of an image: fixed settings; with an ICC profile and an EXIF orientation, which viewers apply, as its only
    metadata."""
    out = io.BytesIO()
    exif = image.getexif()
    image.save(
        out,
        format="PNG",
        compress_level=6,
        exif=exif if len(exif) else None,
        icc_profile=image.info.get("icc_profile"),
    )
    return out.getvalue()


def encoder() -> str:
    """The versions of the PNG encoder; others may write the same pixels in other bytes."""
    # with zlib-ng, "zlib" is only the version that it emulates; Pillow before 11.1 did not know it
    if "zlib_ng" in features.features and features.check_feature("zlib_ng"):
        return f"Pillow {_pillow} with zlib-ng {features.version_feature('zlib_ng')}"
    return f"Pillow {_pillow} with zlib {features.version_codec('zlib')}"


def decoder() -> str:
    """The version of the JPEG decoder here."""
    if features.check_feature("libjpeg_turbo"):
        return f"Pillow {_pillow} with libjpeg-turbo {features.version_feature('libjpeg_turbo')}"
    return f"Pillow {_pillow} with libjpeg {features.version_codec('jpg')}"
