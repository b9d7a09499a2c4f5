"""What makes finished parts of an interrupted study useless: other code that changes images."""

from pathlib import Path

import pytest

from cleanset.edition.pipelines.modules import path_of
from cleanset.studies.robustness import provenance
from cleanset.studies.robustness.provenance import changing_code, changing_modules


def test_the_modules_that_decide_a_changed_images_pixels() -> None:
    """Nothing that only reads, checks or measures."""
    study = "cleanset.studies.robustness"
    assert set(changing_modules()) == {
        *(f"cleanset.images.{name}" for name in ("base", "boxes", "codec", "jpeg", "preprocessing")),
        "cleanset.statistics.seeds",
        *(f"{study}.{name}" for name in ("changed_images", "exact", "frost", "kernels", "names", "published_images")),
        *(f"{study}.corruptions.{name}" for name in ("changes", "params")),
        *(f"{study}.perturbations.{name}" for name in ("changes", "params")),
        *(
            f"{study}.scenarios.{name}"
            for name in ("changes", "image_masks", "mask_formats", "masks", "params", "photographs", "scenes")
        ),
    }


def test_other_code_has_another_digest(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = changing_code()
    assert before == changing_code()
    path = tmp_path / "kernels.py"
    path.write_bytes(path_of("cleanset.studies.robustness.kernels").read_bytes() + b"\n")
    monkeypatch.setattr(provenance, "path_of", lambda name: path if name.endswith(".kernels") else path_of(name))
    assert changing_code() != before
