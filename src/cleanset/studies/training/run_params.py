"""The settings of a training run: its network, recipe, data, and optimization, checked on reading.

Test corruptions of ImageNet-C may not be trained on unnoticed, so a run names the corruptions that its operations
amount to.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, ValidationInfo, create_model, field_validator, model_validator

from cleanset.classes import context_classes
from cleanset.evaluation.specs import Wnid
from cleanset.plumbing.validation import EachOnce, NonEmpty, Section, is_callable_name, shown
from cleanset.plumbing.yaml_files import read_yaml
from cleanset.studies.attacks.base import Positive
from cleanset.studies.robustness.corruptions.params import CorruptionNames, corruptions_of
from cleanset.studies.robustness.scenarios.params import ORIGINAL, Scenario
from cleanset.studies.training.recipes import RECIPES, SECTIONS, Epochs, NotNegative, Recipe, recipes_of_section

TrainingProtocol = Literal["own", "as_written", "as_coded"]
TaskName = Literal["classification", "segmentation"]
# a literal, so that a message names the recipes as it does other choices
if TYPE_CHECKING:
    RecipeName = str
else:
    RecipeName = Literal[tuple(RECIPES)]
PositiveCount = Annotated[int, Field(ge=1, le=10_000_000)]
Proportion = Annotated[float, Field(ge=0, le=1)]


class ProtocolTables(Section):
    """The content of templates/protocols.yaml."""

    classes: dict[str, list[str]]
    """Lists that `classes` takes by name."""
    tests: dict[str, list[str]]
    """Lists that `test` takes by name."""
    transformers: list[str]
    """Beginnings of the names of vision transformers."""
    keys: dict[str, dict[str, object]]
    """The keys that protocols give."""
    segmentation_choices: dict[str, list[object]]
    """The values that a run of segmentation may have, by key."""
    amounts_to: dict[str, list[str]]
    """The corruptions of ImageNet-C that each augmentation and scenario amounts to."""


_FILE = Path(__file__).parent / "templates" / "protocols.yaml"
TABLES = ProtocolTables.model_validate(read_yaml(_FILE, "install cleanset again", merges=True))
AMOUNTS_TO: Mapping[str, Sequence[str]] = TABLES.amounts_to
"""The corruptions of ImageNet-C that each augmentation and scenario amounts to."""

_NETWORK = re.compile(r"(?P<source>timm|torchvision|smp):(?P<name>[^/,]+)(/(?P<encoder>[^,]+))?(, pretrained)?")
LENGTHS = {"epochs": "steps", "steps": "epochs"}
"""The two keys that say how long a run is, each with the other."""
OF_LEFT_OUT = ("early_stopping", "keep", "validation", "split", "test", "max_tested")
"""Keys about images that are left out of training."""


class Network(Section):
    """A network by its name in a library, with its published weights or new ones.

    In short `SOURCE:NAME/ENCODER, pretrained`, such as `smp:fpn/resnet50, pretrained` or `timm:resnet18`; a custom
    network by its name alone.
    """

    source: Literal["timm", "torchvision", "smp", "module"] = "timm"
    """The library; smp is segmentation-models-pytorch, `module` a custom network."""
    name: NonEmpty
    """The library's name; for a custom network `MODULE:CALLABLE`, whose module is looked for next to params.yaml."""
    encoder: str | None = None
    """timm's name of the encoder of a network of smp; null: the network's own."""
    pretrained: bool = False
    """Whether it begins with its published weights."""
    normalised: bool = True
    """Whether it sees pixels less the library's mean, divided by its standard deviation, or in 0..1."""

    @model_validator(mode="after")
    def _is_callable(self) -> "Network":
        if self.source == "module" and (self.pretrained or not is_callable_name(self.name)):
            raise ValueError(f"module {shown(self.name)}; expected MODULE:CALLABLE, which gives its own weights")
        return self

    @property
    def module(self) -> str | None:
        """The module of a custom network."""
        return self.name.partition(":")[0] if self.source == "module" else None


