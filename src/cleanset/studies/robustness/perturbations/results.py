"""Measures of every model on perturbation sequences, with intervals: flips and top-5 distances (ImageNet-P).

Formulas: D. Hendrycks and T. Dietterich (ICLR 2019), section 4.2. `fp` and `t5d` compare consecutive frames, as the
text has it (`as_written`); for noise, `fp_as_published` and `t5d_as_published` compare each frame with the first one,
as the benchmark's published code does.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd

from cleanset.statistics.bootstrap import Resamples
from cleanset.studies.robustness.perturbations.params import (
    NOISE_PERTURBATIONS,
    PERTURBATIONS,
    PerturbationMeasures,
    Perturbations,
    perturbations_of,
)
from cleanset.studies.robustness.results import (
    CLEAN,
    UNCHANGED,
    Chosen,
    Definition,
    FamilyStudy,
    Sampled,
    SampledMeasure,
    SeenAnswers,
    StudiedImages,
    cube,
    mean_of,
    over_all_images,
    ratio_to,
    sampled_means,
    shares,
    undefined_measure,
    undefined_names,
)
from cleanset.vocabulary import has_top5

Ints = npt.NDArray[np.int64]
LISTED = 5
"""Classes of a top-5 list."""
MAX_TOP5_DISTANCE = 18


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """The frames that are compared: positions from 0, the reference's beside the frame's, one pair each."""

    references: Ints
    frames: Ints

    def __len__(self) -> int:
        """The number of comparisons of a sequence."""
        return len(self.frames)


def pairs(perturbation: str, frames: int, definition: Definition = "as_written", difficulty: int = 1) -> Pairs:
    """The comparisons in a sequence of `frames` frames, at least two.

    Difficulty d compares frames that are d apart, from each of the first d frames on, as the published code does; the
    difficulty of noise is in the frames themselves and compares all of them.
    """
    noise = perturbation in NOISE_PERTURBATIONS
    step = 1 if noise else difficulty
    if noise and definition == "as_published":
        return Pairs(np.zeros(frames - 1, np.int64), np.arange(1, frames))
    # the runs from frames 0, 1, ..., d - 1 on, each d apart, together compare every frame with the one d before
    return Pairs(np.arange(frames - step), np.arange(step, frames))


def flips(top1: Ints, compared: Pairs) -> Ints:
    """The comparisons in which the prediction differs, by image; `top1` has the shape images x frames."""
    by_image: Ints = _flipped(top1, compared).sum(axis=1, dtype=np.int64)
    return by_image


def flips_by_pair(top1: Ints, compared: Pairs) -> Ints:
    """The images whose prediction differs, by comparison, in the order of `compared.frames`."""
    by_pair: Ints = _flipped(top1, compared).sum(axis=0, dtype=np.int64)
    return by_pair


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
    for reference, frame in zip(compared.references, compared.frames, strict=True):
        total += top5_distance(top5[:, reference], top5[:, frame])
    return total


def _flipped(top1: Ints, compared: Pairs) -> npt.NDArray[np.bool_]:
    """Whether the predictions of each comparison differ, images x comparisons."""
    return np.not_equal(top1[:, compared.references], top1[:, compared.frames])


KINDS = ("fp", "t5d")

Top5 = npt.NDArray[np.int64]
"""The five most probable classes, best first: images x frames x 5."""

COMPARED = (
    "fp", "fp_as_published", "mean_fp", "mean_fp_as_published", "mfr", "mfr_as_published",
    "t5d", "t5d_as_published", "mean_t5d", "mean_t5d_as_published", "mt5d", "mt5d_as_published",
    "mean_fp_measured", "mean_t5d_measured",
)  # fmt: skip
"""The measures that models are compared by."""

SUFFIXES: dict[Definition, str] = {"as_written": "", "as_published": "_as_published"}


@dataclass(frozen=True, eq=False)
class PerturbationStudy(FamilyStudy):
    """The answers of all models, and how their frames are compared.

    `answers`: by role and perturbation. `difficulty`: the step between compared frames, except for noise.
    `reference`: the role that FR and mT5D are relative to; None: neither is measured.
    """

    compared = COMPARED
    perturbations: Sequence[str]
    answers: Mapping[str, Mapping[str, Top5]]
    difficulty: int
    reference: str | None

    def tables(self) -> dict[str, pd.DataFrame]:
        """The flips by frame."""
        frames = by_frame(self)
        as_written = frames[frames["definition"] == "as_written"]
        return {"perturbation_frames": frames, "flips_by_frame": shares(as_written, "frame", "flips", "flips")}

    @property
    def has_all(self) -> bool:
        """Whether all ten test perturbations were measured; the means need them."""
        return set(PERTURBATIONS) <= set(self.perturbations)

    def pairs(self, name: str, definition: Definition) -> Pairs:
        """The frames of a perturbation that are compared."""
        first = next(iter(self.answers.values()))
        return pairs(name, first[name].shape[1], definition, self.difficulty)

    def measured(self, role: str, chosen: Chosen, resamples: Resamples) -> Iterator[SampledMeasure]:
        """FP and T5D of a model on the chosen images by both definitions and, with a reference, their ratios to it."""
        if lacking := [name for name in PERTURBATIONS if name not in self.perturbations]:
            problem = f"no mean FP: {len(lacking)} of its 10 perturbations were not measured: {', '.join(lacking)}"
            yield undefined_measure("mean_fp", "", problem, resamples)
        for definition in DEFINITIONS_IN_ORDER:
            for kind in KINDS if has_top5() else KINDS[:1]:
                means = self._means(role, kind, definition, chosen, resamples)
                for name in self.perturbations:
                    if definition == "as_written" or name in NOISE_PERTURBATIONS:
                        yield SampledMeasure(kind + SUFFIXES[definition], name, means[name])
                if self.has_all:
                    yield SampledMeasure(f"mean_{kind}{SUFFIXES[definition]}", "", mean_of(means, PERTURBATIONS))
                elif definition == "as_written":
                    yield SampledMeasure(f"mean_{kind}_measured", "", mean_of(means, self.perturbations))
                if self.reference is not None:
                    yield from self._ratios(role, kind, definition, means, chosen, resamples)

    def _ratios(
        self,
        role: str,
        kind: str,
        definition: Definition,
        means: Mapping[str, Sampled],
        chosen: Chosen,
        resamples: Resamples,
    ) -> Iterator[SampledMeasure]:
        """FR by perturbation and, of all ten, mFR; or of T5D the mean of its ratios, mT5D."""
        others = self._means(str(self.reference), kind, definition, chosen, resamples)
        images = int(chosen.sum())
        ratios = {
            name: ratio_to(others[name], means[name], images * len(self.pairs(name, definition)))
            for name in self.perturbations
        }
        if kind == "fp":
            for name in self.perturbations:
                if definition == "as_written" or name in NOISE_PERTURBATIONS:
                    problem = "the reference's predictions flip too rarely" if undefined_names(ratios, [name]) else ""
                    yield SampledMeasure("fr" + SUFFIXES[definition], name, ratios[name], problem)
        if not self.has_all:
            return
        problem, measure = "", {"fp": "mfr", "t5d": "mt5d"}[kind] + SUFFIXES[definition]
        if lacking := undefined_names(ratios, PERTURBATIONS):
            problem = f"{len(lacking)} of {len(PERTURBATIONS)} perturbations have no ratio: {', '.join(lacking)}"
        yield SampledMeasure(measure, "", mean_of(ratios, PERTURBATIONS), problem)

    def _means(
        self, role: str, kind: str, definition: Definition, chosen: Chosen, resamples: Resamples
    ) -> dict[str, Sampled]:
        """FP or T5D by perturbation."""
        counts = self._counts[role, kind, definition][chosen]
        largest = [
            len(self.pairs(name, definition)) * (MAX_TOP5_DISTANCE if kind == "t5d" else 1)
            for name in self.perturbations
        ]
        found = sampled_means(counts, self.perturbations, resamples, role, largest)
        return {name: each.scaled(1 / len(self.pairs(name, definition))) for name, each in found.items()}

    @cached_property
    def _counts(self) -> dict[tuple[str, str, Definition], Ints]:
        """Flips, or sums of T5D, of each image: images x perturbations."""
        found: dict[tuple[str, str, Definition], Ints] = {}
        for role, answers in self.answers.items():
            for definition in DEFINITIONS_IN_ORDER:
                for kind in KINDS:
                    # the definitions differ for noise alone
                    columns = [
                        found[role, kind, "as_written"][:, place]
                        if definition != "as_written" and name not in NOISE_PERTURBATIONS
                        else _counted(kind, answers[name], self.pairs(name, definition))
                        for place, name in enumerate(self.perturbations)
                    ]
                    found[role, kind, definition] = np.stack(columns, axis=1)
        return found


def _counted(kind: str, top5: Top5, compared: Pairs) -> Ints:
    """Flips, or the sum of T5D, of each image."""
    return flips(top5[..., 0], compared) if kind == "fp" else top5_distances(top5, compared)


# as_written first: the counts as_published are taken from it, except for noise
DEFINITIONS_IN_ORDER: tuple[Definition, ...] = ("as_written", "as_published")


def read_study(
    wanted: Perturbations, measures: PerturbationMeasures, answers: SeenAnswers, images: StudiedImages
) -> PerturbationStudy:
    """The perturbations of the params, with the answers to them."""
    frames = wanted.frame_counts()
    found = {
        name: read_answers(seen_images, predictions, frames, seen) for name, seen, seen_images, predictions in answers
    }
    return PerturbationStudy(images, perturbations_of(wanted.names), found, wanted.difficulty, measures.reference)


def read_answers(
    images: pd.DataFrame, predictions: pd.DataFrame, frames: Mapping[str, int], seen: Chosen
) -> dict[str, Top5]:
    """The answers of a model by perturbation, from rows of STUDY_IMAGES that it saw and of PREDICTIONS.

    `frames`: how many frames each perturbation has; `seen`: which of all images it saw. Raises CleansetError if a row
    is missing, there twice, or of another image.
    """
    rows = predictions[~predictions["change"].isin([CLEAN, UNCHANGED])]
    files = images["file"].tolist()
    found = {}
    for name, count in frames.items():
        of_name = rows[rows["change"] == name]
        places = of_name[["file", "frame"]].assign(row=np.arange(len(of_name)))
        # of row numbers, not of the lists of classes: an array of lists would be of objects
        order = cube(places, {"file": files, "frame": range(count)}, "row", f"predictions of {name}")
        classes = np.array(of_name["top5_class"].tolist(), np.int64).reshape(-1, 5)
        found[name] = over_all_images(classes[order], seen)
    return found


def by_frame(study: PerturbationStudy) -> pd.DataFrame:
    """The images whose prediction flips, by model, perturbation and frame, of the first of the study's selections."""
    images = study.images
    rows = []
    for role, answers in study.answers.items():
        chosen = images.of_first(role)
        for name in study.perturbations:
            for definition in DEFINITIONS_IN_ORDER:
                if definition == "as_published" and name not in NOISE_PERTURBATIONS:
                    continue
                compared = study.pairs(name, definition)
                flipped = flips_by_pair(answers[name][chosen][..., 0], compared)
                for frame, count in zip(compared.frames.tolist(), flipped.tolist(), strict=True):
                    rows.append((role, name, definition, frame, int(chosen.sum()), count))
    return pd.DataFrame(rows, columns=["model", "change", "definition", "frame", "images", "flips"])
