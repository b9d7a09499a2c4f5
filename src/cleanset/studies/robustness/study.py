"""The files and folders of a robustness study."""

from dataclasses import dataclass
from pathlib import Path

from cleanset.edition.paths import Edition
from cleanset.files import PathBelow, PathOfName


@dataclass(frozen=True, slots=True)
class AnswerFiles:
    """The files with the answers of models, in a folder with one for each family."""

    folder: Path

    def predictions(self, family: str, name: str) -> Path:
        """The answers of a model to a family."""
        return self.folder / family / f"{name}.parquet"

    def record(self, family: str, name: str) -> Path:
        """The record of the answers: weights, seed, precision, versions."""
        return self.folder / family / f"{name}.json"

    def partial(self, family: str, name: str) -> Path:
        """Finished shards of answers that are being computed."""
        return self.folder / family / f"{name}.partial-shards"


@dataclass(frozen=True, slots=True)
class Study:
    """The paths of the study in `folder`, which lies in `studies/robustness` of its edition."""

    folder: Path

    @property
    def edition(self) -> Edition:
        """The edition whose finished sets are studied."""
        return Edition(self.folder / ".." / "..")

    params_yaml = PathBelow("params.yaml")
    images = PathBelow("data/images.parquet")
    masks_table = PathBelow("data/masks.parquet")

    @property
    def answers(self) -> AnswerFiles:
        """The answers of all models."""
        return AnswerFiles(self.folder / "data")

    digests = PathBelow("data/digests")
    """The SHA-256 of every changed image, a table for each family, and the versions that made them."""

    partial_digests = PathOfName("data/{}.digests.partial-shards")
    """Finished shards of the digests of a family, before stage digests has run."""

    measures = PathBelow("data/measures")
    """The measures by severity and class, as CSV."""

    metrics = PathBelow("metrics")
    report = PathBelow("report")
    masks = PathBelow("masks")
    """Folders of masks."""

    backgrounds = PathBelow("backgrounds")
    """Photographs that objects are placed on."""

    generated = PathBelow("generated/images")
    """Finished images with generated backgrounds, named by image id."""

    def predictions(self, family: str, role: str) -> Path:
        """The answers of a model to a family."""
        return self.answers.predictions(family, role)
