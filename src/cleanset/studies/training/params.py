"""The params.yaml of a training study: its data and its runs, checked on reading.

Test corruptions may not be trained on unnoticed (source 003), so a run names the corruptions that its operations
amount to.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, ValidationInfo, field_validator, model_validator

from cleanset.classes import ClassTable, context_classes
from cleanset.edition.params import is_callable_name
from cleanset.studies.attacks.base import Fraction, Norm, Positive
from cleanset.studies.robustness.corruptions.params import CorruptionNames, corruptions_of
from cleanset.studies.robustness.family import Wnid
from cleanset.studies.robustness.scenarios.params import ORIGINAL, Baselines, Scenario
from cleanset.validation import EachOnce, Role, Section, check_known, shown, validate
from cleanset.yaml_files import read_yaml

TrainingProtocol = Literal["own", "as_written", "as_coded"]
RecipeName = Literal["standard", "adversarial", "madry", "augmix", "augmix_mixing", "noise"]
TaskName = Literal["classification", "segmentation"]
PositiveCount = Annotated[int, Field(ge=1, le=10_000_000)]
Epochs = Annotated[int, Field(ge=0, le=100_000)]
Proportion = Annotated[float, Field(ge=0, le=1)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]

_TABLES: Any = read_yaml(Path(__file__).parent / "templates" / "protocols.yaml", "install cleanset again", merges=True)
NAMED_CLASSES: Mapping[str, list[str]] = _TABLES["classes"]
"""Lists that `classes` takes by name."""
NAMED_TESTS: Mapping[str, list[str]] = _TABLES["tests"]
"""Lists that `test` takes by name."""
KEYS: Mapping[str, dict[str, Any]] = _TABLES["keys"]
"""The keys that protocols and recipes give."""
AUGMIX_OPERATIONS: Sequence[str] = _TABLES["augmix"]
ALL_AUGMIX_OPERATIONS: Sequence[str] = _TABLES["augmix_all_ops"]
AMOUNTS_TO: Mapping[str, Sequence[str]] = _TABLES["amounts_to"]
"""By operation, the corruptions of ImageNet-C that it amounts to."""

_WEIGHTS = re.compile(r"(\.\w+)?, pretrained$")
_NETWORK = re.compile(r"(?P<source>timm|torchvision|smp):(?P<name>[^/,]+)(/(?P<encoder>[^,]+))?(, pretrained)?")


LENGTHS = {"epochs": "steps", "steps": "epochs"}
"""The two keys that say how long a run is, each with the other."""
OF_LEFT_OUT = ("early_stopping", "keep", "validation", "split", "test", "max_tested")
"""Keys about images that are left out of training."""

RECIPES_OF_SECTIONS = {
    "adversarial": ("adversarial", "madry"),
    "augmix": ("augmix", "augmix_mixing"),
    "noise": ("noise",),
}
"""The recipes that a section of settings is of."""


class Data(Section):
    """The training images: a folder for each class, relative to the study.

    `labels`: a CSV of file, class and perhaps group, instead of folders of classes; a group is never divided.
    `held_out`: `edition` refuses images of the edition; `sets` trains on the ones outside every finished set, and
    outside its groups. `masks`: a folder of the same layout as images, with masks named like them; it may be empty.
    `generated`: one with images for generated_background, each of its image's size.
    """

    images: Annotated[str, Field(min_length=1)]
    labels: Annotated[str, Field(min_length=1)] | None = None
    held_out: Literal["edition", "sets"] = "edition"
    masks: Annotated[str, Field(min_length=1)] = "masks"
    mask_format: str = "png"
    generated: Annotated[str, Field(min_length=1)] = "generated"


class Network(Section):
    """A network by its name in a library, with its published weights or new ones.

    `encoder`: of timm, for a network of segmentation-models-pytorch (smp) only. In short `SOURCE:NAME/ENCODER,
    pretrained`, such as `smp:fpn/resnet50, pretrained` or `timm:resnet18`. A custom network has source `module` and the
    name `MODULE:CALLABLE`, in short that name alone; the module is looked for in the folder of the study.
    `normalised`: whether it sees pixels less the library's mean, by its standard deviation, or in 0..1.
    """

    source: Literal["timm", "torchvision", "smp", "module"] = "timm"
    name: Annotated[str, Field(min_length=1)]
    encoder: str | None = None
    pretrained: bool = False
    normalised: bool = True

    @model_validator(mode="after")
    def _is_callable(self) -> "Network":
        if self.source == "module" and (self.pretrained or not is_callable_name(self.name)):
            raise ValueError(f"module {shown(self.name)}; expected MODULE:CALLABLE, which gives its own weights")
        return self

    @property
    def module(self) -> str | None:
        """The module of a custom network."""
        return self.name.partition(":")[0] if self.source == "module" else None


class Adversarial(Section):
    """Training on the images of the ball S around each image at which the loss is largest.

    S: the images at a distance of at most `eps` (of pixels in 0..1) in `norm`. The largest loss is sought by `steps`
    of projected gradient ascent of length `step` (null: 2.5 eps / steps, at most eps), from a random place in S or
    from the image. `warm_up_epochs`: epochs on images as they are, first. `evaluation_mode`: whether batch norm uses
    its running means while the loss is raised. `best_iterate`: of all steps, the image with the largest loss is taken,
    not the last one.
    """

    norm: Norm = "Linf"
    eps: Fraction = 4 / 255
    steps: Annotated[int, Field(ge=1, le=1000)] = 3
    step: Fraction | None = None
    random_start: bool = True
    warm_up_epochs: Epochs = 0
    evaluation_mode: bool = False
    best_iterate: bool = False

    @property
    def length(self) -> float:
        """The length of a step."""
        return min(self.eps, 2.5 * self.eps / self.steps) if self.step is None else self.step

    @model_validator(mode="after")
    def _step_within(self) -> "Adversarial":
        if self.step is not None and self.step > self.eps:
            raise ValueError(f"step {self.step:.6g} is larger than eps {self.eps:.6g}; expected at most eps")
        return self


class Augmix(Section):
    """AugMix: `width` chains of `depth` operations (null: 1 to 3), mixed with weights of Dirichlet and Beta `alpha`.

    `consistency`: the weight of the Jensen-Shannon divergence between the predictions of an image and two mixtures of
    it. `all_ops`: also the operations that amount to test corruptions. `severity`: 10 draws from all magnitudes; its
    authors' scripts have 3 for CIFAR and 1 for ImageNet.
    """

    width: Annotated[int, Field(ge=1, le=10)] = 3
    depth: Annotated[int, Field(ge=1, le=10)] | None = None
    alpha: Positive = 1.0
    severity: Annotated[int, Field(ge=1, le=10)] = 3
    consistency: NotNegative = 12.0
    all_ops: bool = False


class Noise(Section):
    """Gaussian noise whose standard deviation, of pixels in 0..1, is drawn for each image from 0 to `largest`."""

    largest: Annotated[float, Field(gt=0, le=1)] = 0.2


class Optimization(Section):
    """The search for weights, whatever is learnt.

    `schedule`: step divides the rate by 10 every `decay_epochs`; cosine, poly (of power .9) and linear end at
    `end_rate`. `momentum`: of sgd only. `undecayed`: parts of the names of parameters without weight decay, such as
    norm; all others have it. `epochs` or `steps`, not both. `incomplete_batch`: whether images that do not fill the
    last batch of an epoch are trained on, too. `early_stopping`: the number of epochs without a smaller validation loss
    after which training ends; null: never. `keep`: the weights of the epoch with the smallest validation loss (under
    attack, where that is trained against), or of the last one. `precision`: bfloat16 is torch's autocast. `devices`:
    GPUs, or processes on the CPU, that share each batch.
    """

    optimizer: Literal["sgd", "adam", "adamw"] = "adamw"
    rate: Positive = 1e-3
    momentum: Proportion = 0.9
    weight_decay: NotNegative = 0.0
    undecayed: list[Annotated[str, Field(min_length=1)]] = Field(default_factory=list)
    schedule: Literal["constant", "step", "cosine", "poly", "linear"] = "cosine"
    decay_epochs: Annotated[int, Field(ge=1, le=100_000)] = 30
    end_rate: NotNegative = 0.0
    warm_up_epochs: Epochs = 0
    epochs: Annotated[int, Field(ge=1, le=100_000)] | None = None
    steps: PositiveCount | None = None
    batch: Annotated[int, Field(ge=2, le=65_536)] = 32
    incomplete_batch: bool = False
    precision: Literal["float32", "bfloat16"] = "float32"
    early_stopping: Annotated[int, Field(ge=1, le=100_000)] | None = None
    keep: Literal["best", "last"] = "best"
    devices: Annotated[int, Field(ge=1, le=64)] = 1
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = 0

    @model_validator(mode="after")
    def _one_length(self) -> "Optimization":
        if (self.epochs is None) == (self.steps is None):
            raise ValueError("expected epochs or steps, and not both")
        if self.devices > self.batch:
            raise ValueError(f"devices {self.devices} share batches of {self.batch}; expected at least one image each")
        if self.epochs is not None:
            self.check_warm_up(self.epochs)
        return self

    def warm_ups(self) -> dict[str, int]:
        """The epochs of each warm-up, by key."""
        return {"warm_up_epochs": self.warm_up_epochs}

    def check_warm_up(self, epochs: int) -> None:
        """Raise ValueError for a warm-up as long as the training, of that number of epochs."""
        for key, warm_up in self.warm_ups().items():
            if warm_up >= epochs:
                raise ValueError(f"{key} {warm_up} of {epochs} epochs; expected fewer than are trained: set fewer")


class Run(Optimization):
    """A training run: recipe, network, data, and how weights are sought.

    `protocol` gives the keys that a run leaves out: own (the defaults), or source 002's, by its text (as_written) or by
    its published script (as_coded); recipe madry gives MadryLab's. `resizing`: cropped takes the central square of an
    image; bilinear and nearest (Keras's) resize its sides. `folds`: 0 trains on all images, skips tests and keeps the
    last epoch; 1 leaves 20 of 100 out to test on, by `split` our own or source 002's script's; n trains n times, each
    time without one fold. `classes`: some of the data's, ximagenet_12 the paper's; null: all. `test`: scenarios that
    the kept weights are tested on, on the images left out, or the scenarios of the paper's table_2 or table_6; null:
    the run's own. `validation`: set_aside validates on a tenth of each class of the images that are not tested on, and
    does not train on them; as_written validates on the images that are tested on, as source 002 does, so that its
    results are of epochs that were chosen by them. `max_tested`: the most images of each class that are validated and
    tested on; null: all. `trained_on`: the corruptions that the run's operations amount to, which its model is then not
    tested on as unseen.
    """

    task: TaskName = "classification"
    recipe: RecipeName = "standard"
    adversarial: Adversarial = Adversarial()
    augmix: Augmix = Augmix()
    noise: Noise = Noise()
    network: Network
    scenario: Scenario = ORIGINAL
    test: Annotated[list[Scenario], Field(min_length=1), EachOnce] | None = None
    protocol: TrainingProtocol = "own"
    size: Annotated[int, Field(ge=16, le=2048)] = 224
    augmentation: Literal["none", "shift_and_mirror", "random_resized_crop", "crop_and_jitter"] = "shift_and_mirror"
    resizing: Literal["cropped", "bilinear", "nearest"] = "cropped"
    classes: Annotated[list[Wnid], Field(min_length=2), EachOnce] | None = None
    folds: Annotated[int, Field(ge=0, le=100)] = 1
    split: Literal["own", "as_coded"] = "own"
    validation: Literal["set_aside", "as_written"] = "set_aside"
    max_tested: PositiveCount | None = None
    trained_on: CorruptionNames = Field(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def _by_protocol(cls, content: object) -> object:
        if not isinstance(content, Mapping):
            return content
        if isinstance(content.get("network"), str):
            content = {**content, "network": _network_of(content["network"])}
        for section, defaults in _sections_of_protocol(content).items():
            if isinstance(named := content.get(section, {}), Mapping):
                content = {**content, section: {**defaults, **named}}
        given = _of_protocol(content)
        if content.get("folds") == 0:
            given = {key: value for key, value in given.items() if key not in OF_LEFT_OUT} | {"keep": "last"}
        return given | dict(content)

    @field_validator("classes", mode="before")
    @classmethod
    def _named_classes(cls, found: object, info: ValidationInfo) -> object:
        if isinstance(found, str) and not context_classes(info).is_imagenet:
            raise ValueError(f"list {shown(found)}; expected a list of your classes: only ImageNet's have such names")
        return _named_list(found, NAMED_CLASSES, "wnids")

    @field_validator("test", mode="before")
    @classmethod
    def _named_tests(cls, found: object) -> object:
        return _named_list(found, NAMED_TESTS, "scenarios")

    @model_validator(mode="after")
    def _fits_its_task(self) -> "Run":
        if (self.network.source == "smp") != (self.task == "segmentation"):
            raise ValueError(
                f"network {self.network.name} of {self.network.source} for {self.task}; expected one of smp for "
                "segmentation, else of timm or torchvision, or MODULE:CALLABLE"
            )
        if self.task == "segmentation":
            for key, allowed in _TABLES["segmentation_choices"].items():
                if getattr(self, key) not in allowed:
                    raise ValueError(
                        f"{key} {getattr(self, key)}; expected {' or '.join(map(str, allowed))} for segmentation"
                    )
        return self

    @model_validator(mode="after")
    def _makes_sense(self) -> "Run":
        for key in () if self.folds else OF_LEFT_OUT:
            if getattr(self, key) not in (None, "last", "set_aside", "own"):
                raise ValueError(
                    f"folds 0 leaves no images out for {key} {shown(getattr(self, key))}; expected 1 or more folds: "
                    f"set folds, or leave {key} out"
                )
        for section, recipes in RECIPES_OF_SECTIONS.items():
            if self.recipe not in recipes and getattr(self, section) != Run.model_fields[section].default:
                raise ValueError(
                    f"{section}: settings of {' or '.join(recipes)} for recipe {self.recipe}; expected none: set the "
                    f"recipe, or leave {section} out"
                )
        how = self.adversarial
        # nothing can be learnt from an attack that makes every image the same
        grey = 0.5 if how.norm == "Linf" else 0.5 * (3 * self.size**2) ** 0.5
        if self.is_attacked and how.eps >= grey:
            raise ValueError(
                f"adversarial.eps {how.eps:g} in {how.norm}; expected less than {grey:.4g}, where every image may "
                "become the same grey one: pixels are in 0..1, so write 4/255 for 4 of 255 levels"
            )
        return self

    def warm_ups(self) -> dict[str, int]:
        """The epochs of each warm-up, by key: of the rate, and before the attack begins."""
        before_attack = {"adversarial.warm_up_epochs": self.adversarial.warm_up_epochs} if self.is_attacked else {}
        return super().warm_ups() | before_attack

    @property
    def is_attacked(self) -> bool:
        """Whether the run is trained on, and its epoch chosen by, images under attack."""
        return self.recipe in RECIPES_OF_SECTIONS["adversarial"]

    @property
    def kept(self) -> str:
        """Which epoch's weights are kept, and why."""
        if self.keep == "last":
            return "the last epoch"
        where = "images set aside" if self.validation == "set_aside" else "the images that are tested on"
        if not self.is_attacked:
            return f"the smallest loss on {where}"
        begun = self.adversarial.warm_up_epochs
        return f"the smallest loss under attack on {where}" + f", of the epochs after {begun} of warm-up" * (begun > 0)

    @model_validator(mode="after")
    def _operations_named(self) -> "Run":
        named = corruptions_of(self.trained_on)
        for operation in self.operations:
            if missing := ", ".join(name for name in AMOUNTS_TO[operation] if name not in named):
                raise ValueError(
                    f"{operation} amounts to the test corruption{'s' * (', ' in missing)} {missing}; expected "
                    f"trained_on to name the training corruptions: add {missing} to it, or leave {operation} out"
                )
        return self

    @property
    def operations(self) -> list[str]:
        """Everything that is done to the training images, by the names of AMOUNTS_TO."""
        found = [each for each in (self.augmentation, self.scenario) if each not in ("none", ORIGINAL)]
        augmix = ALL_AUGMIX_OPERATIONS if self.augmix.all_ops else AUGMIX_OPERATIONS
        named = {"augmix": augmix, "augmix_mixing": augmix, "noise": ["gaussian noise"]}
        named |= {recipe: ["projected gradient ascent"] for recipe in RECIPES_OF_SECTIONS["adversarial"]}
        return [*found, *named.get(self.recipe, ())]

    @property
    def tests(self) -> list[str]:
        """The scenarios that the kept weights are tested on."""
        return [self.scenario] if self.test is None else self.test

    def fold_names(self) -> list[str]:
        """The names of the folds that the run trains: fold_01 and so on, or all."""
        return [f"fold_{number:02d}" for number in range(1, self.folds + 1)] or ["all"]


def _named_list(found: object, known: Mapping[str, list[str]], what: str) -> object:
    """The list of a name; anything but a text is left to the next validator."""
    if not isinstance(found, str):
        return found
    if found not in known:
        raise ValueError(f"unknown list {shown(found)}; expected {', '.join(known)}, or a list of {what}")
    return known[found]


def _network_of(text: str) -> dict[str, Any]:
    """The keys of a network that is written in short."""
    found = _NETWORK.fullmatch(text)
    if found is None and is_callable_name(text):
        return {"source": "module", "name": text}
    if found is None:
        raise ValueError(
            f"network {shown(text)}; expected SOURCE:NAME, such as timm:resnet18, MODULE:CALLABLE, or keys"
        )
    return {**found.groupdict(), "pretrained": text.endswith(", pretrained")}


def _sections_of_protocol(content: Mapping[str, object]) -> dict[str, dict[str, Any]]:
    """The keys of sections that the run's recipe and protocol give."""
    ascent = {"adversarial": KEYS["madry_ascent"]} if content.get("recipe") == "madry" else {}
    return ascent | ({"network": {"normalised": False}} if content.get("protocol") == "as_coded" else {})


def _of_protocol(content: Mapping[str, object]) -> dict[str, Any]:
    """The keys that the run's protocol gives, or else its recipe. Raises ValueError for what a protocol leaves open."""
    protocol, network = content.get("protocol", "own"), content.get("network")
    names: Mapping[str, object] = network if isinstance(network, Mapping) else {}
    if protocol not in ("as_written", "as_coded"):
        keys = KEYS["madry"] if content.get("recipe") == "madry" else {}
    elif content.get("task") == "segmentation":
        if protocol == "as_coded":
            raise ValueError("protocol as_coded: the published code does not segment; expected as_written or own")
        text = " ".join(map(str, names.values())).lower()
        keys = KEYS["segmentation_transformer" if "vit" in text or "swin" in text else "segmentation"]
    elif protocol == "as_written":
        name = str(names.get("encoder") or names.get("name") or "").lower()
        is_ex2 = content.get("scenario", ORIGINAL) != ORIGINAL
        if is_ex2 and content.get("folds") != 0 and "early_stopping" not in content:
            raise ValueError(
                "protocol as_written stops a training on a scenario early, and the text names no number of epochs; "
                "expected early_stopping: set it, or null"
            )
        keys = KEYS["as_written_transformer" if name.startswith(tuple(_TABLES["transformers"])) else "as_written"]
    else:
        keys = KEYS["as_coded"]
    # a run has one length: its own takes the place of the protocol's
    return {key: value for key, value in keys.items() if LENGTHS.get(key) not in content}


class SegmentationMeasures(Section):
    """The measure that the regression of segmentation explains, and the levels that it compares with.

    `baselines`: run (as model), scenario and class index; those left out are the first run, original, and the first
    class.
    """

    measure: Literal["accuracy", "iou", "boundary_iou"] = "accuracy"
    baselines: Baselines = Baselines()


class TrainingMeasures(Section):
    """The keys that decide measures alone: a change of them trains nothing."""

    segmentation: SegmentationMeasures = SegmentationMeasures()


class Matrix(Section):
    """Runs that differ in the keys named here: each of `settings` with each of `networks` on each of `scenarios`.

    Such a run is called SETTINGS_NETWORK_SCENARIO. It has the keys of its settings and its scenario, the scenario's
    first, and its network in short. `new_weights: true` among the settings: published weights that a network names are
    left out.
    """

    settings: dict[Role, dict[str, Any]] = Field(default_factory=dict)
    networks: dict[Role, str] = Field(default_factory=dict)
    scenarios: dict[Role, dict[str, Any]] = Field(default_factory=dict)

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

    def runs(self) -> dict[str, dict[str, Any]]:
        """The keys of each run, by its name."""
        found = {}
        for name, (setting, network, scenario) in self.combinations.items():
            keys, text = dict(self.settings[setting]), self.networks[network]
            if keys.pop("new_weights", False):
                text = _WEIGHTS.sub("", text)
            found[name] = {**keys, "network": text, **self.scenarios[scenario]}
        return found


class TrainingParams(Section):
    """All of a training study's params.yaml.

    `shared`: settings that several runs merge (`<<`), each named by an anchor; a run's own keys come before them.
    `matrix`: further runs, by the keys that they vary; on reading they are added to `runs`.
    `folds`: into how many parts of equal classes the images are divided, for the runs that train several folds.
    `grids`: runs by name, or patterns such as `ex2_*`. `budget_hours`: a grid that would take longer does not start.
    `device`: auto is a GPU, if any. `threads`: of the CPU, for each process that trains.
    """

    data: Data
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = 0
    folds: Annotated[int, Field(ge=2, le=100)] = 12
    shared: list[dict[str, Any]] = Field(default_factory=list)
    matrix: Matrix = Matrix()
    runs: Annotated[dict[Role, Run], Field(min_length=1)]
    grids: dict[Role, Annotated[list[str], Field(min_length=1)]] = Field(default_factory=dict)
    budget_hours: Positive | None = None
    measures: TrainingMeasures = TrainingMeasures()
    device: Annotated[str, Field(pattern=r"^(auto|cpu|cuda(:[0-9]{1,3})?)$")] = "auto"
    threads: Annotated[int, Field(ge=1, le=1024)] = 1
    workers: Annotated[int, Field(ge=0, le=1024)] = 0

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
            raise ValueError(f"runs.{both[0]}: a run of the matrix, too; name it otherwise")
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


def read_training_params(path: Path, classes: ClassTable) -> TrainingParams:
    """Read and check a training study's params.yaml, of images of `classes`. Raises CleansetError naming the key."""
    content = read_yaml(path, "expected the params of a training study: git checkout it", merges=True)
    return validate(TrainingParams, content, path, context=classes)
