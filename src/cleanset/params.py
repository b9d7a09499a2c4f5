"""`params.yaml`, checked on reading."""

from pathlib import Path
from typing import Annotated, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from cleanset.checked import first_problem
from cleanset.errors import CleansetError
from cleanset.ilsvrc import class_indices, wnids

Role = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, section: object) -> object:
        unknown = [key for key in section if key not in cls.model_fields] if isinstance(section, dict) else []
        if unknown:
            raise ValueError(f"unknown key {unknown[0]!r}; expected {', '.join(cls.model_fields)}")
        return section


class Dataset(_Section):
    """Where pictures and labels come from; paths are relative to the edition's folder."""

    images: str
    devkit: str | None = None
    reassessed: str = "timm"
    expect_images: Annotated[int, Field(ge=1)] | None = None
    classes: Literal["all"] | list[str] = "all"

    @field_validator("classes", mode="before")
    @classmethod
    def _known(cls, classes: object) -> object:
        wanted = "expected all, or a list of distinct wnids of ILSVRC2012"
        if isinstance(classes, list):
            for place, wnid in enumerate(classes):
                if not isinstance(wnid, str) or wnid not in class_indices() or wnid in classes[:place]:
                    raise ValueError(f"{wnid!r} is unknown or doubled; {wanted}")
        if classes != "all" and not (isinstance(classes, list) and classes):
            raise ValueError(wanted)
        return classes

    def class_list(self) -> list[int]:
        """Class indices of the classes that get a set, sorted."""
        names = wnids() if self.classes == "all" else self.classes
        return sorted(class_indices()[wnid] for wnid in names)


class Model(_Section):
    """One member of the ensemble: where it comes from, and its weights."""

    source: Literal["timm", "robustbench"]
    name: str
    threat_model: Literal["Linf", "L2", "corruptions"] | None = None
    weights: str | None = None
    sha256: Sha256 | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.source == "robustbench") != (self.threat_model is not None):
            raise ValueError("threat_model is needed for source robustbench, and for no other")
        if self.weights is not None and self.sha256 is None:
            raise ValueError(
                f"weights without sha256: a change would go unseen; add what sha256sum {self.weights} prints"
            )
        return self


class Score(_Section):
    """How models are run. In float64, nothing else here changes what comes out.

    `engine: ray` spreads the work over a Ray cluster, `local` over the devices of this machine.
    """

    engine: Literal["local", "ray"] = "local"
    device: Annotated[str, Field(pattern=r"^(auto|cpu|cuda(:\d+)?)$")] = "auto"
    precision: Literal["float64", "float32", "tf32", "bfloat16"] = "float64"
    batch_size: Annotated[int, Field(ge=1)] = 256


class Select(_Section):
    """`candidates`: how many of the pictures that all models get right make up tier top5."""

    candidates: Annotated[int, Field(ge=1)] = 5


class ReviewPolicy(_Section):
    """How the verdicts of several reviewers become one, and what an unreviewed picture counts as.

    `wrong_after_crop`: what becomes of a picture that the model no longer gets right once it is cropped.
    """

    policy: Literal["single", "majority", "unanimous"] = "single"
    min_reviewers: Annotated[int, Field(ge=1)] = 1
    unreviewed: Literal["pending", "clean"] = "pending"
    wrong_after_crop: Literal["reject", "accept"] = "reject"

    @model_validator(mode="after")
    def _single_needs_one(self) -> Self:
        if self.policy == "single" and self.min_reviewers != 1:
            raise ValueError("policy single goes with min_reviewers 1; for more take majority or unanimous")
        return self


class Export(_Section):
    """`strict`: a class that cannot be filled is an error."""

    images_per_class: Annotated[int, Field(ge=1)] = 3
    strict: bool = False


class Count(_Section):
    """`published_top1`: a model's published top-1 accuracy in percent, by role, to hold the measured one against."""

    published_top1: dict[Role, Annotated[float, Field(ge=0, le=100)]] = {}


class Params(_Section):
    """The whole file. `root` leads from the edition's folder to the one that holds `src/`."""

    root: str
    dataset: Dataset
    models: Annotated[dict[Role, Model], Field(min_length=1)]
    score: Score = Score()
    select: Select = Select()
    review: ReviewPolicy = ReviewPolicy()
    export: Export = Export()
    count: Count = Count()

    @model_validator(mode="after")
    def _published_of_known_models(self) -> Self:
        for role in self.count.published_top1:
            if role not in self.models:
                raise ValueError(f"count.published_top1: no model {role!r}; expected one of {', '.join(self.models)}")
        return self

    def model(self, role: str) -> Model:
        """The model of a role. Raises CleansetError for a role that is not there."""
        if role not in self.models:
            raise CleansetError(f"params.yaml: no model {role!r}; expected one of {', '.join(self.models)}")
        return self.models[role]


def read_params(edition: Path) -> Params:
    """Read and check `params.yaml` of an edition. Raises CleansetError naming the first wrong key."""
    path = edition / "params.yaml"
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        return Params.model_validate(content)
    except FileNotFoundError:
        raise CleansetError(f"{path}: missing; expected the folder of an edition (see README)") from None
    except yaml.YAMLError as error:
        raise CleansetError(f"{path}: not YAML: {' '.join(str(error).split())}") from None
    except ValidationError as error:
        raise CleansetError(f"{path}: {first_problem(error)}") from None
    except UnicodeDecodeError as error:
        raise CleansetError(f"{path}: not a text file ({error}); expected UTF-8") from None
