"""ImageNet-C: accuracies and mCE of RobustBench's 12 models, from the accuracies by corruption and severity.

RobustBench prints in a model's JSON file what its program gave; the accuracies that it follows from are in two CSV
files, on 5,000 official images. 3DCC's are of Kar et al. (CVPR 2022), with mCE by the same formula. The reference is
AlexNet on these images: from the file for ImageNet-C, whose published errors are of 50,000 images, and as the
robustness study has it for 3DCC.
"""

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cleanset.plumbing.files import read_known
from cleanset.plumbing.yaml_files import data_beside
from cleanset.reproduce.numbers import NotComputed, Number, Reproduction, reproduction
from cleanset.studies.robustness.corruptions.measures import ALEXNET_ERRORS, ALEXNET_ERRORS_3DCC, relative_to
from cleanset.studies.robustness.sampled import Sampled, mean_of


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedFile:
    """A file by its name, where to get it, and its digest."""

    name: str
    origin: str
    """Repository, commit and path."""
    sha256: str

    def missing(self) -> str:
        """What to do where it is not there."""
        return f"needs {self.name} of {self.origin}, in the folder of --files (SHA-256 {self.sha256})"


def read_published(file: PublishedFile, folder: Path | None) -> bytes | None:
    """The bytes of a published file in a folder; None without a folder, and where it is not there.

    Raises CleansetError for a file of this name with other bytes.
    """
    if folder is None or not (folder / file.name).is_file():
        return None
    return read_known(folder / file.name, file.sha256, f"download it again from {file.origin}")


ORIGIN = "github.com/RobustBench/robustbench, commit 78fcc9e, model_info/imagenet/corruptions"
ACCURACIES = PublishedFile(
    name="unaggregated_results.csv",
    origin=ORIGIN,
    sha256="834f99e3f82d608b4dcb8673c5304093125c7c136183fcd2b8a7a78ea42795ef",
)
ACCURACIES_3D = PublishedFile(
    name="unaggregated_results_3d.csv",
    origin=ORIGIN,
    sha256="2d101e471fe0c9a1932347372ad4b061656bb90e6b9560f97d7fe5615b1da93e",
)
REFERENCE = "AlexNet"
IMAGES = 5_000

PRINTED: Any = data_beside(__file__, "imagenet_c.yaml")


def reproduce(files: Path | None) -> Reproduction:
    """All numbers that the files in a folder give."""
    numbers = _alexnet()
    missing = []
    for file, suffix, name in ((ACCURACIES, "", "ImageNet-C"), (ACCURACIES_3D, "_3d", "3DCC")):
        data = read_published(file, files)
        if data is None:
            where = f"RobustBench, {name}: accuracy and mCE of 12 models"
            missing.append(NotComputed(where=where, numbers=2 * len(PRINTED["robustbench"]), why=file.missing()))
        else:
            numbers += _robustbench(errors_of(data), suffix, name)
    return reproduction(PRINTED, numbers, missing)


def errors_of(data: bytes) -> dict[str, pd.DataFrame]:
    """The top-1 errors of each model, corruptions x severities, from a CSV file of RobustBench."""
    table = pd.read_csv(io.BytesIO(data), header=[0, 1], index_col=0)
    return {str(model): 1 - row.unstack().rename(columns=int).sort_index(axis=1) for model, row in table.iterrows()}


def _alexnet() -> list[Number]:
    """AlexNet's mean errors, which google-research/augmix prints, from its errors at each severity."""
    return [
        Number(
            where="google-research/augmix, imagenet.py, ALEXNET_ERR",
            quantity=f"AlexNet, mean error, {name}",
            printed=printed,
            computed=float(np.mean(ALEXNET_ERRORS[name])),
            evidence="from other printed numbers",
        )
        for name, printed in PRINTED["alexnet_mean_errors"].items()
    ]


def _robustbench(errors: Mapping[str, pd.DataFrame], suffix: str, name: str) -> list[Number]:
    """Mean accuracy and mCE in percent of each model, as RobustBench rounds them, to two decimals."""
    means = {
        model: {str(corruption): _constant(float(of_steps.mean())) for corruption, of_steps in each.iterrows()}
        for model, each in errors.items()
    }
    reference = means[REFERENCE]
    if set(reference) == set(ALEXNET_ERRORS_3DCC):
        reference = {name: _constant(float(np.mean(each))) for name, each in ALEXNET_ERRORS_3DCC.items()}
    found = []
    for model, own in means.items():
        ces = relative_to(own, reference, IMAGES)
        computed = {
            "acc": 1 - mean_of(own, list(own)).value,
            "mce": mean_of(ces, list(ces)).value,
        }
        found += [
            Number(
                where=f"RobustBench, {model}.json",
                quantity=f"{name}, {label}, %",
                printed=PRINTED["robustbench"][model][f"corruptions_{key}{suffix}"],
                computed=100 * computed[key],
                evidence="from other printed numbers",
            )
            for key, label in (("acc", "accuracy"), ("mce", "mCE"))
        ]
    return found


def _constant(value: float) -> Sampled:
    return Sampled(value, np.array([value]))
