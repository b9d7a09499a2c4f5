"""Measures of every model on perturbation sequences, with intervals: flips and top-5 distances (ImageNet-P).

Formulas: D. Hendrycks and T. Dietterich (ICLR 2019), section 4.2. `fp` and `t5d` compare consecutive frames, and each
frame of noise with the first one, as the paper's text and its published code do (`as_written`). Summaries of it have
the formula of consecutive frames alone: for noise, `fp_consecutive` and `t5d_consecutive` follow it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import pandas as pd

from cleanset.statistics.basics import Ints
from cleanset.statistics.bootstrap import Resamples
from cleanset.studies.robustness.answer_arrays import Chosen
from cleanset.studies.robustness.perturbations.params import (
    NOISE_PERTURBATIONS,
    PERTURBATIONS,
    PerturbationMeasures,
    Perturbations,
)
from cleanset.studies.robustness.results import FamilyStudy, shares
from cleanset.studies.robustness.sampled import Sampled, mean_of, ratio_to, sampled_means, undefined, undefined_names

LISTED = 5
"""Classes of a top-5 list."""
MAX_TOP5_DISTANCE = 18


PerturbationDefinition = Literal["as_written", "consecutive"]
"""The paper's definition, and the one that summaries of it have for noise, too."""

Pairs = tuple[Ints, Ints]
"""The frames that are compared: positions from 0, the references' and the frames', one of each a comparison."""


def pairs(
    perturbation: str, frames: int, definition: PerturbationDefinition = "as_written", difficulty: int = 1
) -> Pairs:
    """The comparisons in a sequence of `frames` frames, at least two.

    Difficulty d compares frames that are d apart, beginning with each of the first d frames, as the published code
    does; the difficulty of noise is in the frames themselves and compares all of them.
    """
    noise = perturbation in NOISE_PERTURBATIONS
    step = 1 if noise else difficulty
    if noise and definition == "as_written":
        return np.zeros(frames - 1, np.int64), np.arange(1, frames)
    # the runs that begin with frames 0, 1, ..., d - 1, each d apart, compare every frame with the one d before
    return np.arange(frames - step), np.arange(step, frames)


def flips(top1: Ints, compared: Pairs, axis: int) -> Ints:
    """The number of comparisons with differing predictions, by image over axis 1, by comparison over axis 0.

    `top1` has the shape images x frames.
    """
    references, frames = compared
    found: Ints = np.not_equal(top1[:, references], top1[:, frames]).sum(axis=axis, dtype=np.int64)
    return found


def top5_distance(reference: Ints, other: Ints) -> Ints:
    """T5D of two lists of five classes, best first, on the last axis; 0 to 18, not symmetric.

    The definition sums, over the reference's five classes, the distance between ranks i and s of the two lists, where
    ranks beyond 5 count as 6; so no further ranks are needed.
    """
    same = reference[..., :, np.newaxis] == other[..., np.newaxis, :]
    # ranks from 0, so LISTED stands for the sixth, which all further classes share
    ranks = np.where(same.any(axis=-1), same.argmax(axis=-1), LISTED)
    distance: Ints = np.abs(ranks - np.arange(LISTED)).sum(axis=-1, dtype=np.int64)
    return distance


def top5_distances(top5: Ints, compared: Pairs) -> Ints:
    """The sum of T5D over the comparisons, by image; `top5` has the shape images x frames x 5, best first."""
    total = np.zeros(len(top5), np.int64)
    # one comparison at a time: all at once would need 25 values for each
    for reference, frame in zip(*compared, strict=True):
        total += top5_distance(top5[:, reference], top5[:, frame])
    return total


KINDS = ("fp", "t5d")

Top5 = Ints
"""The five most probable classes, best first: images x frames x 5."""

COMPARED = (
    "fp", "fp_consecutive", "mean_fp", "mean_fp_consecutive", "mfr", "mfr_consecutive",
    "t5d", "t5d_consecutive", "mean_t5d", "mean_t5d_consecutive", "mt5d", "mt5d_consecutive",
    "mean_fp_measured", "mean_t5d_measured",
)  # fmt: skip
"""The measures that models are compared by."""

DEFINITION_SUFFIXES: dict[PerturbationDefinition, str] = {"as_written": "", "consecutive": "_consecutive"}


def _definitions_of(perturbation: str) -> list[PerturbationDefinition]:
    """The definitions that compare other frames of a perturbation; they differ for noise alone."""
    return [*DEFINITION_SUFFIXES] if perturbation in NOISE_PERTURBATIONS else ["as_written"]


