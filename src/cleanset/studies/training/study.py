"""The files and folders of a training study."""

from dataclasses import dataclass
from pathlib import Path

from cleanset.edition.paths import Edition
from cleanset.studies.robustness.study import Study


@dataclass(frozen=True, slots=True)
class RunFiles:
    """The files that the training of a run's fold leaves."""

    folder: Path

    @property
    def weights(self) -> Path:
        return self.folder / "weights.safetensors"

    @property
    def history(self) -> Path:
        """Loss and measures by epoch."""
        return self.folder / "history.csv"

    @property
    def record(self) -> Path:
        """Settings, network, digests and versions; nothing that differs from run to run on one machine."""
        return self.folder / "record.json"

    @property
    def test(self) -> Path:
        """The answers of the weights on each scenario that is tested, by class."""
        return self.folder / "test.csv"

    @property
    def sheets(self) -> Path:
        """Predicted masks over the best and worst images, of segmentation only."""
        return self.folder / "sheets"


@dataclass(frozen=True, slots=True)
class TrainingStudy:
    """The paths of the study in `folder`, which lies in `studies/training` of its edition."""

    folder: Path

    @property
    def edition(self) -> Edition:
        """The edition whose images may not be trained on."""
        return Edition(self.folder / ".." / "..")

    @property
    def robustness(self) -> Study:
        """The study of robustness beside it, whose scenarios and photographs it uses."""
        return Study(self.folder / ".." / "robustness")

    @property
    def params_yaml(self) -> Path:
        return self.folder / "params.yaml"

    @property
    def images(self) -> Path:
        """The training images and their masks, by digest."""
        return self.folder / "data" / "images.parquet"

    @property
    def folds(self) -> Path:
        """The part of each image in every division of them."""
        return self.folder / "data" / "folds.csv"

    @property
    def runs(self) -> Path:
        return self.folder / "data" / "runs"

    @property
    def measures(self) -> Path:
        return self.folder / "data" / "measures"

    @property
    def metrics(self) -> Path:
        return self.folder / "metrics"

    @property
    def report(self) -> Path:
        return self.folder / "report"

    @property
    def costs(self) -> Path:
        """Seconds, images a second and peak memory: they differ from run to run, and DVC does not hold them."""
        return self.folder / "costs"

    def run(self, name: str) -> Path:
        """The folder of a finished run, with one for each fold."""
        return self.runs / name

    def fold(self, run: str, fold: str) -> RunFiles:
        """The files that the training of a run's fold leaves."""
        return RunFiles(self.run(run) / fold)

    def partial(self, run: str) -> Path:
        """The folder of an unfinished run, with one for each fold."""
        return self.runs / f"{run}.partial"

    def cost(self, run: str, fold: str) -> Path:
        return self.costs / run / f"{fold}.json"
