"""The params.yaml of a training study: its data, its runs with their matrix and grids, checked on reading."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError, model_validator

from cleanset.classes import ClassTable
from cleanset.edition.params import Engine
from cleanset.errors import CleansetError
from cleanset.plumbing.validation import DeviceText, NonEmpty, Role, Section, check_known, join_names, shown, validate
from cleanset.plumbing.yaml_files import read_study_yaml
from cleanset.studies.attacks.base import Positive
from cleanset.studies.robustness.scenarios.params import Baselines
from cleanset.studies.training.run_params import Run

_WEIGHTS = re.compile(r"(\.\w+)?, pretrained$")
"""The published weights in a network's short form."""


class Data(Section):
    """The training images, their labels and their masks; folders are relative to the study."""

    images: NonEmpty
    """A folder with a folder of images for each class."""
    labels: NonEmpty | None = None
    """A CSV of file, class and perhaps group, instead of folders of classes; a group is never divided."""
    held_out: Literal["edition", "sets"] = "edition"
    """`edition` refuses images of the edition; `sets` trains on the ones outside every finished set, and outside its
    groups."""
    masks: NonEmpty = "masks"
    """A folder of the same layout as images, with masks named like them; it may be empty."""
    mask_format: str = "png"
    """The format of the masks, one of the robustness study's or class_ids."""
    generated: NonEmpty = "generated"
    """A folder with images for generated_background, each of its image's size."""


class SegmentationMeasures(Section):
    """The measure that the regression of segmentation explains, and the levels that it compares with."""

    measure: Literal["accuracy", "iou", "boundary_iou"] = "accuracy"
    """The measure by run, scenario and class."""
    baselines: Baselines = Baselines()
    """Run (as model), scenario and class index; those left out are the first run, original, and the first class."""


class TrainingMeasures(Section):
    """The keys that decide measures alone: a change of them trains nothing."""

    segmentation: SegmentationMeasures = SegmentationMeasures()
    """The regression of segmentation."""


class Matrix(Section):
    """Runs that differ in the keys named here: each of `settings` with each of `networks` on each of `scenarios`.

    Such a run is called SETTINGS_NETWORK_SCENARIO. It has the keys of its settings and its scenario, the scenario's
    first, and its network in short.
    """

    settings: dict[Role, dict[str, object]] = Field(default_factory=dict)
    """Keys of runs by name; with `new_weights: true`, published weights that a network names are left out."""
    networks: dict[Role, str] = Field(default_factory=dict)
    """Networks in short by name."""
    scenarios: dict[Role, dict[str, object]] = Field(default_factory=dict)
    """Keys of runs by name of the scenario."""

    @model_validator(mode="after")
    def _distinct_names(self) -> "Matrix":
        names = Counter("_".join(each) for each in product(self.settings, self.networks, self.scenarios))
        if names and names.most_common(1)[0][1] > 1:
            raise ValueError(f"two runs are called {names.most_common(1)[0][0]}; name their settings otherwise")
        return self

    @property
    def combinations(self) -> dict[str, tuple[str, str, str]]:
        """The settings, network and scenario of each run, by its name."""
        return {"_".join(names): names for names in product(self.settings, self.networks, self.scenarios)}

    def runs(self) -> dict[str, dict[str, object]]:
        """The keys of each run, by its name."""
        found = {}
        for name, (setting, network, scenario) in self.combinations.items():
            keys = dict(self.settings[setting])
            text = self.networks[network]
            if keys.pop("new_weights", False):
                text = _WEIGHTS.sub("", text)
            found[name] = {**keys, "network": text, **self.scenarios[scenario]}
        return found


class TrainingParams(Section):
    """All of a training study's params.yaml."""

    data: Data
    """The training images."""
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = 0
    """Seed of folds, of images that are set aside, and of scenarios."""
    folds: Annotated[int, Field(ge=2, le=100)] = 12
    """Number of parts of equal classes that the images are divided into, for the runs that train several folds."""
    shared: list[dict[str, object]] = Field(default_factory=list)
    """Settings that several runs merge (`<<`), each named by an anchor; a run's own keys come before them."""
    matrix: Matrix = Matrix()
    """Further runs, by the keys that they vary; on reading they are added to `runs`."""
    runs: Annotated[dict[Role, Run], Field(min_length=1)]
    """The runs by name."""
    grids: dict[Role, Annotated[list[str], Field(min_length=1)]] = Field(default_factory=dict)
    """Runs by name, or patterns such as `ex2_*`, that are planned and started together."""
    budget_hours: Positive | None = None
    """A grid that would take longer does not start; null: no limit."""
    measures: TrainingMeasures = TrainingMeasures()
    """The keys of measures."""
    engine: Engine | None = None
    """What trains folds and runs at the same time: local, the devices of this machine, or ray; null: the edition's."""
    device: DeviceText = "auto"
    """The devices to train on; auto is every GPU, if any, otherwise the CPU."""
    threads: Annotated[int, Field(ge=1, le=1024)] = 1
    """Threads of the CPU, for each process that trains."""
    workers: Annotated[int, Field(ge=0, le=1024)] = 0
    """Processes that read images ahead, for each process that trains."""

    @model_validator(mode="before")
    @classmethod
    def _with_runs_of_matrix(cls, content: object) -> object:
        if not isinstance(content, Mapping) or not isinstance(content.get("runs"), Mapping):
            return content
        try:
            varied = Matrix.model_validate(content.get("matrix", {})).runs()
        except ValidationError:  # the field names what is wrong
            return content
        if both := sorted(varied.keys() & content["runs"].keys()):
            raise ValueError(f"runs.{both[0]}: a run of the matrix, too; give it another name")
        return {**content, "runs": {**varied, **content["runs"]}}

    @model_validator(mode="after")
    def _enough_folds(self) -> "TrainingParams":
        for name, run in self.runs.items():
            if run.folds > self.folds:
                raise ValueError(f"runs.{name}.folds: {run.folds}; expected at most folds, {self.folds}")
        return self

    def run(self, name: str) -> Run:
        """The run of a name. Raises CleansetError for an unknown one."""
        check_known("run", name, self.runs)
        return self.runs[name]

    def stage(self, name: str) -> str:
        """The stage of dvc.yaml that trains a run."""
        names = self.matrix.combinations.get(name)
        return f"train@{name}" if names is None else f"train_each@{'-'.join(names)}"


def grid_runs(grids: Mapping[str, Sequence[str]], runs: Iterable[str], name: str | None) -> list[str]:
    """The runs of a grid, all without a name, in order; a grid is of names, and of patterns such as `ex2_*`.

    Raises CleansetError for an unknown grid, and for a name or pattern that fits no run.
    """
    known = list(runs)
    if name is None:
        return known
    if not grids:
        raise CleansetError(f"grids: missing in params.yaml; expected {shown(name)} as a list of runs: add it")
    check_known("grid", name, grids)
    found = set[str]()
    for pattern in grids[name]:
        fitting = {run for run in known if fnmatchcase(run, pattern)}
        if not fitting:
            raise CleansetError(
                f"grids.{name}: {shown(pattern)} fits no run; expected names or patterns of {join_names(known)}"
            )
        found |= fitting
    return [run for run in known if run in found]


def read_training_params(path: Path, classes: ClassTable) -> TrainingParams:
    """Read and check a training study's params.yaml, of images of `classes`. Raises CleansetError naming the key."""
    content = read_study_yaml(path, "a training study", merges=True)
    return validate(TrainingParams, content, path, context=classes)