@dataclass(frozen=True, eq=False)
class PerturbationStudy(FamilyStudy):
    """The answers of all models, of each the five most probable classes, best first; FR and mT5D need a reference."""

    compared = COMPARED
    wanted: Perturbations
    measures: PerturbationMeasures

    def tables(self) -> dict[str, pd.DataFrame]:
        """The flips by frame."""
        frames = by_frame(self)
        as_written = frames[frames["definition"] == "as_written"]
        return {"perturbation_frames": frames, "flips_by_frame": shares(as_written, "frame", "flips", "flips")}

    @property
    def has_all(self) -> bool:
        """Whether all ten test perturbations were measured; the means need them."""
        return set(PERTURBATIONS) <= set(self.wanted.names)

    def pairs(self, name: str, definition: PerturbationDefinition) -> Pairs:
        """The frames of a perturbation that are compared."""
        first = next(iter(self.answers.values()))
        return pairs(name, first[name].shape[1], definition, self.wanted.difficulty)

    def measured(self, role: str, chosen: Chosen, resamples: Resamples) -> Iterator[Sampled]:
        """FP and T5D of a model on the chosen images by both definitions and, with a reference, their ratios to it."""
        names = self.wanted.names
        if lacking := [name for name in PERTURBATIONS if name not in names]:
            problem = f"no mean FP: {len(lacking)} of its 10 perturbations were not measured: {', '.join(lacking)}"
            yield undefined("mean_fp", problem, resamples)
        for definition, suffix in DEFINITION_SUFFIXES.items():
            for kind in KINDS if self.images.classes.has_top5 else KINDS[:1]:
                means = self._means(role, kind, definition, chosen=chosen, resamples=resamples)
                for name in names:
                    if definition in _definitions_of(name):
                        yield means[name].named(kind + suffix, name)
                if self.has_all:
                    yield mean_of(means, PERTURBATIONS).named(f"mean_{kind}{suffix}")
                elif definition == "as_written":
                    yield mean_of(means, names).named(f"mean_{kind}_measured")
                if self.measures.reference is not None:
                    yield from self._ratios(role, kind, definition, means=means, chosen=chosen, resamples=resamples)

    def _ratios(
        self,
        role: str,
        kind: str,
        definition: PerturbationDefinition,
        means: Mapping[str, Sampled],
        chosen: Chosen,
        resamples: Resamples,
    ) -> Iterator[Sampled]:
        """FR by perturbation and, of all ten, mFR; or of T5D the mean of its ratios, mT5D."""
        others = self._means(str(self.measures.reference), kind, definition, chosen=chosen, resamples=resamples)
        images = int(chosen.sum())
        ratios = {
            name: ratio_to(others[name], means[name], images * self._comparisons(name, definition))
            for name in self.wanted.names
        }
        if kind == "fp":
            for name in self.wanted.names:
                if definition in _definitions_of(name):
                    problem = "the reference's predictions flip too rarely" if undefined_names(ratios, [name]) else ""
                    yield ratios[name].named("fr" + DEFINITION_SUFFIXES[definition], name, problem)
        if not self.has_all:
            return
        problem = ""
        measure = {"fp": "mfr", "t5d": "mt5d"}[kind] + DEFINITION_SUFFIXES[definition]
        if lacking := undefined_names(ratios, PERTURBATIONS):
            problem = f"{len(lacking)} of {len(PERTURBATIONS)} perturbations have no ratio: {', '.join(lacking)}"
        yield mean_of(ratios, PERTURBATIONS).named(measure, problem=problem)

    def _means(
        self, role: str, kind: str, definition: PerturbationDefinition, chosen: Chosen, resamples: Resamples
    ) -> dict[str, Sampled]:
        """FP or T5D by perturbation."""
        names = self.wanted.names
        # consecutive frames of all but noise are compared as written
        used: list[PerturbationDefinition] = [
            definition if definition in _definitions_of(name) else "as_written" for name in names
        ]
        columns = [self._counts[role, kind, name, each][chosen] for name, each in zip(names, used, strict=True)]
        comparisons = [self._comparisons(name, definition) for name in names]
        largest = [count * (MAX_TOP5_DISTANCE if kind == "t5d" else 1) for count in comparisons]
        found = sampled_means(np.stack(columns, axis=1), names, resamples, answers=role, largest=largest)
        return {name: found[name].scaled(1 / count) for name, count in zip(names, comparisons, strict=True)}

    def _comparisons(self, name: str, definition: PerturbationDefinition) -> int:
        return len(self.pairs(name, definition)[0])

    @cached_property
    def _counts(self) -> dict[tuple[str, str, str, PerturbationDefinition], Ints]:
        """Flips, or sums of T5D, of each image, by model, kind, perturbation and definition."""
        return {
            (role, kind, name, definition): _counted(kind, answers[name], self.pairs(name, definition))
            for role, answers in self.answers.items()
            for kind in KINDS
            for name in self.wanted.names
            for definition in _definitions_of(name)
        }


def _counted(kind: str, top5: Top5, compared: Pairs) -> Ints:
    """Flips, or the sum of T5D, of each image."""
    return flips(top5[..., 0], compared, axis=1) if kind == "fp" else top5_distances(top5, compared)


def by_frame(study: PerturbationStudy) -> pd.DataFrame:
    """The images whose prediction flips, by model, perturbation and frame, of the first of the study's selections."""
    rows = []
    for role, answers in study.answers.items():
        chosen = study.images.of_first(role)
        for name in study.wanted.names:
            for definition in _definitions_of(name):
                compared = study.pairs(name, definition)
                flipped = flips(answers[name][chosen][..., 0], compared, axis=0)
                for frame, count in zip(compared[1].tolist(), flipped.tolist(), strict=True):
                    rows.append((role, name, definition, frame, int(chosen.sum()), count))
    return pd.DataFrame(rows, columns=["model", "change", "definition", "frame", "images", "flips"])
