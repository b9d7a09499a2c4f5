"""Images that Pillow decodes though their data are damaged, and chunks by which viewers show a PNG otherwise."""

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cleanset.dataset.folder import image_locations
from cleanset.images.codec import can_check_jpegs, check_whole, inspect
from cleanset.images.shown_otherwise import chunk_problem, problem_beside_pixels
from cleanset.stages.preprocess import measure

FORMATS = ("JPEG", "PNG")
PIXELS = np.asarray(
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (15, 20, 3), np.uint8)).resize((320, 240)), np.uint8
)

needs_decoder = pytest.mark.skipif(not can_check_jpegs(), reason="needs simplejpeg, of the extra build")


def encoded(kind: str, mode: str = "RGB", **options: bool) -> bytes:
    out = io.BytesIO()
    Image.fromarray(PIXELS).convert(mode).save(out, kind, **options)
    return out.getvalue()


def with_chunk(kind: bytes, content: bytes) -> bytes:
    """A PNG with one more chunk behind its header."""
    data = encoded("PNG")
    chunk = struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    return data[:33] + chunk + data[33:]


@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
@pytest.mark.parametrize("progressive", [False, True])
def test_whole_jpegs(mode: str, progressive: bool) -> None:
    """Also with bytes behind their end, as a camera's, and with damaged metadata."""
    data = encoded("JPEG", mode, progressive=progressive)
    for each in (data, data + b"behind", data[:2] + b"\xff\xe1\x00\x08Exif\0\0" + data[2:]):
        check_whole(each)


@needs_decoder
@pytest.mark.parametrize("progressive", [False, True])
@pytest.mark.parametrize("kept", [0.5, 0.99])
def test_a_jpeg_that_ends_early_with_an_end_marker(progressive: bool, kept: float) -> None:
    data = encoded("JPEG", progressive=progressive)
    cut = data[: int(len(data) * kept)] + b"\xff\xd9"
    Image.open(io.BytesIO(cut)).load()  # Pillow says nothing
    with pytest.raises(ValueError, match=r"^damaged: Corrupt JPEG data: premature end of data segment$"):
        inspect(cut, FORMATS)


@needs_decoder
def test_a_flipped_bit_in_a_scan() -> None:
    """Where it shifts all that follows; one that changes a single value is seen by nobody."""
    data = bytearray(encoded("JPEG", "L"))
    found = []
    for place in range(len(data) // 2, len(data) // 2 + 40):
        data[place] ^= 64
        try:
            inspect(bytes(data), FORMATS)
        except ValueError as error:
            found.append(str(error))
        data[place] ^= 64
    assert len(found) > 5
    assert any(text.startswith("damaged: Corrupt JPEG data") for text in found)


@needs_decoder
def test_a_jpeg_that_only_says_that_it_is_coded_arithmetically() -> None:
    """Its data are of Huffman's coding: Pillow decodes noise."""
    data = encoded("JPEG").replace(b"\xff\xc0", b"\xff\xc9")
    Image.open(io.BytesIO(data)).load()
    with pytest.raises(ValueError, match=r"^damaged: Corrupt JPEG data: [0-9]+ extraneous bytes before marker 0xd9$"):
        inspect(data, FORMATS)


@pytest.mark.parametrize("cut", [12, 8, 4, 1])
def test_a_png_without_its_end(cut: int) -> None:
    data = encoded("PNG")
    inspect(data, FORMATS)
    with pytest.raises(ValueError, match=r"^damaged: no end \(IEND\)$|truncated|broken|Truncated"):
        inspect(data[:-cut], FORMATS)
    assert problem_beside_pixels(data[:-12]) == "no end (IEND)"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (encoded("PNG"), None),
        (encoded("JPEG"), None),
        (with_chunk(b"gAMA", struct.pack(">I", 45455)), None),
        (with_chunk(b"gAMA", struct.pack(">I", 100000)), "a gamma (gAMA), by which viewers change its brightness"),
        (with_chunk(b"cICP", bytes([9, 16, 0, 1])), "a color space (cICP), by which viewers change its colors"),
    ],
)
def test_chunks_by_which_viewers_change_colors(data: bytes, problem: str | None) -> None:
    assert chunk_problem(data) == problem
    inspect(data, FORMATS)


