"""The params.yaml of studies/attacks: which attacks, with which parameters, and on which wrapped models."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationError, field_validator, model_validator

from cleanset.edition.params import Precision, Role, Section
from cleanset.errors import CleansetError
from cleanset.studies.attacks.wrapped import WrappedModel, check_wrapped
from cleanset.studies.robustness.settings import Bootstrap
from cleanset.validation import check_known, first_problem, shown
from cleanset.yaml_files import read_yaml

_FRACTION = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6})?)/([1-9][0-9]{0,5})")


def _number(value: object) -> object:
    """A fraction such as 4/255 as a number."""
    if isinstance(value, str):
        found = _FRACTION.fullmatch(value)
        if found is None:
            raise ValueError("expected a number, or a fraction such as 4/255")
        return float(found[1]) / int(found[2])
    return value


Fraction = Annotated[float, BeforeValidator(_number), Field(gt=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Images = Annotated[int, Field(ge=1)]
Steps = Annotated[int, Field(ge=1, le=1_000_000)]
Group = Annotated[int, Field(ge=1, le=4096)]
Offsets = Annotated[list[Annotated[float, Field(ge=-360, le=360)]], Field(min_length=1)]
Norms = Literal["Linf", "L2"]
Parts = Literal["apgd-ce", "apgd-dlr", "apgd-t", "fab", "fab-t", "square"]
STANDARD: tuple[Parts, ...] = ("apgd-ce", "apgd-t", "fab-t", "square")
"""AutoAttack's standard version."""


class _Attack(Section):
    """`images`: on the first so many only."""

    images: Images | None = None


class NoAttack(_Attack):
    """Changes nothing."""

    kind: Literal["none"] = "none"


class RandomSpatialAttack(_Attack):
    """One rotation and translation; pixels are those of an image of 224 x 224."""

    kind: Literal["random_spatial"] = "random_spatial"
    scale: Annotated[float, BeforeValidator(_number), Field(gt=0, le=1)] = 204 / 224
    max_translation: Annotated[float, Field(ge=0, le=224)] = 18
    max_angle: Annotated[float, Field(ge=0, le=180)] = 30


class SpatialGridAttack(_Attack):
    """All combinations of translations (along both axes) and angles."""

    kind: Literal["spatial_grid"] = "spatial_grid"
    scale: Annotated[float, BeforeValidator(_number), Field(gt=0, le=1)] = 0.7
    translations: Offsets = Field(default_factory=lambda: [-18.0, -9.0, 0.0, 9.0, 18.0])
    angles: Offsets = Field(default_factory=lambda: [float(angle) for angle in range(-30, 31, 2)])


class SpsaAttack(_Attack):
    """`after`: the change that it begins with, or null for the image itself."""

    kind: Literal["spsa"] = "spsa"
    eps: Fraction = 16 / 255
    steps: Steps = 200
    samples: Annotated[int, Field(ge=2, le=65536, multiple_of=2)] = 64
    learning_rate: Positive = 0.01
    delta: Positive = 0.01
    stop_margin: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1
    after: RandomSpatialAttack | None = RandomSpatialAttack()


class BoundaryAttack(_Attack):
    """`starts`: the files of the study among which the start is chosen; null: all."""

    kind: Literal["boundary"] = "boundary"
    images: Images | None = 100
    eps: Fraction = 10.0
    steps: Steps = 5000
    group: Group = 10
    starts: Annotated[list[str], Field(min_length=1)] | None = None
    after: RandomSpatialAttack | None = RandomSpatialAttack()


class CommonCorruptionsAttack(_Attack):
    """`corruptions`: 17, those of the published kit, without snow and frost; or all 19."""

    kind: Literal["common_corruptions"] = "common_corruptions"
    corruptions: Literal[17, 19] = 17
    severity: Annotated[int, Field(ge=1, le=5)] = 1


class PgdAttack(_Attack):
    """`step`: null for eps / 4. `group`: images at a time, which changes no result."""

    kind: Literal["pgd"] = "pgd"
    norm: Norms = "Linf"
    eps: Fraction = 4 / 255
    steps: Steps = 20
    step: Fraction | None = None
    random_start: bool = True
    group: Group = 16


class AutoAttackAttack(_Attack):
    """The library's standard version; with fewer steps and queries it is a weaker attack."""

    kind: Literal["autoattack"] = "autoattack"
    norm: Norms = "Linf"
    eps: Fraction = 4 / 255
    attacks: Annotated[list[Parts], Field(min_length=1, default_factory=lambda: list(STANDARD))]
    steps: Steps = 100
    square_queries: Steps = 5000
    group: Group = 16

    @field_validator("attacks")
    @classmethod
    def _each_once(cls, attacks: list[Parts]) -> list[Parts]:
        if len(set(attacks)) != len(attacks):
            raise ValueError("expected each attack once")
        return attacks


class GuessAttack(_Attack):
    """The known mistakes of the stored predictions; it has no parameters and is always there."""

    kind: Literal["guess"] = "guess"


