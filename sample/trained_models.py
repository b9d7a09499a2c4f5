"""Copies the three networks that studies/training has trained by three recipes, for the sample's robustness study.

`python trained_models.py` trains those that are not trained yet, and copies weights and records to weights/. Then
`cleanset training entry` prints their entries for params.yaml.
"""

import subprocess
from pathlib import Path

from archives import write_whole
from draw import ROOT
from training_images import draw_all

PER_CLASS = 100
STUDY = ROOT / "studies" / "training"
WEIGHTS = Path(__file__).parent / "weights"
RUNS = ("standard", "adversarial", "augmix")


def main() -> None:
    """Train and copy."""
    draw_all(STUDY / "drawn", PER_CLASS)
    subprocess.run(["dvc", "repro", *(f"train@{run}" for run in RUNS)], cwd=STUDY, check=True)
    for run in RUNS:
        for name in ("weights.safetensors", "record.json"):
            content = (STUDY / "data" / "runs" / run / "all" / name).read_bytes()
            write_whole(WEIGHTS / f"trained_{run}{Path(name).suffix}", content)


if __name__ == "__main__":
    main()
