"""The keys of a study's `params.yaml` that all families share; each family adds its own sections."""

from collections.abc import Iterable
from typing import Annotated, Literal, TypeVar

from pydantic import Field

from cleanset.dataset.ilsvrc import class_indices
from cleanset.sections import Role, Section
from cleanset.studies.robustness.further import FurtherModel, TrainedModel

AnySection = TypeVar("AnySection", bound=Section)


class MaskFolder(Section):
    """Masks of objects, one file an image named by its id: a folder inside `masks`, its format, and who made them."""

    folder: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    format: str = "png"
    origin: Literal["person", "generator", "model"]


class BootstrapParams(Section):
    """The bootstrap of 95 % intervals: images are drawn within classes, `draws` times."""

    draws: Annotated[int, Field(ge=1, le=1_000_000)] = 1000


class CommonParams(Section):
    """All of a study's params.yaml.

    `images`: every model gets the images of all sets (union), or those of its own set only (own). `jpeg`: the quality
    at which a changed image is stored before a model sees it, as the benchmark's images were; None leaves that out.
    `further_models`: models that are measured beside those of the edition, whose folder `weights` are relative to; or
    `module:callable`, a model of one's own, whose module is looked for beside this file first.
    `measures` has a section for each family, too: a change there recomputes no image and no prediction.
    """

    images: Literal["union", "own"] = "union"
    jpeg: Annotated[int, Field(ge=1, le=100)] | None = 85
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0
    masks: Annotated[list[MaskFolder], Field(default_factory=list)]
    measures: Section = Section()
    bootstrap: BootstrapParams = BootstrapParams()
    further_models: Annotated[dict[Role, FurtherModel], Field(default_factory=dict)]

    def section(self, kind: type[AnySection]) -> AnySection:
        """The section of that class: a family's own one, or its one in `measures`."""
        # no two sections are of one class, so a family needs to know neither its key nor where the section lies
        sections = [*dict(self).values(), *dict(self.measures).values()]
        return next(section for section in sections if isinstance(section, kind))

    def classes_of(self, role: str) -> frozenset[int] | None:
        """The class indices that a further model has; None for a model of all 1,000."""
        entry = self.further_models.get(role)
        wnids = entry.classes if isinstance(entry, TrainedModel) else None
        return None if wnids is None else frozenset(class_indices()[wnid] for wnid in wnids)

    def models(self, roles: Iterable[str]) -> list[str]:
        """The models that are measured: those of the edition, then the further ones."""
        return [*roles, *self.further_models]