AnyAttack = (
    NoAttack
    | RandomSpatialAttack
    | SpatialGridAttack
    | SpsaAttack
    | BoundaryAttack
    | CommonCorruptionsAttack
    | PgdAttack
    | AutoAttackAttack
    | GuessAttack
)
KINDS: dict[str, type[AnyAttack]] = {
    "none": NoAttack,
    "spatial_grid": SpatialGridAttack,
    "random_spatial": RandomSpatialAttack,
    "spsa": SpsaAttack,
    "boundary": BoundaryAttack,
    "common_corruptions": CommonCorruptionsAttack,
    "pgd": PgdAttack,
    "autoattack": AutoAttackAttack,
    "guess": GuessAttack,
}


_KIND_IN_KEY = re.compile(rf"(?<=^attacks\.)([^.]+)\.(?:{'|'.join(KINDS)})(?=[.:])")
"""Pydantic puts the kind of an attack behind its name, though params.yaml has no such key."""
GUESS = "guess"


def _with_kinds(attacks: object) -> object:
    """Each attack with its kind: its own name, unless another one is given."""
    if not isinstance(attacks, dict):
        return attacks
    found: dict[Any, Any] = {}
    for name, entry in attacks.items():
        if name == GUESS:
            raise ValueError(f"{GUESS} is always there; expected it left out")
        entry = {} if entry is None else entry
        if isinstance(entry, dict):
            entry = {"kind": name} | entry
            if entry["kind"] not in KINDS:
                raise ValueError(f"{shown(name)}: kind {shown(entry['kind'])}; expected one of {', '.join(KINDS)}")
        found[name] = entry
    return found


class Budget(Section):
    """When an attack on a model ends early: no group of images is begun once so much is spent; null: no limit.

    What a limit in `seconds` leaves out depends on the machine.
    """

    queries: Annotated[int, Field(ge=1)] | None = None
    seconds: Positive | None = None


class Probe(Section):
    """What signs of a model that only looks strong are searched with: PGD and SPSA in one Linf ball, on some images."""

    images: Images = 50
    eps: Fraction = 4 / 255
    steps: Steps = 20
    group: Group = 16
    spsa_steps: Steps = 20
    spsa_samples: Annotated[int, Field(ge=2, le=65536, multiple_of=2)] = 64


class AttackParams(Section):
    """All of the params.yaml of studies/attacks.

    `search_precision`: what candidates are searched for in; they are judged in float64. `images`: the first so many;
    null for all. `lpips`: a file of torchvision's weights of AlexNet, with which LPIPS is measured; null: not at all.
    `attacks`: by name, which is its kind unless one is given; `guess` is always there beside them.
    `wrapped`: models that are attacked beside those of the edition, by a name that none of these has; `guess`, which
    needs stored predictions, leaves them out.
    """

    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0
    search_precision: Precision = "float32"
    images: Images | None = None
    lpips: Annotated[str, Field(min_length=1)] | None = None
    budget: Budget = Budget()
    probe: Probe = Probe()
    attacks: Annotated[
        dict[Role, Annotated[AnyAttack, Field(discriminator="kind")]],
        BeforeValidator(_with_kinds),
        Field(min_length=1, default_factory=lambda: {name: kind() for name, kind in KINDS.items() if name != GUESS}),
    ]
    wrapped: Annotated[dict[Role, WrappedModel], Field(default_factory=dict)]
    bootstrap: Bootstrap = Bootstrap()

    @property
    def names(self) -> list[str]:
        """The names of all attacks."""
        return [*self.attacks, GUESS]

    def models(self, roles: Iterable[str]) -> list[str]:
        """The models that are attacked: those of the edition, then the wrapped ones."""
        return [*roles, *self.wrapped]

    def runs(self, roles: Iterable[str]) -> list[tuple[str, str]]:
        """Attack and model of all that is run, in this order."""
        return [
            (name, model) for name in self.names for model in self.models(roles) if not self.is_left_out(name, model)
        ]

    def is_left_out(self, name: str, model: str) -> bool:
        """Whether an attack is not run on a model."""
        return name == GUESS and model in self.wrapped

    @model_validator(mode="after")
    def _starts_are_other_files(self) -> Self:
        for name, attack in self.attacks.items():
            if isinstance(attack, BoundaryAttack) and attack.starts and len(set(attack.starts)) < len(attack.starts):
                raise ValueError(f"attacks.{name}.starts: a file twice; expected each once")
        return self

    def attack(self, name: str) -> AnyAttack:
        """The parameters of an attack. Raises CleansetError if there is none of that name."""
        check_known("attack", name, self.names)
        return GuessAttack() if name == GUESS else self.attacks[name]

    def images_of(self, name: str, model: str) -> int | None:
        """How many images an attack on a model gets at most."""
        of_model = self.wrapped[model].images if model in self.wrapped else None
        limits = [limit for limit in (self.images, self.attack(name).images, of_model) if limit is not None]
        return min(limits, default=None)


def read_attack_params(path: Path, roles: Sequence[str], others: Sequence[str] = ()) -> AttackParams:
    """Read and check the params.yaml of studies/attacks. Raises CleansetError naming the key.

    `roles` are the models of the edition, `others` the further ones that its study of robustness measures.
    """
    try:
        params = AttackParams.model_validate(read_yaml(path, "expected the params of attacks: git checkout it"))
    except ValidationError as error:
        problem = _KIND_IN_KEY.sub(r"\1", first_problem(error))
        raise CleansetError(f"{path}: {problem}") from None
    check_wrapped(params.wrapped, roles, others, f"{path}: wrapped")
    return params