class Optimization(Section):
    """The search for weights, whatever is learnt."""

    optimizer: Literal["sgd", "adam", "adamw"] = "adamw"
    """The optimizer; sgd has plain momentum, not Nesterov's."""
    rate: Positive = 1e-3
    """Learning rate after the warm-up."""
    momentum: Proportion = 0.9
    """Momentum of sgd."""
    weight_decay: NotNegative = 0.0
    """Weight decay of all parameters but those that `undecayed` names."""
    undecayed: list[NonEmpty] = Field(default_factory=list)
    """Parts of the names of parameters without weight decay, such as norm."""
    schedule: Literal["constant", "step", "cosine", "poly", "linear"] = "cosine"
    """The rate over time: step divides it by 10 every `decay_epochs`; cosine, poly (of power .9) and linear end at
    `end_rate`."""
    decay_epochs: Annotated[int, Field(ge=1, le=100_000)] = 30
    """Epochs between two steps of schedule step."""
    end_rate: NotNegative = 0.0
    """Rate at the end of schedules cosine, poly and linear."""
    warm_up_epochs: Epochs = 0
    """Epochs in which the rate rises from a hundredth."""
    epochs: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """Length of the training; null if it is given in `steps`."""
    steps: PositiveCount | None = None
    """Length of the training in batches; null if it is given in `epochs`."""
    batch: Annotated[int, Field(ge=2, le=65_536)] = 32
    """Images in a batch."""
    incomplete_batch: bool = False
    """Whether images that do not fill the last batch of an epoch are trained on, too."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Precision of the forward pass; bfloat16 is torch's autocast."""
    early_stopping: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """Number of epochs without a smaller validation loss after which training ends; null: never."""
    keep: Literal["best", "last"] = "best"
    """The epoch whose weights are kept: the one with the smallest validation loss (under attack, if that is trained
    against), or the last one."""
    devices: Annotated[int, Field(ge=1, le=64)] = 1
    """GPUs, or processes on the CPU, that share each batch."""
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = 0
    """Seed of new weights, of the order of images, and of their augmentation."""

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


class _TaskAndRecipe(Optimization):
    """The first keys of a run, before the sections of its recipe."""

    task: TaskName = "classification"
    """What is learnt."""
    recipe: RecipeName = "standard"
    """The training recipe; its settings are in a section of their own."""


# a section of settings for each recipe that has one, in the order of records: after `recipe`
if TYPE_CHECKING:
    _WithSections = _TaskAndRecipe
else:
    _WithSections = create_model(
        "_WithSections",
        __base__=_TaskAndRecipe,
        __module__=__name__,
        **{section: (kind, kind()) for section, kind in SECTIONS.items()},
    )


