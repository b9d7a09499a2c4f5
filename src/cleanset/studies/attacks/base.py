"""The base of every attack: what it is given, its parameters, its results; radii, candidates of 8 bits, seeds by names.

An attack is a class: its fields are its parameters, `results` its search, and it knows all else that is asked of an
attack; and a line in `study.ATTACKS`. Modules with attacks do not import torch on import, so that params.yaml can be
read without it.
"""

import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import floor
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NoReturn, TypeVar

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator

from cleanset.errors import CleansetError
from cleanset.images.preprocessing import PixelPlanes
from cleanset.planning.work import NO_PASSES, Passes
from cleanset.plumbing.validation import AtLeastOne, Section
from cleanset.statistics.basics import Floats
from cleanset.statistics.seeds import change_seed, image_seed, numpy_seeded
from cleanset.studies.attacks.threats import LEVELS as LEVELS
from cleanset.studies.attacks.threats import Ball as Ball
from cleanset.studies.attacks.threats import Norm as Norm

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from cleanset.scoring.differentiable import PixelNetwork


# torch is imported when an attack searches, not when its parameters are read

Uses = Literal["classes", "logits", "gradients"]
"""The most that an attack asks of a model; a command gives only classes."""
Family = Literal["unchanged", "ball", "nearest", "rotations", "corruptions", "changes", "other image"]
"""The images that an attack chooses from: the image itself, any image in its ball, the nearest one that is
misclassified, a rotation, corruption or other given change of the image, or another image in its place."""
IN_BALLS: tuple[Family, ...] = ("unchanged", "ball", "nearest")
"""The families whose candidates are in a ball."""
T = TypeVar("T")
MAX_OFF = 0.01
"""Levels that a radius may be off a whole number of them: decimals are rounded."""
_FRACTION = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6})?)/([1-9][0-9]{0,5})")


def _number(value: object) -> object:
    """A decimal such as 0.5 or a fraction such as 4/255 in a text as a number."""
    if isinstance(value, str):
        if (found := _FRACTION.fullmatch(value)) is not None:
            return float(found[1]) / int(found[2])
        try:
            return float(value)
        except ValueError:
            raise ValueError("expected a number, or a fraction such as 4/255") from None
    return value


def _linf_radius(value: float) -> float:
    """A radius that is a whole number of levels, up to a hundredth of one: 0.0157 is 4/255. Raises ValueError."""
    levels = value * LEVELS
    whole = round(levels) if 1 <= levels <= LEVELS else 0
    # an image of 8 bits has whole levels only: 1.5/255 would be searched as 1/255
    if not whole or abs(levels - whole) > MAX_OFF:
        raise ValueError(
            f"{levels:.4g} levels of 8 bits; expected whole levels, 1/{LEVELS} to {LEVELS}/{LEVELS}, such as "
            f"8/{LEVELS} (pixels are 0 to 1)"
        )
    return whole / LEVELS


def _l2_radius(value: float) -> float:
    """A radius that one color of one pixel can reach by a level. Raises ValueError."""
    if value * LEVELS < 1 - MAX_OFF:
        raise ValueError(
            f"no other image of 8 bits is in this L2 ball; expected at least 1/{LEVELS}, such as 0.5 (pixels are "
            "0 to 1)"
        )
    return value


