"""The devkit's `meta.mat`: the fields of one struct array in a MATLAB 5.0 file.

A small strict reader, for scipy's crashes the process on damaged files. Format: "MAT-File Format",
The MathWorks, level 5: a header of 128 bytes, then elements of a tag (type, bytes) and data.
"""

import struct
import zlib
from collections.abc import Collection, Iterator

HEADER_BYTES = 128
MAX_BYTES = 64 * 2**20
"""Of a decompressed element; the devkit's has under 2 MiB."""

_INT32, _MATRIX, _COMPRESSED = 5, 14, 15
_STRUCT, _CHAR = 2, 4
_NUMERIC = range(6, 16)
_FORMATS = {1: "b", 2: "B", 3: "h", 4: "H", 5: "i", 6: "I", 7: "f", 9: "d", 12: "q", 13: "Q"}
_ENCODINGS = {1: "latin-1", 2: "latin-1", 4: "utf-16-le", 16: "utf-8", 17: "utf-16-le"}

Value = str | float | None
"""Text, one number, or None for anything else, such as a list of numbers."""


def read_structs(data: bytes, fields: Collection[str]) -> list[dict[str, Value]]:
    """These fields of each element of the first struct array that has them all.

    Raises ValueError or OverflowError for what is no such file.
    """
    if len(data) < HEADER_BYTES or data[124:128] != b"\x00\x01IM":
        raise ValueError("no MATLAB 5.0 file of a little-endian machine")
    for kind, content in _elements(data[HEADER_BYTES:]):
        if kind == _COMPRESSED:
            kind, content = next(_elements(_decompressed(content)), (0, b""))
        if kind == _MATRIX:
            rows = _structs(content, fields)
            if rows is not None:
                return rows
    raise ValueError(f"no struct with the fields {', '.join(fields)}")


def _decompressed(data: bytes) -> bytes:
    decompressor = zlib.decompressobj()
    try:
        content = decompressor.decompress(data, MAX_BYTES)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if not decompressor.eof:
        raise ValueError(f"compressed data cut short, or more than {MAX_BYTES:,} bytes")
    return content


def _elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Type and data of each element."""
    at = 0
    while at < len(data):
        if at + 8 > len(data):
            raise ValueError("an element without a whole tag")
        kind, size = struct.unpack_from("<II", data, at)
        if kind >> 16:  # the small form: data of up to four bytes within the tag
            kind, size, start, step = kind & 0xFFFF, kind >> 16, at + 4, 8
            if size > 4:
                raise ValueError(f"a small element of {size} bytes")
        else:
            start = at + 8
            step = 8 + (size if kind == _COMPRESSED else -(-size // 8) * 8)
        if start + size > len(data):
            raise ValueError(f"an element of {size} bytes, of which {len(data) - start} are there")
        yield kind, data[start : start + size]
        at += step


def _structs(matrix: bytes, fields: Collection[str]) -> list[dict[str, Value]] | None:
    """The elements of a struct array, or None for another matrix or one that lacks a field."""
    elements = _elements(matrix)
    array_class, _ = _start(elements)
    if array_class != _STRUCT:
        return None
    (length,) = _numbers(*_next(elements))
    kind, names = _next(elements)
    if kind != 1 or not 1 <= length <= 64 or len(names) % length or len(names) > 100 * length:
        raise ValueError("a struct without names of its fields")
    width = int(length)
    listed = [names[at : at + width].rstrip(b"\0").decode("latin-1") for at in range(0, len(names), width)]
    if not set(fields) <= set(listed):
        return None
    rows: list[dict[str, Value]] = []
    for position, (kind, content) in enumerate(elements):
        row, column = divmod(position, len(listed))
        if column == 0:
            rows.append({})
        if kind != _MATRIX:
            raise ValueError(f"element {row + 1} of a struct: no matrix")
        if listed[column] in fields:
            rows[-1][listed[column]] = _value(content)
    if rows and len(rows[-1]) != len(fields):
        raise ValueError("a struct that ends early")
    return rows


def _value(matrix: bytes) -> Value:
    elements = _elements(matrix)
    array_class, count = _start(elements)
    if array_class == _CHAR:
        kind, content = _next(elements)
        if kind not in _ENCODINGS:
            raise ValueError(f"text of type {kind}")
        return content.decode(_ENCODINGS[kind])
    if array_class in _NUMERIC and count == 1:
        (number,) = _numbers(*_next(elements))
        return number
    return None


def _start(elements: Iterator[tuple[int, bytes]]) -> tuple[int, int]:
    """Class of a matrix and its number of elements; what follows is its name, which is skipped."""
    _, flags = _next(elements)
    dimensions = _numbers(*_next(elements))
    _next(elements)
    count = 1
    for length in dimensions:
        count *= int(length)
    if not flags or len(dimensions) < 2 or count < 0:
        raise ValueError("a matrix without class or dimensions")
    return flags[0], count


def _next(elements: Iterator[tuple[int, bytes]]) -> tuple[int, bytes]:
    element = next(elements, None)
    if element is None:
        raise ValueError("a matrix that ends early")
    return element


def _numbers(kind: int, data: bytes) -> tuple[float, ...]:
    if kind not in _FORMATS or not data or len(data) % struct.calcsize(_FORMATS[kind]):
        raise ValueError(f"{len(data)} bytes of type {kind}; no numbers")
    return struct.unpack(f"<{len(data) // struct.calcsize(_FORMATS[kind])}{_FORMATS[kind]}", data)