def test_stage_preprocess_names_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And reads them: models see the stored pixels."""
    (tmp_path / "plain.png").write_bytes(encoded("PNG"))
    (tmp_path / "wide.png").write_bytes(with_chunk(b"cICP", bytes([9, 16, 0, 1])))
    facts = measure(image_locations(tmp_path, ["plain.png", "wide.png"], "photos"), FORMATS, where="photos")
    assert facts["pixels_sha256"].nunique() == 1
    assert "shown_otherwise" not in facts
    assert (
        "photos: 1 displayed differently by viewers: wide.png (a color space (cICP), by which viewers change its "
        "colors); "
        "models see the stored pixels\n"
    ) in capsys.readouterr().err


@needs_decoder
@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
def test_a_progressive_jpeg_that_ends_behind_one_of_its_scans(mode: str) -> None:
    """Neither Pillow nor libjpeg-turbo says a word: it is blurred, or coarse."""
    data = encoded("JPEG", mode, progressive=True)
    begins = [place for place in range(len(data) - 1) if data[place : place + 2] == b"\xff\xda"]
    assert len(begins) > 5
    for place in begins[1:]:
        with pytest.raises(ValueError, match=r"^damaged: scans are missing at its end$"):
            check_whole(data[:place] + b"\xff\xd9")
    # a whole one behind it does not count
    with pytest.raises(ValueError, match=r"^damaged: scans are missing at its end$"):
        check_whole(data[: begins[3]] + b"\xff\xd9" + data)


def png_of(rows: bytes, *, interlaced: bool = False, checksum: int = 0) -> bytes:
    """A grey PNG of 13 x 11 pixels with packed rows; `checksum` changes that of the pixels."""
    head = struct.pack(">IIBBBBB", 13, 11, 8, 0, 0, 0, interlaced)
    packed = zlib.compress(rows)
    chunks = [(b"IHDR", head, 0), (b"IDAT", packed[:9], 0), (b"IDAT", packed[9:], checksum), (b"IEND", b"", 0)]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content) ^ changed)
        for kind, content, changed in chunks
    )


GREY = np.random.default_rng(3).integers(0, 255, (11, 13), np.uint8)
STEPS = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]
"""First row and column of the passes of an interlaced PNG, and how far the next ones are."""


@pytest.mark.parametrize("interlaced", [False, True])
def test_rows_of_a_png(interlaced: bool) -> None:
    passes = [GREY[top::down, left::right] for top, left, down, right in STEPS] if interlaced else [GREY]
    rows = b"".join(b"\0" + row.tobytes() for each in passes for row in each)
    whole = png_of(rows, interlaced=interlaced)
    assert (np.asarray(Image.open(io.BytesIO(whole))) == GREY).all()
    for each in (whole, whole + b"behind", png_of(rows + b"more", interlaced=interlaced)):
        check_whole(each)
    for count in (len(rows) - 1, len(rows) - 14, 14):
        cut = png_of(rows[:count], interlaced=interlaced)
        with pytest.raises(ValueError, match=r"^damaged: pixels are missing at its end$"):
            check_whole(cut)
    with pytest.raises(ValueError, match=r"^damaged: chunk IDAT with another checksum$"):
        check_whole(png_of(rows, interlaced=interlaced, checksum=1))
    for place in range(len(whole) - 12, len(whole)):
        with pytest.raises(ValueError, match=r"^damaged: "):
            check_whole(whole[:place])


def test_a_stream_of_pixels_that_does_not_end() -> None:
    """The checksum of the pixels is missing, or another one."""
    packed = zlib.compress(b"".join(b"\0" + row.tobytes() for row in GREY))
    whole = png_of(zlib.decompress(packed))
    for tail in (b"", b"abcd"):
        content = packed[:-4] + tail
        head = whole[: whole.index(b"IDAT") - 4]
        chunk = struct.pack(">I", len(content)) + b"IDAT" + content + struct.pack(">I", zlib.crc32(b"IDAT" + content))
        with pytest.raises(ValueError, match=r"^damaged: "):
            check_whole(head + chunk + whole[-12:])
