"""The DVC project `studies/attacks`: the paths of its files, its params.yaml, all attacks, their threat models.

params.yaml says which attacks are run, with which parameters, and on which wrapped models: models of the edition with
something around them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self, Union

from pydantic import BeforeValidator, Field, ValidationInfo, WrapValidator, field_validator, model_validator

from cleanset.classes import ClassTable, context_classes
from cleanset.edition.params import Engine, Params, Precision
from cleanset.errors import CleansetError
from cleanset.evaluation.specs import Spec, WrappedNetwork
from cleanset.plumbing.files import PathBelow, PathOfName, partial_shards
from cleanset.plumbing.validation import (
    AtLeastOne,
    NonEmpty,
    Role,
    Section,
    check_known,
    is_callable_name,
    shown,
    validate,
)
from cleanset.plumbing.yaml_files import read_study_yaml
from cleanset.scoring.logits import Groups
from cleanset.statistics.bootstrap import Bootstrap
from cleanset.studies.attacks.autoattack import AutoAttackAttack, SquareAttack
from cleanset.studies.attacks.base import (
    Ball,
    Group,
    Images,
    LinfRadius,
    Parameters,
    Positive,
    Samples,
    Steps,
    registered,
)
from cleanset.studies.attacks.boundary import BoundaryAttack
from cleanset.studies.attacks.changes import (
    CommonCorruptionsAttack,
    GuessAttack,
    NoAttack,
    RandomSpatialAttack,
    SpatialGridAttack,
)
from cleanset.studies.attacks.custom import CustomAttack
from cleanset.studies.attacks.gradient_attacks import PgdAttack, SpsaAttack, TransferAttack
from cleanset.studies.attacks.results import WORST_CASE
from cleanset.studies.attacks.threats import PROBE, ThreatModel, ball_text
from cleanset.studies.robustness.families import OpenedStudy, StudyParams
from cleanset.studies.robustness.images import StudyBesideRobustness
from cleanset.studies.robustness.params import BootstrapParams


@dataclass(frozen=True, slots=True)
class AttackedFolder:
    """The results of one attack on one model."""

    folder: Path

    table = PathBelow("attacked.parquet")
    """A table of ATTACKED."""

    record = PathBelow("record.json")
    """Attack, parameters, seed, precision, device, weights, versions; the wrapper of a wrapped model."""

    @property
    def partial(self) -> Path:
        """The folder of finished groups until all are finished."""
        return partial_shards(self.folder)


class AttackStudy(StudyBesideRobustness):
    """The paths of the attacks in `folder`, `studies/attacks` of an edition."""

    data = PathBelow("data")
    measures = PathBelow("data/attack_measures.csv")
    """The measures of all attacks, as CSV."""

    metrics = PathBelow("attack_metrics")
    """The lines of `dvc metrics show`."""

    def results(self, attack: str, model: str) -> AttackedFolder:
        """The results of an attack on a model."""
        return AttackedFolder(self.data / "attacks" / attack / model)

    warnings = PathOfName("data/attack_warnings/{}.json")
    """The signs of gradient masking by model, as JSON."""


class WrappedModel(Section):
    """A model of the edition with two groups of classes in place of all, in a wrapper, or both.

    `model`: its role. `groups`: the wnids of each of two groups by name, in the order of the model's answers.
    `wrapper`: uninteresting, the gradient-masking defense of Unrestricted Adversarial Examples, appendix E; it is
    around the groups.
    `images`: the largest number of images that it is attacked on; None for all.
    """

    model: Role
    wrapper: Literal["uninteresting"] | None = None
    groups: dict[Role, list[str]] | None = None
    images: AtLeastOne | None = None

    @field_validator("groups")
    @classmethod
    def _check_groups(cls, groups: dict[str, list[str]] | None, info: ValidationInfo) -> dict[str, list[str]] | None:
        if groups is not None:
            try:
                Groups.of(groups, context_classes(info), "groups")
            except CleansetError as error:
                raise ValueError(str(error).removeprefix("groups").lstrip(".: ")) from None
        return groups

    @model_validator(mode="after")
    def _something_around(self) -> Self:
        if self.wrapper is None and self.groups is None:
            raise ValueError("neither wrapper nor groups; expected one of them or both")
        return self

    def two_groups(self, classes: ClassTable) -> Groups | None:
        """The groups of class indices; None if the model has all classes."""
        return None if self.groups is None else Groups.of(self.groups, classes)

    def text(self) -> str:
        """The model and its surroundings, as the page names them."""
        groups = [] if self.groups is None else [f"two groups: {', '.join(self.groups)}"]
        return "; ".join((self.model, *groups, *([] if self.wrapper is None else [f"wrapper {self.wrapper}"])))


ATTACKS = registered(
    NoAttack, SpatialGridAttack, RandomSpatialAttack, SpsaAttack, BoundaryAttack, CommonCorruptionsAttack, PgdAttack,
    SquareAttack, TransferAttack, AutoAttackAttack, GuessAttack,
)  # fmt: skip
"""All attacks by kind, in the order of tables; a new one is a class and a name here."""


def _of_kind(entry: object, _: object) -> Parameters:
    # by its own class alone: a union would put the names of its parts into the keys that errors name
    if isinstance(entry, Parameters):
        return entry
    kind = ATTACKS.get(entry["kind"], CustomAttack) if isinstance(entry, dict) else Parameters
    return kind.model_validate(entry)


# a type checker cannot read a union that is made of a tuple at run time
if TYPE_CHECKING:
    AnyAttack = Parameters
else:
    AnyAttack = Annotated[Union[tuple(ATTACKS.values())], Field(discriminator="kind"), WrapValidator(_of_kind)]  # noqa: UP007 (of a tuple)

GUESS = "guess"


def threat_models(attacks: Mapping[str, Parameters]) -> tuple[ThreatModel, ...]:
    """The threat models of attacks by name, in the order of their first attacks.

    Attacks that change nothing, or take another image in place of this one, have none.
    """
    found = dict[str, ThreatModel]()
    for name, attack in attacks.items():
        if attack.family in ("unchanged", "other image"):
            continue
        ball = _shared_ball(attack)
        key = name if ball is None else ball_text(ball)
        before = found.get(key)
        # without any ball, an attack tries each of its changes
        is_searched = attack.uses == "gradients" or attack.ball is None
        found[key] = ThreatModel(
            name=key,
            attacks=(name,) if before is None else (*before.attacks, name),
            ball=ball,
            is_searched_by_gradient=is_searched or (before is not None and before.is_searched_by_gradient),
        )
    return tuple(found.values())


def _shared_ball(attack: Parameters) -> Ball | None:
    """The ball around the image itself in which an attack may take any image; None if it has no such ball."""
    is_around_image = getattr(attack, "after", None) is None
    return attack.ball if is_around_image and attack.family != "nearest" else None


def _with_kinds(attacks: object) -> object:
    """Each attack with its kind: its own name, unless another one is given."""
    if not isinstance(attacks, dict):
        return attacks
    found: dict[object, object] = {}
    for name, entry in attacks.items():
        if name == GUESS:
            raise ValueError(f"{GUESS} is always there; leave it out")
        if name in (WORST_CASE, PROBE):
            raise ValueError(f"{name} has another meaning among results; expected another name")
        # YAML reads a name with nothing after it as null: all parameters have defaults
        entry = {} if entry is None else entry
        if isinstance(entry, dict):
            entry = {"kind": name} | entry
            if entry["kind"] not in ATTACKS and not is_callable_name(str(entry["kind"])):
                raise ValueError(
                    f"{shown(name)}: kind {shown(entry['kind'])}; expected one of {', '.join(ATTACKS)}, or MODULE:NAME"
                )
        found[name] = entry
    return found


class Budget(Section):
    """Limits of an attack on a model: no group of images is begun once one is reached; null: no limit.

    Queries are counted in the order of the groups, whoever computes them. Seconds are the sum over all workers, and the
    images that they leave out depend on the machine.
    """

    queries: AtLeastOne | None = None
    seconds: Positive | None = None


class Probe(Section):
    """PGD, SPSA and images made on other models, in one Linf ball on some images, which show whether a model only
    looks strong. A sign that compares two attacks takes at least five images that the model classifies correctly.
    """

    images: Images = 50
    eps: LinfRadius = 4 / 255
    steps: Steps = 20
    group: Group = 16
    spsa_steps: Steps = 20
    spsa_samples: Samples = 64


class AttackParams(Section):
    """All of the params.yaml of studies/attacks.

    `search_precision`: the precision of the search; candidates are judged in float64. `images`: the largest number of
    images; null: all. `lpips`: a file of torchvision's weights of AlexNet for measuring LPIPS; null: not measured.
    `engine`: local or ray; null: the edition's.
    `attacks`: by name, which is its kind unless one is given; `guess` is always there next to them.
    `wrapped`: models that are attacked next to the edition's, by a name of their own; `guess`, which
    needs stored predictions, leaves them out.
    """

    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0
    search_precision: Precision = "float32"
    images: Images | None = None
    lpips: NonEmpty | None = None
    budget: Budget = Budget()
    engine: Engine | None = None
    probe: Probe = Probe()
    attacks: Annotated[
        dict[Role, AnyAttack],
        BeforeValidator(_with_kinds),
        Field(
            min_length=1, default_factory=lambda: {name: kind() for name, kind in ATTACKS.items() if kind.in_defaults}
        ),
    ]
    wrapped: Annotated[dict[Role, WrappedModel], Field(default_factory=dict)]
    bootstrap: BootstrapParams = BootstrapParams()

    @property
    def names(self) -> list[str]:
        """The names of all attacks."""
        return [*self.attacks, GUESS]

    @property
    def threats(self) -> tuple[ThreatModel, ...]:
        """The threat models of the attacks."""
        return threat_models(self.attacks)

    @property
    def resampling(self) -> Bootstrap:
        """The way intervals of means are computed: the same resamples for all attacks and models."""
        return Bootstrap(resamples=self.bootstrap.draws, seed=f"attacks {self.seed}")

    def models(self, roles: Iterable[str], further: Iterable[str] = ()) -> list[str]:
        """The models under attack: the edition's, then the further ones, then the wrapped ones."""
        return [*roles, *further, *self.wrapped]

    def runs(self, roles: Sequence[str], further: Iterable[str] = ()) -> list[tuple[str, str]]:
        """Attack and model of all that is run, in this order."""
        models = self.models(roles, further)
        return [(name, model) for name in self.names for model in models if not self.is_left_out(name, model, roles)]

    def is_left_out(self, name: str, model: str, roles: Sequence[str]) -> bool:
        """Whether an attack is not run on a model: the edition's `roles` alone have predictions to read."""
        return self.attack(name).reads_predictions and model not in roles

    def attack(self, name: str) -> Parameters:
        """The parameters of an attack. Raises CleansetError for an unknown name."""
        check_known("attack", name, self.names)
        return GuessAttack() if name == GUESS else self.attacks[name]

    def images_of(self, name: str, model: str) -> int | None:
        """The largest number of images that an attack on a model gets; None: all."""
        of_model = self.wrapped[model].images if model in self.wrapped else None
        limits = [limit for limit in (self.images, self.attack(name).images, of_model) if limit is not None]
        return min(limits, default=None)


