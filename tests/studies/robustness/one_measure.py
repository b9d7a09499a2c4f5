"""A study of one measure of any images, for tests of what every family has."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pandas as pd

from cleanset.statistics.bootstrap import Resamples
from cleanset.studies.robustness.answer_arrays import Chosen
from cleanset.studies.robustness.results import FamilyStudy
from cleanset.studies.robustness.sampled import Sampled


@dataclass(frozen=True, eq=False)
class OneMeasure(FamilyStudy):
    """`of`: yields the measure of a role on the chosen images, from their resamples."""

    compared = ("accuracy",)
    of: Callable[[str, Chosen, Resamples], Iterator[Sampled]]

    def measured(self, role: str, chosen: Chosen, resamples: Resamples) -> Iterator[Sampled]:
        return self.of(role, chosen, resamples)

    def tables(self) -> dict[str, pd.DataFrame]:
        return {}
