"""Measured images are known again after a server's start, by their bytes and by the code that measures."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cleanset.cache import PACKAGE
from cleanset.classes import imagenet
from cleanset.files import sha256
from cleanset.images.fingerprints import Fingerprint
from cleanset.review.hints import measure_cache
from cleanset.review.hints.background import BackgroundHints, HintCaches
from cleanset.review.hints.measure_cache import KeptMeasures, MeasureCache, usual_measure_cache
from tests.review.page.reviewing import wait_until

DIGEST = "ab" * 32


def measures() -> KeptMeasures:
    bits = np.random.default_rng(7).integers(0, 2, (8, 256)).astype(bool)
    return KeptMeasures(
        kinds=frozenset({"border", "dark"}), size=(500, 375), fingerprint=Fingerprint(hashes=bits, parts=bits[:3])
    )


def test_what_is_kept(tmp_path: Path) -> None:
    cache = MeasureCache(tmp_path / "measures")
    assert cache.kept(DIGEST) is None
    cache.keep(DIGEST, measures())
    found = MeasureCache(tmp_path / "measures").kept(DIGEST)
    assert found is not None
    assert (found.kinds, found.size) == (frozenset({"border", "dark"}), (500, 375))
    np.testing.assert_array_equal(found.fingerprint.hashes, measures().fingerprint.hashes)
    np.testing.assert_array_equal(found.fingerprint.parts, measures().fingerprint.parts)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text[: len(text) // 2],
        lambda text: text.replace("border", "frame"),
        lambda text: json.dumps(json.loads(text) | {"hashes": "0g"}),
        lambda text: json.dumps(json.loads(text) | {"parts": "00" * 33}),
        lambda text: json.dumps(json.loads(text) | {"size": [0, 4]}),
        lambda _: "",
    ],
)
def test_a_damaged_file_counts_as_missing(tmp_path: Path, change: object) -> None:
    cache = MeasureCache(tmp_path)
    cache.keep(DIGEST, measures())
    path = tmp_path / f"{DIGEST}.json"
    path.write_text(change(path.read_text()))  # type: ignore[operator]
    assert cache.kept(DIGEST) is None


def test_a_disk_that_takes_nothing(tmp_path: Path) -> None:
    (tmp_path / "measures").write_text("")
    MeasureCache(tmp_path / "measures").keep(DIGEST, measures())


def test_the_folder_is_of_code_libraries_and_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEANSET_CACHE", str(tmp_path))
    package = tmp_path / "package"
    for each in measure_cache.CODE:
        (package / each).parent.mkdir(parents=True, exist_ok=True)
        (package / each).write_bytes((PACKAGE / each).read_bytes())

    def folder() -> Path:
        found = usual_measure_cache(imagenet())
        assert found is not None
        return found._files.folder

    before = folder()
    monkeypatch.setattr(measure_cache, "PACKAGE", package)
    assert folder() == before
    for each in measure_cache.CODE:
        with (package / each).open("a") as file:
            file.write("\n# changed\n")
        assert folder() != before
        before = folder()
    monkeypatch.setattr(measure_cache, "installed_version", lambda name: f"of {name}")
    assert folder() != before


@pytest.mark.long
@pytest.mark.slow
def test_a_server_that_starts_again_measures_only_what_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two images of which one has a border, twice; then one is another image under the same name."""
    images = {f"ILSVRC2012_val_{number:08}": picture(number) for number in (1, 2)}
    read: list[str] = []

    def measured(again: dict[str, bytes]) -> tuple[int, dict[str, set[str]]]:
        caches = HintCaches(measures=MeasureCache(tmp_path))
        hints = BackgroundHints(again.__getitem__, imagenet(), caches)
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
