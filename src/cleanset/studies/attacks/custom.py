"""Attacks of users, by MODULE:NAME in params and commands, or as objects of Python; they are judged as all others."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, cast

from pydantic import Field, JsonValue, computed_field, field_validator

from cleanset.errors import CleansetError, raised
from cleanset.planning.work import Passes
from cleanset.plumbing.files import sha256
from cleanset.plumbing.validation import is_callable_name, shown
from cleanset.scoring.own_code import code_digests, imported_callable
from cleanset.statistics.formats import counted
from cleanset.studies.attacks.base import (
    AttackPasses,
    Group,
    InBall,
    Known,
    Result,
    Subject,
    Uses,
    classes_of,
    group_seed,
    to_levels,
    to_pixels,
    to_unit,
)

# torch is imported when an attack searches, not when its parameters are read
if TYPE_CHECKING:
    from torch import Tensor

    from cleanset.scoring.differentiable import PixelNetwork

Adversary = Callable[..., object]
"""A function of model, images and labels that gives images: as tensors, pixels in 0..1 of shape (n, 3, size, size)."""


class CustomAttack(InBall):
    """An attack of yours, `kind: MODULE:NAME`, in a ball of `norm` and `eps`.

    NAME is a function of model, images and labels that gives the attacked images, or a class, made with `parameters`,
    whose instances are called so. Images are pixels in 0..1, float of shape (n, 3, size, size); the model maps them to
    logits, and gradients flow to them. An argument `eps` or `norm` of the function is given. What it gives is projected
    onto the ball and stored in 8 bits; verdict, distance and intervals are those of all attacks. An object of foolbox
    is called as foolbox's attacks are. It draws from the global generators of torch and numpy, which are seeded for
    each group of images.

    `group`: images at a time. `forward`, `backward`: passes for an image, at most, by which `cleanset plan` prices it.
    With `backward: 0` it follows logits alone, and gets no gradients.
    """

    effect = "an attack of yours, in an Linf or L2 ball"
    in_defaults = False
    small: ClassVar = {}
    kind: str
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    group: Group = 16
    forward: int = Field(default=100, ge=0)
    backward: int = Field(default=100, ge=0)

    @property
    def uses(self) -> Uses:  # type: ignore[override]
        """By its passes: logits without any backward."""
        return "gradients" if self.backward else "logits"

    @field_validator("kind")
    @classmethod
    def _named(cls, kind: str) -> str:
        if not is_callable_name(kind):
            raise ValueError(f"{shown(kind)}; expected MODULE:NAME")
        return kind

    @computed_field  # type: ignore[prop-decorator]
    @property
    def code(self) -> str:
        """A digest of its code, of the module and what it imports next to it."""
        return code_digests([self.kind], "attacks")[self.kind]

    def passes(self, sources: int, classes: int) -> AttackPasses:
        """As the params have them."""
        return AttackPasses(own=Passes(forward=self.forward, backward=self.backward))

    def prepare(self, known: Known) -> Mapping[str, Any]:
        """The attack by its kind. Raises CleansetError if it cannot be made."""
        return {self.kind: self._made()}

    def _made(self) -> Adversary:
        found = imported_callable(self.kind, "attacks")
        if not inspect.isclass(found):
            return partial(found, **self.parameters)
        try:
            made = found(**self.parameters)
        except (Exception, SystemExit) as error:  # whatever its code raises
            raise CleansetError(f"{self.kind}: raises {raised(error)} for {shown(self.parameters)}") from None
        if not callable(made):
            raise CleansetError(f"{self.kind}: its instances cannot be called; expected attack(model, images, labels)")
        return made

    def results(self, network: "PixelNetwork", group: Sequence[Subject], known: Known) -> list[Result]:
        """A candidate for each image, with its share of the queries."""
        import torch

        images = to_unit([subject.pixels for subject in group], network)
        labels = classes_of(group, network)
        before = network.queries
        try:
            with torch.set_grad_enabled(self.backward > 0):
                found = self._asked(self._made(), network, images.clone(), labels.clone())
        except CleansetError:
            raise
        except (Exception, SystemExit) as error:  # whatever its code raises
            without = "" if self.backward else "; with backward: 0 it gets no gradients"
            raise CleansetError(
                f"{self.kind}: raises {raised(error)} for {counted(len(group), 'image')}{without}"
            ) from None
        if not isinstance(found, torch.Tensor) or found.shape != images.shape or not torch.isfinite(found).all():
            kind = f"{found.dtype} {tuple(found.shape)}" if isinstance(found, torch.Tensor) else type(found).__name__
            raise CleansetError(f"{self.kind}: gives {kind}; expected finite images of shape {tuple(images.shape)}")
        asked = -(-(network.queries - before) // len(group))
        seed = group_seed(self, group, known)
        levels = to_levels(found)
        return [
            Result(to_pixels(each, subject.pixels, self.ball), asked, seed=seed)
            for each, subject in zip(levels, group, strict=True)
        ]

    def _asked(self, attack: Adversary, network: "PixelNetwork", images: "Tensor", labels: "Tensor") -> object:
        if type(attack).__module__.partition(".")[0] == "foolbox":
            from foolbox.models.pytorch import PyTorchModel

            model = PyTorchModel(network, bounds=(0, 1), device=network.device)
            # raw candidates, those inside the ball, and whether each is a success
            found: Any = attack(model, images.float(), labels, epsilons=self.eps)
            return cast(object, found[1])
        accepted = inspect.signature(attack).parameters
        ball = {name: value for name, value in (("eps", self.eps), ("norm", self.norm)) if name in accepted}
        return attack(network, images, labels, **ball)


class GivenAttack(CustomAttack):
    """An attack that Python hands over as an object."""

    given: Any = Field(exclude=True)

    @field_validator("kind")
    @classmethod
    def _named(cls, kind: str) -> str:
        return kind

    @computed_field  # type: ignore[prop-decorator]
    @property
    def code(self) -> str:
        """A digest of its source and its settings, as far as Python knows them."""
        kind = self.given if hasattr(self.given, "__code__") or inspect.isclass(self.given) else type(self.given)
        try:
            source = inspect.getsource(kind)
        except (OSError, TypeError):
            source = repr(getattr(getattr(kind, "__code__", None), "co_code", kind.__qualname__))
        settings = {name: repr(value) for name, value in sorted(getattr(self.given, "__dict__", {}).items())}
        # an address in memory is another one in each run
        told = {name: text for name, text in settings.items() if " at 0x" not in text}
        return sha256(f"{kind.__module__} {source} {told}".encode())

    def _made(self) -> Adversary:
        made: Adversary = self.given
        return made


def given_attack(name: str, given: object, fields: Mapping[str, object]) -> GivenAttack:
    """An object of Python as an attack, under a name; `fields`: its norm and radius. Raises CleansetError."""
    if not callable(given):
        raise CleansetError(
            f"attacks {name}: a value of type {type(given).__name__}; expected a callable of model, images and labels, "
            "or an attack of foolbox"
        )
    return GivenAttack.model_validate({"kind": name, "given": given, **fields})
