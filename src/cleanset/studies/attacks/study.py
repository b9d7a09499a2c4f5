"""The paths of the attacks on an edition's models: the DVC project `studies/attacks`."""

from dataclasses import dataclass
from pathlib import Path

from cleanset.edition.paths import Edition
from cleanset.studies.robustness.study import Study


@dataclass(frozen=True, slots=True)
class AttackedFolder:
    """The results of one attack on one model."""

    folder: Path

    @property
    def table(self) -> Path:
        """A table of ATTACKED."""
        return self.folder / "attacked.parquet"

    @property
    def record(self) -> Path:
        """Attack, parameters, seed, precision, device, weights, versions; what is around a wrapped model."""
        return self.folder / "record.json"


@dataclass(frozen=True, slots=True)
class AttackStudy:
    """The paths of the attacks in `folder`, which lies in `studies/attacks` of its edition."""

    folder: Path

    @property
    def edition(self) -> Edition:
        """The edition whose models are attacked."""
        return Edition(self.folder / ".." / "..")

    @property
    def robustness(self) -> Study:
        """The study of robustness beside it, whose images and predictions are read."""
        return Study(self.folder / ".." / "robustness")

    @property
    def params_yaml(self) -> Path:
        return self.folder / "params.yaml"

    @property
    def measures(self) -> Path:
        """The measures of all attacks, as CSV."""
        return self.folder / "data" / "attack_measures.csv"

    @property
    def metrics(self) -> Path:
        """The lines of `dvc metrics show`."""
        return self.folder / "attack_metrics"

    @property
    def report(self) -> Path:
        return self.folder / "report"

    def results(self, attack: str, model: str) -> AttackedFolder:
        """The results of an attack on a model."""
        return AttackedFolder(self.folder / "data" / "attacks" / attack / model)

    def partial_results(self, attack: str, model: str) -> Path:
        """The folder of finished groups until all are finished."""
        return self.folder / "data" / "attacks" / attack / f"{model}.partial-shards"

    def warnings(self, model: str) -> Path:
        """The signs that a model only looks strong, as JSON."""
        return self.folder / "data" / "attack_warnings" / f"{model}.json"

    def written_folders(self) -> list[Path]:
        """The folders in which the stages write, as far as there are any."""
        data = self.folder / "data"
        return [
            self.folder, data, data / "attack_warnings", data / "attacks", *sorted((data / "attacks").glob("*/")),
        ]  # fmt: skip
