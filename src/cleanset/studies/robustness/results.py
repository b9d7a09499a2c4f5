"""Measures of every model on selections of the images, and differences between models, from answers as arrays."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from cleanset.classes import ClassTable
from cleanset.evaluation.measures import NAN, Difference, Measure, columns_of, corrected
from cleanset.statistics.basics import LEVEL, Ints
from cleanset.statistics.bootstrap import Bootstrap, Resamples
from cleanset.statistics.formats import counted, rounded
from cleanset.statistics.groups import Units, unit_sign_test_p
from cleanset.studies.robustness.answer_arrays import Answers, Chosen
from cleanset.studies.robustness.sampled import Sampled

Definition = Literal["as_written", "as_published"]
DEFINITIONS: tuple[Definition, ...] = ("as_published", "as_written")
"""The formula behind the published code or numbers, and the text's."""


SELECTIONS = ("union", "own", "common")
"""The images of all sets, of the model's own set, and those that are in every set."""
ALL = "all"
"""The selection of an image folder that belongs to no edition; it replaces SELECTIONS."""
MIN_IMAGES = 2
"""Minimum number of images; an interval cannot be computed from one."""


LINE_COLUMNS = columns_of(
    "selection", "model", "measure", "change", "images", "value", "low", "high", "problem"
)  # fmt: skip
"""The columns of a family's CSV file of measures."""
DIFFERENCE_COLUMNS = columns_of(
    "selection", "measure", "change", "model", "other", "value", "low", "high", "p", "p_holm"
)  # fmt: skip
"""The columns of a family's CSV file of differences. p is of the exact sign test over the images, or their groups:
without a value for Score, which is not a mean over them, and against the model that chose all of them. p_holm is
corrected for all differences of the measure on the selection."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StudiedImages:
    """The images that a family is measured on, and how models are compared on them."""

    class_indices: Ints
    """The class index of each image."""
    sets: Sequence[Sequence[str]]
    """The roles whose sets contain each image."""
    classes: ClassTable
    """The class table of the images."""
    roles: Sequence[str]
    """The measured models."""
    bootstrap: Bootstrap
    """How images are resampled: the same for all models."""
    selections: Sequence[str] = SELECTIONS
    """Some of SELECTIONS, whose images every model has seen that is measured on them; or ALL."""
    owners: Sequence[str] | None = None
    """The roles that have sets; None: all models."""
    chosen_by: str | None = None
    """The model among whose correctly classified images all were chosen, against which nothing is tested; or None."""
    of_classes: Mapping[str, Chosen] = field(default_factory=dict)
    """Flags of the images of the classes that a model has, by role; the other models have all classes."""
    origins: npt.NDArray[np.object_] | None = None
    """The origin of each image's mask; None without masks."""
    is_whole: bool = False
    """Whether all models have seen all images."""
    units: Units | None = None
    """The groups of the images; None if no two share one."""

    def units_of(self, chosen: Chosen) -> Units | None:
        """The groups of the chosen images."""
        return None if self.units is None else self.units.only(chosen)

    def count(self, chosen: Chosen) -> int:
        """The number of chosen images, or of their groups."""
        units = self.units_of(chosen)
        return int(chosen.sum()) if units is None else units.count

    def resample(self, chosen: Chosen) -> Resamples:
        """The resamples of the chosen images, which are the same for all models."""
        return self.bootstrap.resample(self.class_indices[chosen], self.units_of(chosen))

    def selected(self, selection: str, role: str) -> Chosen:
        """Flags of the images that a selection has for a role."""
        wanted = {"union": set[str](), ALL: set[str](), "own": {role}, "common": set(self.with_sets)}[selection]
        found = np.array([wanted <= set(sets) for sets in self.sets], np.bool_)
        return found & self.of_classes[role] if role in self.of_classes else found

    def of_first(self, role: str) -> Chosen:
        """Flags of the images that the first selection has for a role; details are of these."""
        return self.selected(self.selections[0], role)

    @property
    def with_sets(self) -> Sequence[str]:
        """The roles that have sets."""
        return self.roles if self.owners is None else self.owners


