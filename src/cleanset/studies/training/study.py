"""The files and folders of a training study, and what its stages read first: its class table and params."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from cleanset.classes import ClassTable, parse_class_table
from cleanset.plumbing.files import PathBelow, PathOfName
from cleanset.studies.robustness.images import StudyBesideRobustness
from cleanset.studies.training.params import TrainingParams, read_training_params
from cleanset.tables import text_of_table

INSTRUCTIONS = {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_CBWR": "COMPATIBLE"}
"""One set of processor instructions for torch, oneDNN and MKL, so that more machines compute the same bits."""

CLASS_TABLE_NAME = "classes"
"""The name of the class table that goes with the table of the training images, unless it is ImageNet's."""


@dataclass(frozen=True, slots=True)
class RunFiles:
    """The files that the training of a run's fold leaves."""

    folder: Path

    weights = PathBelow("weights.safetensors")
    history = PathBelow("history.csv")
    """Loss and measures by epoch."""

    record = PathBelow("record.json")
    """Settings, network, digests and versions; nothing that differs from run to run on one machine."""

    test = PathBelow("test.csv")
    """The answers of the weights on each scenario that is tested, by class."""

    sheets = PathBelow("sheets")
    """Predicted masks over the best and worst images, of segmentation only."""


class TrainingStudy(StudyBesideRobustness):
    """The paths of the study in `folder`, `studies/training` of its edition, whose images may not be trained on."""

    images = PathBelow("data/images.parquet")
    """The training images and their masks, by digest."""

    folds = PathBelow("data/folds.csv")
    """The part of each image in every division of them."""

    runs = PathBelow("data/runs")
    measures = PathBelow("data/measures")
    metrics = PathBelow("metrics")
    costs = PathBelow("costs")
    """Seconds, images a second and peak memory: they differ from run to run, and DVC does not hold them."""

    run = PathOfName("data/runs/{}")
    """The folder of a finished run, with one for each fold."""

    partial = PathOfName("data/runs/{}.partial")
    """The folder of an unfinished run, with one for each fold."""

    def fold(self, run: str, fold: str) -> RunFiles:
        """The files that the training of a run's fold leaves."""
        return RunFiles(self.run(run) / fold)

    def cost(self, run: str, fold: str) -> Path:
        return self.costs / run / f"{fold}.json"

    def read_classes(self) -> ClassTable:
        """The class table of the training images; before stage data the edition's."""
        text = text_of_table(self.images, CLASS_TABLE_NAME) if self.images.is_file() else None
        if text is None:
            return self.edition.read_classes()
        return parse_class_table(text, str(self.images))


@dataclass(frozen=True, slots=True)
class StudyInputs:
    """A training study with its class table and its params, each read once."""

    study: TrainingStudy
    """The paths of the study."""
    classes: ClassTable
    """The class table of the training images."""
    params: TrainingParams
    """The study's params.yaml."""

    @classmethod
    def read(cls, study: TrainingStudy, classes: ClassTable | None = None) -> Self:
        """The inputs of a stage; `classes`: None for the training images' own. Raises CleansetError naming the key."""
        known = study.read_classes() if classes is None else classes
        return cls(study, known, read_training_params(study.params_yaml, known))
