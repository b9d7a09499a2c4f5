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
        "photos: 1 shown otherwise by viewers: wide.png (a color space (cICP), by which viewers change its colors); "
        "models see the stored pixels\n"
    ) in capsys.readouterr().err
