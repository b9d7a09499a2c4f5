"""frost and defocus_blur are the library's, but do not depend on the code that OpenCV and IPP choose by processor."""

import os
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import cv2
import imagecorruptions
import numpy as np
import pytest
from numpy.typing import NDArray

from cleanset.studies.robustness.corruptions.params import SEVERITIES
from cleanset.studies.robustness.kernels import FILES, disk, enlarged, frost
from tests.studies.robustness.digests import stored
from tests.studies.robustness.drawn import drawn

DIGESTS_BY_OPENCV = """
import cv2
from cleanset.studies.robustness.corruptions.changes import corrupted_images
from tests.studies.robustness.digests import SEED, digest
from tests.studies.robustness.drawn import drawn

for name in ("frost", "defocus_blur"):
    for image in corrupted_images(drawn(), name, seed=SEED):
        print(digest(image))
"""

LAYERS = {
    "frost1.png": "fe24f8c7df6e", "frost2.png": "1fc774c5f375", "frost3.png": "1fc774c5f375",
    "frost4.jpg": "94c9b297116f", "frost5.jpg": "9e9c4a3a51d7", "frost6.jpg": "834bffd62c4b",
}  # fmt: skip
"""Start of the SHA-256 of what cv2.resize 5.0.0 gives with OPENCV_IPP=avx2 for a photograph 1.1 times as large."""

DISKS = {
    (3, 0.1): "37f5ff517a66",
    (4, 0.5): "f7fbaa054dfb",
    (6, 0.5): "3fb167a4ff52",
    (8, 0.5): "554fe4ea1d9c",
    (10, 0.5): "834e8492ac4d",
}
"""Start of the SHA-256 of imagecorruptions' kernel of defocus_blur on a processor with AVX2."""


def photograph(file: str) -> NDArray[np.uint8]:
    image = cv2.imread(str(Path(imagecorruptions.__file__).parent / "frost" / file))
    assert image is not None
    return np.asarray(image, np.uint8)


@pytest.fixture
def enlarging_library() -> Iterator[None]:
    """Let imagecorruptions enlarge photographs by `enlarged`, the one thing that differs between processors."""

    def resize(image: NDArray[np.uint8], dsize: tuple[int, int], interpolation: int) -> NDArray[np.uint8]:
        assert interpolation == cv2.INTER_CUBIC
        return enlarged(image, dsize[1], dsize[0])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cv2, "resize", resize)
        yield


@pytest.mark.slow
@pytest.mark.parametrize(
    "choice",
    [{"OPENCV_IPP": "disabled"}, {"OPENCV_IPP": "sse42"}, {"OPENCV_IPP": "avx2"}, {"OPENCV_CPU_DISABLE": "AVX,AVX2"}],
    ids=str,
)
def test_no_byte_depends_on_the_code_that_opencv_chooses(choice: dict[str, str]) -> None:
    run = subprocess.run(
        [sys.executable, "-c", DIGESTS_BY_OPENCV], env={**os.environ, **choice}, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    rows = {(name, step): digest for kind, name, step, digest in stored() if kind == "corruption"}
    assert run.stdout.split() == [rows[name, step] for name in ("frost", "defocus_blur") for step in SEVERITIES]


@pytest.mark.parametrize("file", FILES)
def test_a_photograph_is_enlarged_as_by_ipp_with_avx2(file: str) -> None:
    small = photograph(file)
    large = enlarged(small, int(np.ceil(small.shape[0] * 1.1)), int(np.ceil(small.shape[1] * 1.1)))
    assert sha256(large.tobytes()).hexdigest()[:12] == LAYERS[file]


def test_a_value_halfway_between_whole_numbers() -> None:
    # 148.5000067: IPP rounds it down with AVX2 and some AVX-512, up with SSE 4.2
    assert enlarged(photograph("frost1.png"), 660, 991)[12, 291, 1] == 148


@pytest.mark.parametrize("size", [(40, 70), (300, 64), (257, 311)])
def test_any_enlargement_is_opencvs_but_for_rounding(size: tuple[int, int]) -> None:
    image = drawn(37, 61)
    expected = cv2.resize(image, size[::-1], interpolation=cv2.INTER_CUBIC).astype(int)
    assert np.abs(enlarged(image, *size) - expected).max() <= 1


@pytest.mark.usefixtures("enlarging_library")
@pytest.mark.parametrize("shape", [(224, 224), (36, 71), (340, 300), (400, 700)])
def test_frost_is_the_librarys(shape: tuple[int, int]) -> None:
    """The larger ones exceed some photographs on one axis or both."""
    for seed, severity in enumerate(SEVERITIES):
        np.random.seed(seed)
        expected = imagecorruptions.corrupt(drawn(*shape), severity, "frost")
        assert np.array_equal(frost(drawn(*shape), severity, np.random.RandomState(seed)), expected), severity


@pytest.mark.parametrize(("radius", "sigma"), DISKS)
def test_a_disk_is_smoothed_as_by_opencv_with_avx2(radius: int, sigma: float) -> None:
    found = disk(radius, sigma)
    assert found.dtype == np.float32
    assert sha256(found.tobytes()).hexdigest()[:12] == DISKS[radius, sigma]
    np.testing.assert_allclose(found, imagecorruptions.corruptions.disk(radius, sigma), rtol=1e-6)