class Run(_WithSections):
    """A training run: recipe, network, data, and how weights are sought."""

    network: Network
    """The network that is trained."""
    scenario: Scenario = ORIGINAL
    """The scenario of the training images, or original."""
    test: Annotated[list[Scenario], Field(min_length=1), EachOnce] | None = None
    """Scenarios that the kept weights are tested on, on the images left out; or the paper's table_2 or table_6; null:
    the run's own."""
    protocol: TrainingProtocol = "own"
    """The keys that a run leaves out: own gives the recipe's or the defaults, as_written XIMAGENET-12's by its text,
    as_coded by its published script."""
    size: Annotated[int, Field(ge=16, le=2048)] = 224
    """Side of the images in pixels."""
    augmentation: Literal["none", "shift_and_mirror", "random_resized_crop", "crop_and_jitter"] = "shift_and_mirror"
    """How training images are varied."""
    resizing: Literal["cropped", "bilinear", "nearest"] = "cropped"
    """cropped takes the central square of an image; bilinear and nearest (Keras's) resize its sides."""
    classes: Annotated[list[Wnid], Field(min_length=2), EachOnce] | None = None
    """The classes to train on, by key, or ximagenet_12 for the paper's; null: all of the data's."""
    folds: Annotated[int, Field(ge=0, le=100)] = 1
    """0 trains on all images, skips tests and keeps the last epoch; 1 leaves 20 of 100 out to test on; n trains n
    times, each time without one fold."""
    split: Literal["own", "as_coded"] = "own"
    """The images that one fold leaves out: by our own division, or by XIMAGENET-12's script."""
    validation: Literal["set_aside", "as_written"] = "set_aside"
    """set_aside validates on a tenth of each class of the images that are not tested on, and does not train on them;
    as_written validates on the images that are tested on, as XIMAGENET-12 does, so that its results are of epochs that
    were chosen by them."""
    max_tested: PositiveCount | None = None
    """The most images of each class that are validated and tested on; null: all."""
    trained_on: CorruptionNames = Field(default_factory=list)
    """The corruptions that the run's operations amount to, which its model is then not tested on as unseen."""

    @model_validator(mode="before")
    @classmethod
    def _by_protocol(cls, content: object) -> object:
        if not isinstance(content, Mapping):
            return content
        if isinstance(content.get("network"), str):
            content = {**content, "network": _network_of(content["network"])}
        for section, defaults in _defaults_of_sections(content).items():
            if isinstance(named := content.get(section, {}), Mapping):
                content = {**content, section: {**defaults, **named}}
        given = _defaults_of_keys(content)
        if content.get("folds") == 0:
            given = {key: value for key, value in given.items() if key not in OF_LEFT_OUT} | {"keep": "last"}
        return given | dict(content)

    @field_validator("classes", mode="before")
    @classmethod
    def _named_classes(cls, found: object, info: ValidationInfo) -> object:
        if isinstance(found, str) and not context_classes(info).is_imagenet:
            raise ValueError(f"list {shown(found)}; expected a list of your classes: only ImageNet's have such names")
        return _named_list(found, TABLES.classes, "wnids")

    @field_validator("test", mode="before")
    @classmethod
    def _named_tests(cls, found: object) -> object:
        return _named_list(found, TABLES.tests, "scenarios")

    @model_validator(mode="after")
    def _fits_its_task(self) -> "Run":
        if (self.network.source == "smp") != (self.task == "segmentation"):
            raise ValueError(
                f"network {self.network.name} of {self.network.source} for {self.task}; expected one of smp for "
                "segmentation, else of timm or torchvision, or MODULE:CALLABLE"
            )
        if self.task == "segmentation":
            for key, allowed in TABLES.segmentation_choices.items():
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
        for section, kind in SECTIONS.items():
            recipes = recipes_of_section(section)
            if self.recipe not in recipes and getattr(self, section) != kind():
                raise ValueError(
                    f"{section}: settings of {' or '.join(recipes)} for recipe {self.recipe}; expected none: set the "
                    f"recipe, or leave {section} out"
                )
        self.training_recipe.check(self.size)
        return self

    @model_validator(mode="after")
    def _operations_named(self) -> "Run":
        named = corruptions_of(self.trained_on)
        for operation, corruptions in self.operations.items():
            if missing := ", ".join(name for name in corruptions if name not in named):
                raise ValueError(
                    f"{operation} amounts to the test corruption{'s' * (', ' in missing)} {missing}; expected "
                    f"trained_on to name the training corruptions: add {missing} to it, or leave {operation} out"
                )
        return self

    @property
    def training_recipe(self) -> Recipe:
        """The recipe with its settings."""
        kind = RECIPES[self.recipe]
        return kind.model_construct(**dict(getattr(self, kind.section))) if kind.section else kind()

    @property
    def is_attacked(self) -> bool:
        """Whether the run is trained on, and its epoch chosen by, images under attack."""
        return RECIPES[self.recipe].is_attacked

    @property
    def operations(self) -> dict[str, Sequence[str]]:
        """Everything that is done to the training images: the corruptions that each operation amounts to, by name."""
        named = [each for each in (self.augmentation, self.scenario) if each not in ("none", ORIGINAL)]
        return {name: AMOUNTS_TO[name] for name in named} | self.training_recipe.operations

    @property
    def tests(self) -> list[str]:
        """The scenarios that the kept weights are tested on."""
        return [self.scenario] if self.test is None else self.test

    @property
    def kept(self) -> str:
        """Which epoch's weights are kept, and why."""
        if self.keep == "last":
            return "the last epoch"
        where = "images set aside" if self.validation == "set_aside" else "the images that are tested on"
        if not self.is_attacked:
            return f"the smallest loss on {where}"
        begun = self.training_recipe.clean_epochs
        return f"the smallest loss under attack on {where}" + f", of the epochs after {begun} of warm-up" * (begun > 0)

    def warm_ups(self) -> dict[str, int]:
        """The epochs of each warm-up, by key: the rate's, and those before the recipe begins."""
        clean_epochs = self.training_recipe.clean_epochs
        section = RECIPES[self.recipe].section
        return super().warm_ups() | ({f"{section}.warm_up_epochs": clean_epochs} if clean_epochs else {})

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


