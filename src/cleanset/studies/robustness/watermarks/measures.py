"""Measures of every model on images with a watermark, with intervals: the gap of accuracy, and that of cartons.

Source: Li and others, "A Whac-A-Mole Dilemma" (CVPR 2023), and its program. A gap is the accuracy with the watermark
minus that without, so that a drop is below 0.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from cleanset.statistics.basics import Ints
from cleanset.statistics.bootstrap import Resamples
from cleanset.statistics.formats import counted
from cleanset.studies.robustness.answer_arrays import Chosen
from cleanset.studies.robustness.results import MIN_IMAGES, FamilyStudy
from cleanset.studies.robustness.sampled import Sampled, sampled_means, undefined
from cleanset.studies.robustness.sections import CLEAN, UNCHANGED
from cleanset.studies.robustness.watermarks.params import CARTON, WATERMARK

COMPARED = ("accuracy", "in_w_gap", "carton_gap", "to_carton")
"""The measures that models are compared by."""


@dataclass(frozen=True, eq=False)
class WatermarkStudy(FamilyStudy):
    """The answers of all models, of each the predicted class."""

    compared = COMPARED

    def tables(self) -> dict[str, pd.DataFrame]:
        """The correct predictions by class, without the watermark and with it."""
        return {"watermark_accuracies": by_class(self)}

    def measured(self, role: str, chosen: Chosen, resamples: Resamples) -> Iterator[Sampled]:
        """Accuracies and gaps of a model on the chosen images; those of cartons where the classes have one."""
        accuracies = {name: self._accuracy(role, name, chosen, resamples) for name in (CLEAN, UNCHANGED, WATERMARK)}
        for name in (CLEAN, UNCHANGED):
            yield accuracies[name].named(f"accuracy_{name}")
        yield accuracies[WATERMARK].named("accuracy")
        yield (accuracies[WATERMARK] - accuracies[UNCHANGED]).named("in_w_gap")
        carton = self.carton
        if carton is None:
            for measure in ("carton_gap", "to_carton"):
                yield undefined(measure, f"the classes have no carton ({CARTON})", resamples)
            return
        yield self._carton_gap(role, chosen & (self.images.class_indices == carton), resamples)
        yield self._to_carton(role, chosen, resamples, carton=carton)

    @property
    def carton(self) -> int | None:
        """The index of the class of cartons; None for classes without it."""
        return self.images.classes.indices.get(CARTON) if self.images.classes.is_imagenet else None

    def correct(self, role: str, name: str, chosen: Chosen) -> Ints:
        """1 for each of the chosen images that a model classifies correctly, 0 for the others."""
        predicted = self.answers[role][name][chosen, 0]
        found: Ints = np.equal(predicted, self.images.class_indices[chosen]).astype(np.int64)
        return found

    def _accuracy(self, role: str, name: str, chosen: Chosen, resamples: Resamples) -> Sampled:
        values = self.correct(role, name, chosen)[:, np.newaxis]
        # a name of its own: the pseudo-images of two accuracies would cancel in their difference
        return sampled_means(values, [name], resamples, answers=f"{role} {name}")[name]

    def _carton_gap(self, role: str, cartons: Chosen, resamples: Resamples) -> Sampled:
        """The gap on the images of cartons alone."""
        count = int(cartons.sum())
        if count < MIN_IMAGES:
            problem = f"{counted(count, 'image')} of carton; intervals need {MIN_IMAGES} or more"
            return undefined("carton_gap", problem, resamples)
        # images are drawn within classes, so that each resample has as many of this one
        of_cartons = self.images.resample(cartons)
        with_watermark = self._accuracy(role, WATERMARK, cartons, of_cartons)
        return (with_watermark - self._accuracy(role, UNCHANGED, cartons, of_cartons)).named("carton_gap")

    def _to_carton(self, role: str, chosen: Chosen, resamples: Resamples, carton: int) -> Sampled:
        """By how much the share of other images that are taken for a carton grows."""
        others = self.images.class_indices[chosen] != carton
        shares = []
        for name in (WATERMARK, UNCHANGED):
            taken = ((self.answers[role][name][chosen, 0] == carton) & others).astype(np.int64)[:, np.newaxis]
            shares.append(sampled_means(taken, [name], resamples, answers=f"{role} {name} carton")[name])
        # the mean is over all images: the share of the others alone
        scale = len(others) / max(int(others.sum()), 1)
        return (shares[0] - shares[1]).scaled(scale).named("to_carton")


def by_class(study: WatermarkStudy) -> pd.DataFrame:
    """The correctly classified images by model, change and class, of the first of the study's selections."""
    images = study.images
    parts = []
    for role in study.answers:
        chosen = images.of_first(role)
        for name in (UNCHANGED, WATERMARK):
            cells = pd.DataFrame(
                {"class_index": images.class_indices[chosen], "correct": study.correct(role, name, chosen)}
            )
            sums = cells.groupby("class_index")["correct"].agg(images="size", correct="sum").reset_index()
            parts.append(sums.assign(model=role, change=name))
    return pd.concat(parts, ignore_index=True)[["model", "change", "class_index", "images", "correct"]]
