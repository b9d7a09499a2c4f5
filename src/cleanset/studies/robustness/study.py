"""The files and folders of a robustness study."""

from dataclasses import dataclass
from pathlib import Path

from cleanset.edition.paths import Edition


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

    @property
    def params_yaml(self) -> Path:
        return self.folder / "params.yaml"

    @property
    def images(self) -> Path:
        return self.folder / "data" / "images.parquet"

    @property
    def masks_table(self) -> Path:
        return self.folder / "data" / "masks.parquet"

    @property
    def answers(self) -> AnswerFiles:
        """The answers of all models."""
        return AnswerFiles(self.folder / "data")

    @property
    def digests(self) -> Path:
        """The SHA-256 of every changed image, a table for each family, and the versions that made them."""
        return self.folder / "data" / "digests"

    def partial_digests(self, family: str) -> Path:
        """Finished shards of the digests of a family, before stage digests has run."""
        return self.folder / "data" / f"{family}.digests.partial-shards"

    @property
    def measures(self) -> Path:
        """The measures by severity and class, as CSV."""
        return self.folder / "data" / "measures"

    @property
    def metrics(self) -> Path:
        return self.folder / "metrics"

    @property
    def report(self) -> Path:
        return self.folder / "report"

    @property
    def masks(self) -> Path:
        """Folders of masks."""
        return self.folder / "masks"

    @property
    def backgrounds(self) -> Path:
        """Photographs that objects are placed on."""
        return self.folder / "backgrounds"

    @property
    def generated(self) -> Path:
        """Finished images with generated backgrounds, named by image id."""
        return self.folder / "generated" / "images"

    def predictions(self, family: str, role: str) -> Path:
        """The answers of a model to a family."""
        return self.answers.predictions(family, role)
