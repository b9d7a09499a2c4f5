"""What is kept of images, by their bytes: lines of text and kinds of hints, which a server's next start knows."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cleanset.classes import class_table, imagenet
from cleanset.images.fingerprints import Fingerprint
from cleanset.plumbing.files import sha256
from cleanset.plumbing.kept_files import KeptFiles
from cleanset.review.hints import hints as hints_module
from cleanset.review.hints import text
from cleanset.review.hints.background import BackgroundHints
from cleanset.review.hints.hints import KEPT_MEASURES, KeptMeasures, usual_measure_files
from cleanset.review.hints.text import KEPT_LINES, TextLine, usual_text_files
from tests.review.page.reviewing import wait_until

LINES = (TextLine("© stock “1”", 0.875, (300, 270, 390, 290), 0.0), TextLine("日本", 1.0, (0, 0, 9, 9), 0.5))


def test_lines_are_found_again(tmp_path: Path) -> None:
    kept = KeptFiles(tmp_path)
    for lines in (LINES, ()):
        kept.keep_value("a", KEPT_LINES, lines)
        assert kept.read_value("a", KEPT_LINES) == lines


def test_measures_are_found_again(tmp_path: Path) -> None:
    bits = np.random.default_rng(7).integers(0, 2, (8, 256)).astype(bool)
    kept = KeptFiles(tmp_path)
    measures = KeptMeasures.of({"border", "dark"}, (500, 375), Fingerprint(hashes=bits, parts=bits[:3]))
    kept.keep_value("a", KEPT_MEASURES, measures)
    found = kept.read_value("a", KEPT_MEASURES)
    assert found is not None
    assert (found.kinds, found.size) == (frozenset({"border", "dark"}), (500, 375))
    np.testing.assert_array_equal(found.fingerprint.hashes, bits)
    np.testing.assert_array_equal(found.fingerprint.parts, bits[:3])


@pytest.mark.parametrize(
    "change", [("border", "a frame"), ('"parts":""', '"parts":"0g"'), ('"parts":""', '"parts":"0000"'), ("500", "0")]
)
def test_measures_that_no_code_has_written_count_as_missing(tmp_path: Path, change: tuple[str, str]) -> None:
    kept = KeptFiles(tmp_path)
    content = '{"kinds":["border"],"size":[500,375],"hashes":"","parts":""}'
    kept.keep("a", content.encode())
    assert kept.read_value("a", KEPT_MEASURES) is not None
    kept.keep("a", content.replace(*change).encode())
    assert kept.read_value("a", KEPT_MEASURES) is None


def test_the_folders_are_of_the_libraries_and_the_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    own = class_table([("a", "apple"), ("b", "bean")], "classes")
    before = usual_text_files(), usual_measure_files(imagenet()), usual_measure_files(own)
    for module in (text, hints_module):
        monkeypatch.setattr(module, "installed_version", lambda name: f"of {name}")
    after = usual_text_files(), usual_measure_files(imagenet()), usual_measure_files(own)
    assert len({*before, *after}) == 6


def test_a_known_image_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lines are there although no process was started; an image that fails is not kept."""
    kept = KeptFiles(tmp_path)
    kept.keep_value(sha256(b"known"), KEPT_LINES, LINES)
    hints = BackgroundHints(lambda image_id: image_id.encode(), imagenet(), kept_text=kept)
    monkeypatch.setattr(hints, "_in_process", lambda function, data: None)
    hints._read_text("known")
    hints._read_text("unknown")
    assert hints._lines == {"known": LINES, "unknown": ()}
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.long
@pytest.mark.slow
def test_a_server_that_starts_again_measures_only_what_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two images, one with a border, twice; then one is another image under the same name."""
    images = {f"ILSVRC2012_val_{number:08}": picture(number) for number in (1, 2)}
    read: list[str] = []

    def measured(again: dict[str, bytes]) -> tuple[int, dict[str, set[str]]]:
        hints = BackgroundHints(again.__getitem__, imagenet(), kept_measures=KeptFiles(tmp_path))
        monkeypatch.setattr(hints, "_measures_in", counted(hints, read))
        read.clear()
        hints.measure_all([list(again)])
        wait_until(lambda: not hints.unmeasured(again, "border"))
        found = {image_id: set(map(str, kinds)) for image_id, kinds in hints.kinds(again).items()}
        hints.close()
        return len(read), found

    first, found = measured(images)
    assert (first, "border" in found["ILSVRC2012_val_00000002"]) == (2, True)
    assert measured(images) == (0, found)
    changed = images | {"ILSVRC2012_val_00000002": picture(3)}
    again, found = measured(changed)
    assert (again, "border" in found["ILSVRC2012_val_00000002"]) == (1, False)


def counted(hints: BackgroundHints, read: list[str]) -> object:
    usual = hints._measures_in

    def measure(data: bytes) -> object:
        read.append(sha256(data))
        return usual(data)

    return measure


def picture(number: int) -> bytes:
    """Noise of its own; number 2 has a black frame."""
    pixels = np.random.default_rng(number).integers(60, 200, (300, 400, 3)).astype(np.uint8)
    if number == 2:
        pixels[:30] = pixels[-30:] = 0
        pixels[:, :30] = pixels[:, -30:] = 0
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, format="PNG")
    return out.getvalue()
