"""The params.yaml of studies/attacks: which attacks, with which parameters, and on which wrapped models."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Union

from pydantic import BeforeValidator, Field, ValidationError

from cleanset.edition.params import Precision
from cleanset.errors import CleansetError
from cleanset.parsing import read_yaml
from cleanset.studies.attacks.base import Fraction, Group, Images, Parameters, Positive, Samples, Steps
from cleanset.studies.attacks.boundary import BoundaryAttack
from cleanset.studies.attacks.common_corruptions import CommonCorruptionsAttack
from cleanset.studies.attacks.guess import GuessAttack, NoAttack
from cleanset.studies.attacks.pgd import PgdAttack
from cleanset.studies.attacks.spatial import RandomSpatialAttack, SpatialGridAttack
from cleanset.studies.attacks.spsa import SpsaAttack
from cleanset.studies.attacks.square import AutoAttackAttack, SquareAttack
from cleanset.studies.attacks.transfer import TransferAttack
from cleanset.studies.attacks.wrapped import WrappedModel, check_wrapped
from cleanset.studies.robustness.params import BootstrapParams
from cleanset.validation import Role, Section, check_known, first_problem, shown

ATTACKS: tuple[type[Parameters], ...] = (
    NoAttack, SpatialGridAttack, RandomSpatialAttack, SpsaAttack, BoundaryAttack, CommonCorruptionsAttack, PgdAttack,
    SquareAttack, TransferAttack, AutoAttackAttack, GuessAttack,
)  # fmt: skip
"""All attacks, in the order of tables; a new one is a module and a line here."""
KINDS = {str(attack.model_fields["kind"].default): attack for attack in ATTACKS}
"""The attacks by kind, which is what params.yaml calls them."""
# a type checker cannot read a union that is made of a tuple at run time
if TYPE_CHECKING:
    AnyAttack = Parameters
else:
    AnyAttack = Annotated[Union[ATTACKS], Field(discriminator="kind")]  # noqa: UP007 (of a tuple)

_KIND_IN_KEY = re.compile(rf"(?<=^attacks\.)([^.]+)\.(?:{'|'.join(KINDS)})(?=[.:])")
"""Pydantic puts the kind of an attack behind its name, though params.yaml has no such key."""
GUESS = "guess"
WORST_CASE = "worst_case"
"""In place of an attack's name: of all attacks on an image the one that breaks it, if any does."""


def _with_kinds(attacks: object) -> object:
    """Each attack with its kind: its own name, unless another one is given."""
    if not isinstance(attacks, dict):
        return attacks
    found: dict[Any, Any] = {}
    for name, entry in attacks.items():
        if name == GUESS:
            raise ValueError(f"{GUESS} is always there; expected it left out")
        if name == WORST_CASE:
            raise ValueError(f"{WORST_CASE} stands for all attacks; expected another name")
        # YAML reads a name with nothing after it as null: all parameters have defaults
        entry = {} if entry is None else entry
        if isinstance(entry, dict):
            entry = {"kind": name} | entry
            if entry["kind"] not in KINDS:
                raise ValueError(f"{shown(name)}: kind {shown(entry['kind'])}; expected one of {', '.join(KINDS)}")
        found[name] = entry
    return found


class Budget(Section):
    """Limits of an attack on a model: no group of images is begun once one is reached; null: no limit.

    What a limit in `seconds` leaves out depends on the machine.
    """

    queries: Annotated[int, Field(ge=1)] | None = None
    seconds: Positive | None = None


class Probe(Section):
    """PGD, SPSA and images made on other models, in one Linf ball on some images, which show whether a model only
    looks strong. A sign that compares two attacks takes at least five images that the model classifies correctly.
    """

    images: Images = 50
    eps: Fraction = 4 / 255
    steps: Steps = 20
    group: Group = 16
    spsa_steps: Steps = 20
    spsa_samples: Samples = 64


class AttackParams(Section):
    """All of the params.yaml of studies/attacks.

    `search_precision`: the precision of the search; candidates are judged in float64. `images`: the largest number of
    images; null: all. `lpips`: a file of torchvision's weights of AlexNet for measuring LPIPS; null: not measured.
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
        dict[Role, AnyAttack],
        BeforeValidator(_with_kinds),
        Field(min_length=1, default_factory=lambda: {name: kind() for name, kind in KINDS.items() if name != GUESS}),
    ]
    wrapped: Annotated[dict[Role, WrappedModel], Field(default_factory=dict)]
    bootstrap: BootstrapParams = BootstrapParams()

    @property
    def names(self) -> list[str]:
        """The names of all attacks."""
        return [*self.attacks, GUESS]

    def models(self, roles: Iterable[str], further: Iterable[str] = ()) -> list[str]:
        """The models that are attacked: those of the edition, then the further ones, then the wrapped ones."""
        return [*roles, *further, *self.wrapped]

    def runs(self, roles: Sequence[str], further: Iterable[str] = ()) -> list[tuple[str, str]]:
        """Attack and model of all that is run, in this order."""
        models = self.models(roles, further)
        return [(name, model) for name in self.names for model in models if not self.is_left_out(name, model, roles)]

    def is_left_out(self, name: str, model: str, roles: Sequence[str]) -> bool:
        """Whether an attack is not run on a model: the edition's `roles` alone have predictions to read."""
        return self.attack(name).reads_predictions and model not in roles

    def attack(self, name: str) -> Parameters:
        """The parameters of an attack. Raises CleansetError if there is none of that name."""
        check_known("attack", name, self.names)
        return GuessAttack() if name == GUESS else self.attacks[name]

    def images_of(self, name: str, model: str) -> int | None:
        """The largest number of images that an attack on a model gets; None: all."""
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