Fraction = Annotated[float, BeforeValidator(_number), Field(gt=0, allow_inf_nan=False)]
LinfRadius = Annotated[Fraction, AfterValidator(_linf_radius)]
L2Radius = Annotated[Fraction, AfterValidator(_l2_radius)]
Scale = Annotated[float, BeforeValidator(_number), Field(gt=0, le=1)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Images = AtLeastOne
Steps = Annotated[int, Field(ge=1, le=1_000_000)]
Group = Annotated[int, Field(ge=1, le=4096)]
NumberOfDraws = Annotated[int, Field(ge=1, le=1000)]
Restarts = Annotated[int, Field(ge=1, le=1000)]
Samples = Annotated[int, Field(ge=2, le=65536, multiple_of=2)]


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """An image that is attacked: its unique name, its image id, its class, and its pixels."""

    name: str
    image_id: str
    class_index: int
    pixels: PixelPlanes


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """The result of an attack on one image: the candidate, successful or not, and the queries that it took.

    `center`: the image in whose ball it is, where the attack did not begin with the image itself. `seed`: seed of the
    draws for it, or for its group. `notices`: remarks of an attack's library. `broken_at`: the step that first found a
    success, if one did. `is_converged`: whether more steps than asked for changed nothing; None: unknown.
    """

    candidate: PixelPlanes
    queries: int
    center: PixelPlanes | None = None
    seed: int | None = None
    notices: tuple[str, ...] = ()
    broken_at: int | None = None
    is_converged: bool | None = None


@dataclass(frozen=True, slots=True)
class Other:
    """An image that the model classifies correctly, from which an attack may start."""

    class_index: int
    pixels: Callable[[], PixelPlanes]


def refuse_guess(*_: Subject) -> NoReturn:
    """Raise CleansetError: outside a study nothing is known of a model's mistakes."""
    raise CleansetError("guess: reads the stored predictions of a study; expected another attack")


@dataclass(frozen=True, slots=True)
class Known:
    """Everything that a search may use next to the network: the seed of params.yaml, other images, other models as
    networks on the same pixels, by name, and a known mistake of an image's class, by default the image itself.

    `others` and `sources` are called by the attacks that need them only, as they take time. `name`: the attack's in
    params.yaml, from which its draws follow, so that two attacks of one kind draw differently; empty: its kind.
    """

    seed: int
    others: Callable[[], Mapping[str, Other]] = dict
    sources: Callable[[], Mapping[str, "PixelNetwork"]] = dict
    guess: Callable[[Subject], PixelPlanes] = refuse_guess
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackPasses:
    """The passes for one image."""

    own: Passes = NO_PASSES
    """Logits of the model under attack, in the precision of the search."""
    others: Passes = NO_PASSES
    """Passes of each of the other models."""

    def of_all(self, sources: int) -> Passes:
        """The passes of the model and of `sources` other ones."""
        return self.own + self.others * sources


class Parameters(Section):
    """An attack and its parameters, a section of `attacks` in params.yaml.

    `images`: the largest number of images that it is run on; null: all. `kind`: the name, from which seeds are derived.
    """

    effect: ClassVar[str]
    """What it does, in the table of docs/attacks.md."""
    family: ClassVar[Family]
    uses: ClassVar[Uses]
    in_defaults: ClassVar[bool]
    """Whether params without `attacks` have it, and with it the robust accuracy of its threat model."""
    small: ClassVar[Mapping[str, object]]
    """Parameters of a search that takes a moment, for tests."""
    libraries: ClassVar[tuple[str, ...]] = ()
    """The distributions that decide the candidates, whose versions are recorded."""
    reads_predictions: ClassVar[bool] = False
    """Whether it needs a model's stored predictions, which only the edition's models have."""
    reads_other_images: ClassVar[bool] = False
    """Whether it begins with other images, which the model classifies correctly."""
    reads_other_models: ClassVar[bool] = False
    """Whether it makes its images on other models."""
    images: Images | None = None
    kind: str

    @property
    def group_size(self) -> int:
        """Number of images that are searched for together; their results may share random numbers."""
        return int(getattr(self, "group", 1))

    @property
    def ball(self) -> Ball | None:
        """The ball that every candidate is in; None if its distance is not bounded."""
        return None

    @property
    def changes_images(self) -> bool:
        """Whether a candidate may differ from the image."""
        return self.family != "unchanged"

    @abstractmethod
    def passes(self, sources: int, classes: int) -> AttackPasses:
        """How often it asks networks for one image, at most: a search that ends with its first success asks less.

        `sources`: the number of other models; `classes`: the number of classes of the model under attack.
        """

    def prepare(self, known: Known) -> Mapping[str, Any]:
        """Load the search's requirements next to the network; these by name. Raises CleansetError for a missing one."""
        return {}

    @abstractmethod
    def results(self, network: "PixelNetwork", group: Sequence[Subject], known: Known) -> list[Result]:
        """Search for images that the network misclassifies; the results, in the order of the group."""


DECLARED = ("effect", "family", "uses", "in_defaults", "small")
"""What every attack says of itself."""


def registered(*attacks: type[Parameters]) -> Mapping[str, type[Parameters]]:
    """Attacks by kind, their name in params.yaml. Raises TypeError for one that leaves out what an attack has to say,
    and for two of one kind.
    """
    found = dict[str, type[Parameters]]()
    for attack in attacks:
        missing = [*sorted(attack.__abstractmethods__), *(name for name in DECLARED if not hasattr(attack, name))]
        if not missing and attack.family in IN_BALLS and attack.ball is Parameters.ball:
            missing = ["ball"]
        if missing:
            raise TypeError(f"{attack.__name__}: without {', '.join(missing)}; expected of every attack")
        kind = str(attack.model_fields["kind"].default)
        if kind in found:
            raise TypeError(f"{attack.__name__}: has the kind {kind}, as does {found[kind].__name__}")
        found[kind] = attack
    return found


class OneByOne(Parameters):
    """An attack that searches on one image after the other."""

    def results(self, network: "PixelNetwork", group: Sequence[Subject], known: Known) -> list[Result]:
        """The results, in the order of the group."""
        return [self.result(network, subject, known) for subject in group]

    @abstractmethod
    def result(self, network: "PixelNetwork", subject: Subject, known: Known) -> Result:
        """The result of one image."""


class InBall(Parameters):
    """An attack in a ball of `norm` and `eps` around the image."""

    family = "ball"
    norm: Norm = "Linf"
    eps: Fraction = 4 / 255

    @field_validator("eps")
    @classmethod
    def _holds_other_images(cls, eps: float, found: ValidationInfo) -> float:
        return _l2_radius(eps) if found.data.get("norm") == "L2" else _linf_radius(eps)

    @property
    def ball(self) -> Ball:
        """The ball that every candidate is in."""
        return Ball(self.norm, self.eps)


def seed_of(seed: int, kind: Literal["attack", "judged", "searched"], what: str, *names: str) -> int:
    """The seed of the draws for an image or a group, 0 to 2**32 - 1, from names in their order.

    attack: by the search of the name `what`. searched, judged: by a random model itself, while an attack searches and
    when it is asked about a file; `what` has the model and the attack. `seed` is the study's.
    """
    return change_seed(image_seed(seed, "\n".join(names)), kind, what, 0)


def chosen(wanted: list[str] | None, known: Mapping[str, T], unknown: Callable[[str], str]) -> Mapping[str, T]:
    """The named entries of `known`; all without names. Raises CleansetError, with the message for another name."""
    for name in wanted or ():
        if name not in known:
            raise CleansetError(unknown(name))
    return known if wanted is None else {name: known[name] for name in wanted}


def to_unit(images: Sequence[PixelPlanes], network: "PixelNetwork") -> "Tensor":
    """Pixels in 0..1 on the network's device, in its dtype: shape (n, 3, size, size)."""
    import torch

    from cleanset.scoring.devices import to_device

    return to_device(torch.from_numpy(np.stack(images)), network.device).to(network.dtype) / LEVELS


def classes_of(group: Sequence[Subject], network: "PixelNetwork") -> "Tensor":
    """The class indices of some images on the network's device."""
    import torch

    return torch.tensor([subject.class_index for subject in group], device=network.device)


def logits_of(network: "PixelNetwork", pixels: "Tensor", mode: str = "no_grad") -> Floats:
    """The logits as an array, in one of torch's modes: no_grad, inference_mode or enable_grad."""
    import torch

    with getattr(torch, mode)():
        return np.asarray(network(pixels).detach().double().cpu().numpy())


def to_levels(pixels: "Tensor") -> Floats:
    """Pixels in 0..1 as levels, 0 to 255, not rounded."""
    return pixels.detach().cpu().double().numpy() * LEVELS


def margins(logits: "Tensor", classes: "Tensor") -> "Tensor":
    """The largest other logit minus the logit of the class: above 0 for a misclassified image."""
    of_class = logits.gather(1, classes[:, None])[:, 0]
    others = logits.scatter(1, classes[:, None], float("-inf"))
    return others.max(dim=1).values - of_class


def to_pixels(levels: Floats, center: PixelPlanes | None = None, ball: Ball | None = None) -> PixelPlanes:
    """The candidate as 8 bits, from levels 0 to 255: the nearest values, or near ones inside the ball.

    Candidates outside are projected onto the ball first. In an L2 ball, levels that were rounded away from the center
    are then rounded towards it instead, the most doubtful first, until the candidate is inside.
    """
    if center is None or ball is None:
        return np.clip(np.rint(levels), 0, LEVELS).astype(np.uint8)
    radius = ball.levels()
    middle = center.astype(np.float64)
    if ball.norm == "Linf":
        least = np.ceil(middle - radius)
        most = np.floor(middle + radius)
        return np.clip(np.rint(levels), np.maximum(least, 0), np.minimum(most, LEVELS)).astype(np.uint8)
    difference = np.clip(levels, 0, LEVELS) - middle
    length = float(np.sqrt((difference**2).sum()))
    steps = _whole_steps(difference * min(1.0, ball.eps * LEVELS / length if length else 1.0), floor(radius**2))
    return (middle + steps).astype(np.uint8)


def _whole_steps(exact: Floats, most: int) -> Floats:
    """Whole numbers near to `exact` whose squares sum up to at most `most`; those of the truncated ones must."""
    steps = np.rint(exact).ravel()
    surplus = int((steps**2).sum()) - most
    if surplus > 0:
        excess = np.abs(steps) - np.abs(exact.ravel())
        outward = np.flatnonzero(excess > 0)
        order = outward[np.argsort(-excess[outward], kind="stable")]
        # n**2 - (n - 1)**2 = 2 n - 1 is what a step towards the center takes off the sum
        saved = np.cumsum(2 * np.abs(steps[order]) - 1)
        inward = order[: int(np.searchsorted(saved, surplus)) + 1]
        steps[inward] -= np.sign(steps[inward])
    return steps.reshape(exact.shape)


@contextmanager
def globally_seeded(seed: int, device: "torch.device") -> Iterator[None]:
    """Seed the global generators of torch and numpy, and put their states back at the end."""
    import torch

    from cleanset.scoring.devices import device_of

    # without a list, fork_rng saves the state of every GPU
    with torch.random.fork_rng(device_of(device).generators()), numpy_seeded(seed):
        torch.manual_seed(seed)
        yield


def group_seed(attack: Parameters, group: Sequence[Subject], known: Known) -> int:
    """The seed of an attack's draws for a group of images, from their names in their order."""
    return seed_of(known.seed, "attack", known.name or attack.kind, *(subject.name for subject in group))
