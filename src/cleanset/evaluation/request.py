"""The one record of what is asked of an evaluation: images, models, and params that say what is measured.

A command makes it of its arguments, a project of its files; stages, commands and plans are verbs on it.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from cleanset.classes import ClassTable
from cleanset.edition.params import Engine, Score
from cleanset.evaluation.sets import EvaluationSet
from cleanset.evaluation.specs import Spec, file_stems

Asked = TypeVar("Asked")


@dataclass(frozen=True, eq=False, kw_only=True)
class Request(Generic[Asked]):
    """Models to be measured on images; names are checked, no model is loaded."""

    stems: Mapping[str, str]
    """The stem of a model's files, by the name of each model that is measured."""
    specs: Mapping[str, Spec]
    """The models that have a network, by name."""
    score: Score
    """How they are run."""
    classes: ClassTable
    """The class table of the images."""
    open_images: Callable[[], EvaluationSet]
    """Opens the images, of a study as stage images found them."""
    params: Asked
    """What is measured, and how; None: accuracy on the images themselves."""
    out: Path
    """The folder of the results; an earlier run's are reused."""
    is_kept: bool = True
    """Whether results are written."""
    hub: Path | None = None
    """File or folder for model cards."""
    folder: Path = Path()
    """The folder that paths in the params are relative to."""
    others: Sequence[Spec] = ()
    """The models that changed images may be made on."""
    engine: Engine = "local"
    """What computes answers, digests and attacks."""
    stored: Collection[str] = ()
    """The models whose scores the edition stores: answers to clean images are compared with them."""
    is_study: bool = False
    """Whether a project asks, whose results DVC pins; else a command, whose records say what they were made from."""

    @cached_property
    def images(self) -> EvaluationSet:
        """The images, opened once."""
        return self.open_images()

    @classmethod
    def of_command(cls, specs: Sequence[Spec], images: EvaluationSet, **fields: Any) -> Self:
        """The request of a command, whose models are kept under stems of their names; `fields`: all others."""
        names = [spec.text for spec in specs]
        return cls(
            stems=dict(zip(names, file_stems(names), strict=True)),
            specs=dict(zip(names, specs, strict=True)),
            classes=images.classes,
            open_images=partial(given, images),
            **fields,
        )


def given(images: EvaluationSet) -> EvaluationSet:
    """Images that are open already."""
    # a partial function can be pickled, as worker processes need it
    return images
