"""Frames as stored: never as JPEG, and as H.264 video where that is wanted and ffmpeg is there."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from cleanset.errors import CleansetError
from cleanset.studies.robustness.corruptions.family import CORRUPTION_FAMILY
from cleanset.studies.robustness.families import StudyParams
from cleanset.studies.robustness.perturbations.family import PERTURBATION_FAMILY
from cleanset.studies.robustness.perturbations.videos import encoded, encoder_version
from tests.studies.robustness.drawn import drawn, perturbed_frames

needs_ffmpeg = pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="no ffmpeg")


def test_frames_are_never_stored_as_jpeg() -> None:
    params = StudyParams.model_validate({"jpeg": 85})
    assert PERTURBATION_FAMILY.jpeg(params) is None
    assert CORRUPTION_FAMILY.jpeg(params) == 85


@needs_ffmpeg
@pytest.mark.slow
def test_frames_through_the_video_codec() -> None:
    frames = perturbed_frames(drawn(256, 300), "brightness")
    (lossy, grainy) = (encoded(frames, name) for name in ("brightness", "gaussian_noise"))
    for found in (lossy, grainy):
        assert len(found) == 31
        differences = [np.abs(one.astype(int) - other).mean() for one, other in zip(frames, found, strict=True)]
        assert 0 < max(differences) < 20
    assert not np.array_equal(lossy[7], grainy[7])
    assert encoder_version().startswith("ffmpeg version")


def test_the_codec_needs_ffmpeg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CleansetError, match="codec: h264, and no ffmpeg was found; expected ffmpeg with libx264"):
        encoder_version()
    program = tmp_path / "ffmpeg"
    program.write_text("#!/bin/sh\necho libvpx\n")
    program.chmod(0o755)
    with pytest.raises(CleansetError, match=f"h264, and {program} without libx264 was found"):
        encoder_version()


def test_what_is_reported_without_the_codec() -> None:
    without, having = (StudyParams.model_validate({"perturbations": {"codec": codec}}) for codec in (None, "h264"))
    assert "perturbations.codec: h264 applies" in PERTURBATION_FAMILY.remark(without)
    assert PERTURBATION_FAMILY.remark(having) == ""