def _network_of(text: str) -> dict[str, object]:
    """The keys of a network that is written in short."""
    found = _NETWORK.fullmatch(text)
    if found is None and is_callable_name(text):
        return {"source": "module", "name": text}
    if found is None:
        raise ValueError(
            f"network {shown(text)}; expected SOURCE:NAME, such as timm:resnet18, MODULE:CALLABLE, or keys"
        )
    return {**found.groupdict(), "pretrained": text.endswith(", pretrained")}


def _recipe_in(content: Mapping[str, object]) -> type[Recipe] | None:
    """The recipe of a run's keys; None for an unknown one, which its field refuses."""
    name = content.get("recipe", "standard")
    return RECIPES.get(name) if isinstance(name, str) else None


def _defaults_of_sections(content: Mapping[str, object]) -> dict[str, dict[str, object]]:
    """The keys of sections that the run's recipe and protocol give."""
    found: dict[str, dict[str, object]] = {}
    kind = _recipe_in(content)
    if kind is not None and kind.section and kind is not SECTIONS[kind.section]:
        found[kind.section] = {name: field.default for name, field in kind.model_fields.items()}
    if content.get("protocol") == "as_coded":
        found["network"] = {"normalised": False}
    return found


def _defaults_of_keys(content: Mapping[str, object]) -> dict[str, object]:
    """The keys that the run's protocol gives, or else its recipe. Raises ValueError for what a protocol leaves open."""
    protocol = content.get("protocol", "own")
    network = content.get("network")
    names: Mapping[str, object] = network if isinstance(network, Mapping) else {}
    if protocol not in ("as_written", "as_coded"):
        kind = _recipe_in(content)
        keys = {} if kind is None else kind.run_defaults
    elif content.get("task") == "segmentation":
        if protocol == "as_coded":
            raise ValueError("protocol as_coded: the published code does not segment; expected as_written or own")
        text = " ".join(map(str, names.values())).lower()
        keys = TABLES.keys["segmentation_transformer" if "vit" in text or "swin" in text else "segmentation"]
    elif protocol == "as_written":
        name = str(names.get("encoder") or names.get("name") or "").lower()
        is_ex2 = content.get("scenario", ORIGINAL) != ORIGINAL
        if is_ex2 and content.get("folds") != 0 and "early_stopping" not in content:
            raise ValueError(
                "protocol as_written stops a training on a scenario early, and the text names no number of epochs; "
                "expected early_stopping: set it, or null"
            )
        is_transformer = name.startswith(tuple(TABLES.transformers))
        keys = TABLES.keys["as_written_transformer" if is_transformer else "as_written"]
    else:
        keys = TABLES.keys["as_coded"]
    # a run has one length: its own takes the place of the protocol's
    return {key: value for key, value in keys.items() if LENGTHS.get(key) not in content}