@dataclass(frozen=True, eq=False)
class FamilyStudy(ABC):
    """The answers of all models to a family, by model. `compared`: the measures of differences."""

    images: StudiedImages
    answers: Mapping[str, Answers]
    compared: ClassVar[Sequence[str]]

    @abstractmethod
    def measured(self, role: str, chosen: Chosen, resamples: Resamples) -> Iterator[Sampled]:
        """Every measure of a model on the chosen images, named."""

    @abstractmethod
    def tables(self) -> dict[str, pd.DataFrame]:
        """Details by severity, frame or class, by the stem of their CSV file."""

    def lines(self) -> Iterator[Measure]:
        """Yield every measure of every model on every selection; NaN and the reason below MIN_IMAGES images.

        Nothing is yielded if all selections are too small, or for the own set of a model without one.
        """
        chosen = {
            (selection, role): self.images.selected(selection, role)
            for selection in self.images.selections
            for role in self.images.roles
            if selection != "own" or role in self.images.with_sets
        }
        found = {
            key: list(self._measured(*key, images))
            for key, images in chosen.items()
            if self.images.count(images) >= MIN_IMAGES
        }
        # a selection that is too small gets the rows of the others, without values
        names = dict.fromkeys((line.measure, line.change) for lines in found.values() for line in lines)
        for key, images in chosen.items():
            yield from found[key] if key in found else self._too_few(*key, images, names)

    def _too_few(
        self, selection: str, role: str, chosen: Chosen, names: Iterable[tuple[str, str]]
    ) -> Iterator[Measure]:
        """The measures of a model whose selection has too few images or groups, by name and change."""
        count = self.images.count(chosen)
        what = "image" if self.images.units_of(chosen) is None else "group"
        problem = f"{counted(count, what)}; intervals need {MIN_IMAGES} or more"
        images = int(chosen.sum())
        for measure, change in names:
            yield Measure(
                selection=selection, model=role, measure=measure, change=change, images=images, problem=problem
            )

    def _measured(self, selection: str, role: str, chosen: Chosen) -> Iterator[Measure]:
        """Every measure of a model on a selection, whose images are `chosen`."""
        resamples = self.images.resample(chosen)
        for each in self.measured(role, chosen, resamples):
            yield Measure.of(
                each.value,
                each.interval(resamples.level) if np.isfinite(each.value) else None,
                selection=selection,
                model=role,
                measure=each.measure,
                change=each.change,
                images=int(chosen.sum()),
                problem=each.problem,
            )

    def differences(self) -> Iterator[Difference]:
        """Yield the paired differences between every two models, of the measures `compared`, on images of both."""

        @cache
        def found(role: str, flags: bytes) -> dict[tuple[str, str], Sampled]:
            chosen = np.frombuffer(flags, np.bool_)
            return {
                (each.measure, each.change): each
                for each in self.measured(role, chosen, self.images.resample(chosen))
                if each.measure in self.compared and np.isfinite(each.value)
            }

        for selection in self.images.selections:
            # own: other images for each model
            if selection == "own":
                continue
            # the samples of a model are large
            found.cache_clear()
            lines: list[Difference] = []
            for one, other in combinations(self.images.roles, 2):
                both = self.images.selected(selection, one) & self.images.selected(selection, other)
                if self.images.count(both) < MIN_IMAGES:
                    continue
                units = self.images.units_of(both)
                level = LEVEL if units is None else self.images.resample(both).level
                left = found(one, both.tobytes())
                right = found(other, both.tobytes())
                common = [key for key in left if key in right]
                is_tested = self.images.chosen_by not in (one, other)
                for key in common:
                    each = left[key] - right[key]
                    measure, change = key
                    difference = Difference.of(
                        each.value,
                        each.interval(level),
                        selection=selection,
                        measure=measure,
                        change=change,
                        model=one,
                        other=other,
                        p=unit_sign_test_p(each.by_image, units) if is_tested and each.by_image is not None else NAN,
                    )
                    lines.append(difference)
            yield from corrected(lines, lambda each: each.measure)


def shares(cells: pd.DataFrame, step: str, counted: str, name: str) -> pd.DataFrame:
    """The share of counted images by model, change and step, 0 to 1, for `dvc plots`."""
    sums = cells.groupby(["model", "change", step], sort=False)[["images", counted]].sum().reset_index()
    found = [rounded(share, 6) for share in (sums[counted] / sums["images"]).tolist()]
    return sums[["model", "change", step]].assign(**{name: found})


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table, with None for a missing value."""
    rows = table.astype(object).where(table.notna(), None).to_dict("records")
    return [{str(key): value for key, value in row.items()} for row in rows]


def percentages(table: pd.DataFrame, keys: list[str], counted: str) -> dict[tuple[Any, ...], float]:
    """A count's share of the images in percent, by the keys."""
    sums = table.groupby(keys, sort=False)[[counted, "images"]].sum().reset_index()
    named = zip(*(sums[key].tolist() for key in keys), strict=True)
    return dict(zip(named, (100 * sums[counted] / sums["images"]).tolist(), strict=True))