@dataclass(frozen=True, slots=True)
class AllParams:
    """The params that attacks depend on, and the models that these name."""

    opened: OpenedStudy
    """The study of robustness next to the attacks."""

    edition: Params
    """The edition's own params."""

    attacks: AttackParams
    """The params of the attacks."""

    @classmethod
    def read(cls, study: AttackStudy, attacks: AttackParams | None = None) -> "AllParams":
        """Read and check the three files, or two of them if `attacks` is given. Raises CleansetError naming the key."""
        opened = OpenedStudy.read(study.robustness)
        edition = opened.edition
        if attacks is None:
            further = list(opened.params.further_models)
            attacks = read_attack_params(study.params_yaml, list(edition.models), opened.classes, others=further)
        return cls(opened=opened, edition=edition, attacks=attacks)

    @property
    def classes(self) -> ClassTable:
        """The class table of the edition."""
        return self.opened.classes

    @property
    def robustness(self) -> StudyParams:
        """The params of the edition's study of robustness."""
        return self.opened.params

    def spec_of(self, name: str) -> Spec:
        """A model of the edition, a further one, or a wrapped one. Raises CleansetError for another name."""
        check_known("model", name, self.attacks.models(self.edition.models, self.robustness.further_models))
        around = self.attacks.wrapped.get(name)
        if around is None:
            return self.opened.spec_of(name)
        groups = around.two_groups(self.classes)
        return WrappedNetwork(name, self.spec_of(around.model), groups, is_uninteresting=around.wrapper is not None)


def read_attack_params(
    path: Path, roles: Sequence[str], classes: ClassTable, *, others: Sequence[str] = ()
) -> AttackParams:
    """Read and check the params.yaml of studies/attacks. Raises CleansetError naming the key.

    `roles` are the models of the edition, `classes` its class table, `others` the further models that its study of
    robustness measures.
    """
    content = read_study_yaml(path, "a study of attacks")
    params = validate(AttackParams, content, path, context=classes)
    for name, each in params.wrapped.items():
        if name in (*roles, *others):
            raise CleansetError(
                f"{path}: wrapped.{name}: a model has this name; expected another than {', '.join((*roles, *others))}"
            )
        if each.model not in roles:
            raise CleansetError(
                f"{path}: wrapped.{name}.model: unknown model {shown(each.model)}; expected a role of the edition: "
                f"{', '.join(roles)}"
            )
    return params
