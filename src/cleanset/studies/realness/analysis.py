"""The analysis of a study's ratings, and its result as tables."""

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cleanset.review import look_again
from cleanset.studies.realness.described import (
    MIN_RATINGS,
    Agreements,
    ImageRatings,
    Summary,
    agreements,
    by_image,
    summary,
    taken_for_modified,
)
from cleanset.studies.realness.equivalence import ALPHA, BOUND, Equivalence, equivalence
from cleanset.studies.realness.exclusions import ALLOWED, Exclusions, exclusions, without
from cleanset.studies.realness.mixed import Degrees, Fit, Random, fit
from cleanset.studies.realness.ratings import KINDS, Answers, Kind, Stimulus


@dataclass(frozen=True, slots=True)
class Settings:
    """How ratings are analysed."""

    random: Random = "slopes"
    degrees: Degrees = "satterthwaite"
    bound: float = BOUND
    alpha: float = ALPHA
    min_ratings: int = MIN_RATINGS
    attention: int = ALLOWED["attention"]
    comprehension: int = ALLOWED["comprehension"]


@dataclass(frozen=True, slots=True)
class Analysis:
    """What the ratings show; `exclusions` are already applied to everything else."""

    settings: Settings
    exclusions: Exclusions
    people: int
    summaries: Mapping[Kind, Summary]
    agreements: Mapping[Kind, Agreements]
    images: tuple[ImageRatings, ...]
    fit: Fit
    equivalence: Equivalence

    @property
    def enough(self) -> int:
        """How many real images have enough ratings."""
        return sum(each.kind == "real" and each.ratings >= self.settings.min_ratings for each in self.images)

    @property
    def taken_for_modified(self) -> list[ImageRatings]:
        """The real images of enough ratings that most people take for modified."""
        return taken_for_modified(self.images, self.settings.min_ratings)


def analyse(answers: Answers, settings: Settings) -> Analysis:
    """Analyse all answers. Raises CleansetError where no model can be fitted to what the exclusions leave."""
    excluded = exclusions(answers, {"attention": settings.attention, "comprehension": settings.comprehension})
    ratings = without(answers, excluded.people).ratings
    of_kind = {kind: [each for each in ratings if each.kind == kind] for kind in KINDS}
    model = fit(
        [each.rating for each in ratings],
        [each.person for each in ratings],
        [each.image for each in ratings],
        [each.kind == "modified" for each in ratings],
        settings.random,
        settings.degrees,
    )
    return Analysis(
        settings,
        excluded,
        model.people,
        {kind: summary(each.rating for each in of_kind[kind]) for kind in KINDS},
        {kind: agreements(of_kind[kind]) for kind in KINDS},
        tuple(by_image(ratings)),
        model,
        equivalence(model.modified, settings.bound, settings.alpha),
    )


def images_csv(images: Iterable[ImageRatings], key: Iterable[Stimulus] = ()) -> str:
    """Images with their share of negative ratings and its interval; `key` has the wnids, where there is a plan."""
    wnids = {(each.kind, each.image): each.wnid for each in key}
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(look_again.COLUMNS)
    for each in images:
        numbers = (each.share, *each.interval, each.mean)
        counted = (each.kind, each.image, wnids.get((each.kind, each.image), ""), each.ratings, each.negative)
        writer.writerow((*counted, *(f"{number:.4f}" for number in numbers)))
    return out.getvalue()
