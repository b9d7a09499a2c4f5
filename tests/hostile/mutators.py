"""Seeded damage to bytes, text and archives."""

import io
import random
import tarfile
from collections.abc import Callable, Sequence

_NUMBERS = (
    "0", "-1", "012", "0o14", "1:30", "1_0", "1e5", "1e999", ".inf", ".nan", "NaN", "-Infinity", "9" * 5000, "5.0",
    "2147483648", "9223372036854775808", "2001-01-01", "2001-99-99", "1000", "999",
)  # fmt: skip
_SYNTAX = (
    "yes", "off", "null", "~", "true", "<<", "=", "!", "!!int x", "!!bool maybe", "!!binary x", "&a", "*a", "%", "@",
    "!!python/object:os.system x", "`", "#", ",", ":", "- ", "? ", "[", "]", "{", "}", "[" * 5000, "{a: " * 5000,
    "- " * 2000, "---\n", "...\n", "|\n", ">\n", "'", '"', '"\\u2028"', '"\\x85"', "\\", "[]", "{}", "[[1]]",
)  # fmt: skip
_TEXT = (
    "", " ", "\n", "\r", "\t", "\0", "\x1b", "\x85", "\u2028", "\ufeff", "\u202e", "²", "٣", "\U0001f600", "../", "/",
    "a" * 5000, "n01440764", "ILSVRC2012_val_00000001", "ILSVRC2012_val_00000000", "top5",
)  # fmt: skip
TOKENS = (*_NUMBERS, *_SYNTAX, *_TEXT)


def pick(rng: random.Random, choices: Sequence[Callable[[], bytes]]) -> bytes:
    """What one of the choices makes."""
    return rng.choice(choices)()


def flipped(rng: random.Random, data: bytes) -> bytes:
    """A few bytes replaced."""
    result = bytearray(data or b"\0")
    for _ in range(rng.choice([1, 1, 2, 4, 16])):
        result[rng.randrange(len(result))] = rng.choice([0, 0xFF, rng.randrange(256)])
    return bytes(result)


def spliced(rng: random.Random, data: bytes) -> bytes:
    """A part cut out, doubled, zeroed, replaced by noise, or everything behind it cut off."""
    start = rng.randrange(len(data) + 1)
    end = min(len(data), start + rng.choice([1, 4, 8, 100, 512, 5000]))
    part = data[start:end]
    new = rng.choice([b"", part * 2, bytes(len(part)), rng.randbytes(len(part)), rng.randbytes(8)])
    return data[:start] if rng.random() < 0.15 else data[:start] + new + data[end:]


def damaged(rng: random.Random, data: bytes) -> bytes:
    """Damage that knows nothing of the format."""
    for _ in range(rng.choice([1, 1, 2, 3])):
        data = rng.choice([flipped, spliced])(rng, data)
    return data


def edited(rng: random.Random, text: str) -> bytes:
    """Text with some of its words replaced, removed, doubled or followed by an awkward token."""
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        starts = [at for at in range(1, len(text)) if text[at - 1] in " \n,:[]{}()\"'" or text[at] in " \n,:[]{}()\"'"]
        start = rng.choice(starts or [0])
        end = next((at for at in starts if at > start), len(text))
        word, token = text[start:end], rng.choice(TOKENS)
        new = rng.choice([token, token, token, word + token, token + word, "", word * 2])
        text = text[:start] + new + text[end:]
    if rng.random() < 0.1:
        lines = text.split("\n")
        lines.insert(rng.randrange(len(lines)), rng.choice(lines))
        text = "\n".join(lines)
    data = text.encode("utf-8", "surrogatepass")
    return damaged(rng, data) if rng.random() < 0.15 else data


BLOCK = tarfile.BLOCKSIZE
_FIELDS = {
    "name": (0, 100), "mode": (100, 8), "size": (124, 12), "mtime": (136, 12), "type": (156, 1), "magic": (257, 8),
    "sparse": (386, 96), "extended": (482, 1), "prefix": (345, 155),
}  # fmt: skip
_TYPES = b"01234567SLKxgXV\0"
_SIZES = (b"77777777777\0", b"00000000000\0", b"-0000000001\0", b"\x80" + b"\0" * 3 + b"\x7f" * 8, b"\xff" * 12,
          b"\xff" * 10 + b"\xfc\0", b"garbage\0\0\0\0\0", b"00000002000\0")  # fmt: skip


def with_damaged_header(rng: random.Random, archive: bytes) -> bytes:
    """A tar with another value in a header, whose checksum is put right."""
    starts = [at for at in range(0, len(archive) - BLOCK, BLOCK) if archive[at + 257 : at + 262] == b"ustar"]
    if not starts:
        return damaged(rng, archive)
    at = rng.choice(starts)
    header = bytearray(archive[at : at + BLOCK])
    field = rng.choice(list(_FIELDS))
    start, length = _FIELDS[field]
    value = rng.choice([rng.randbytes(length), bytes(length), rng.choice(_SIZES)[:length], b"\xff" * length])
    if field == "type":
        value = bytes([rng.choice(_TYPES)])
    header[start : start + len(value)] = value
    if rng.random() < 0.3:  # a GNU sparse file, whose map is in the header
        header[156:157] = b"S"
        header[257:265] = b"ustar  \0"
        header[386 : 386 + 97] = rng.randbytes(96) + rng.choice([b"\0", b"\1"])
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return archive[:at] + bytes(header) + archive[at + BLOCK :]


_KEYS = ("size", "path", "linkpath", "mtime", "uid", "hdrcharset", "comment", "GNU.sparse.map", "GNU.sparse.size",
         "GNU.sparse.realsize", "GNU.sparse.name", "GNU.sparse.major", "GNU.sparse.minor", "GNU.sparse.offset",
         "GNU.sparse.numbytes", "GNU.sparse.numblocks", "SCHILY.realsize", "x" * 300)  # fmt: skip
_VALUES = (
    "", "0", "1", "-1", "-1024", "9" * 30, "0,1", "1,2,3", "0,10,20", "x", "nan", "inf", "BINARY", "../x", "²",
    "a" * 3000,
)  # fmt: skip


def with_pax_header(rng: random.Random, members: Sequence[tuple[str, bytes]]) -> bytes:
    """A tar of the members, one with odd pax headers."""
    out = io.BytesIO()
    odd = rng.randrange(len(members))
    headers = {rng.choice(_KEYS): rng.choice(_VALUES) for _ in range(rng.choice([1, 1, 2, 3]))}
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for number, (name, data) in enumerate(members):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            if number == odd:
                info.pax_headers = headers
            archive.addfile(info, io.BytesIO(data))
    data = out.getvalue()
    if rng.random() < 0.3:  # the records themselves
        at = data.find(b"PaxHeaders")
        start = (at // BLOCK + 1) * BLOCK
        data = data[:start] + flipped(rng, data[start : start + 64]) + data[start + 64 :]
    return with_damaged_header(rng, data) if rng.random() < 0.3 else data
