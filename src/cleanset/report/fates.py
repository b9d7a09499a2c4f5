"""The fate of each candidate, for each model that had it: a place in the set, or the reason for its rejection."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from cleanset.images.boxes import Box, box_of
from cleanset.report.figures import LEFT_OVER, CandidateKey, ClassState
from cleanset.review.store import Votes, basis_of
from cleanset.review.verdicts import Review
from cleanset.selection.fill import Filled
from cleanset.vocabulary import BASES


@dataclass(frozen=True, slots=True)
class Fate:
    """The fate of a candidate for one model.

    `place`: in the set, from 1; None for a rejected one, which has a `reason`. `confidence`: on the delivered pixels;
    None for a rejected one, where the five most probable classes of a crop lack the class, and where it is not known.
    `source_confidence`: on the whole image; None where it is not known. `open`: it could still enter the set.
    """

    role: str
    tier: str
    rank: int
    source_confidence: float | None
    place: int | None = None
    confidence: float | None = None
    reason: str | None = None
    open: bool = False

    @property
    def is_flaw(self) -> bool:
        """Whether it was rejected for a flaw, and not merely left over."""
        return self.reason is not None and self.reason not in LEFT_OVER


@dataclass(frozen=True, slots=True)
class ReportedCandidate:
    """A candidate of a class, with a fate for each model that had it; the crop is None for a whole image.

    `box_unknown`: it is to be cropped, and kept for counting only. `votes`: by reviewer.
    """

    class_index: int
    image_id: str
    crop: Box | None
    fates: tuple[Fate, ...]
    votes: Mapping[str, Review]
    box_unknown: bool = False

    @property
    def uses(self) -> tuple[Fate, ...]:
        """The fates of the models that keep it."""
        return tuple(fate for fate in self.fates if fate.place is not None)

    @property
    def causes(self) -> tuple[str, ...]:
        """The reasons that are a flaw of the image, each once."""
        return tuple(dict.fromkeys(fate.reason for fate in self.fates if fate.reason and fate.is_flaw))

    @property
    def is_left_over(self) -> bool:
        """Whether every model leaves it out without a flaw as the reason."""
        return not self.uses and not self.causes

    @property
    def best_rank(self) -> int:
        """The best of its ranks."""
        return min(fate.rank for fate in self.fates)

    @property
    def basis(self) -> str | None:
        """The firmest basis of its reviews; None where nobody reviewed it."""
        return min((basis_of(review) for review in self.votes.values()), key=BASES.index, default=None)

    def rejected_for(self, reason: str) -> tuple[Fate, ...]:
        """The fates of the models that reject it for a reason."""
        return tuple(fate for fate in self.fates if fate.reason == reason)


def candidates_by_class(
    sets: Mapping[str, Filled], delivered: Mapping[str, Sequence[float | None]], votes: Votes
) -> dict[int, list[ReportedCandidate]]:
    """The candidates of each class that has some: those kept by their best place, then the others by their best rank.

    `delivered`: by model, the confidence of each row of its selection on the delivered pixels.
    """
    fates: dict[CandidateKey, list[Fate]] = {}
    crops: dict[CandidateKey, Box] = {}
    unknown: set[CandidateKey] = set()
    for role, filled in sets.items():
        kept = filled.selection.assign(delivered=pd.Series(list(delivered[role]), filled.selection.index, object))
        for row in (*kept.to_dict("records"), *filled.rejected.to_dict("records")):
            key = int(row["class_index"]), str(row["image_id"])
            if box := box_of(row.get("crop")):
                crops[key] = box
            if row.get("box_unknown"):
                unknown.add(key)
            fate = Fate(
                role=role,
                tier=row["tier"],
                rank=row["rank"],
                source_confidence=row["confidence"],
                place=row.get("place"),
                confidence=row.get("delivered"),
                reason=row.get("reason"),
                open=bool(row.get("open")),
            )
            fates.setdefault(key, []).append(fate)
    found: dict[int, list[ReportedCandidate]] = {}
    for (index, image_id), of_models in sorted(fates.items()):
        key = index, image_id
        reviews = {name: vote.review for name, vote in sorted(votes.get(key, {}).items())}
        candidate = ReportedCandidate(
            class_index=index,
            image_id=image_id,
            crop=crops.get(key),
            fates=tuple(of_models),
            votes=reviews,
            box_unknown=key in unknown,
        )
        found.setdefault(index, []).append(candidate)
    order = list(sets)
    for candidates in found.values():
        candidates.sort(key=lambda each: _order(each, order))
    return found


def _order(candidate: ReportedCandidate, roles: Sequence[str]) -> tuple[bool, bool, int, int, str]:
    uses = [(fate.place, roles.index(fate.role)) for fate in candidate.uses if fate.place is not None]
    place, role = min(uses, default=(candidate.best_rank, 0))
    return not uses, candidate.is_left_over, place, role, candidate.image_id


def rejected_images(candidates: Mapping[int, Sequence[ReportedCandidate]]) -> set[str]:
    """The ids of the images that no model keeps, and that one rejects for a flaw."""
    every = [each for of_class in candidates.values() for each in of_class]
    return {each.image_id for each in every if each.causes} - {each.image_id for each in every if each.uses}


@dataclass(frozen=True, slots=True)
class HardClass:
    """A class that few images of were kept: how many were rejected for a flaw, and how many for each reason."""

    state: ClassState
    rejected: int
    reasons: Mapping[str, int]


def hardest_classes(
    states: Sequence[ClassState], candidates: Mapping[int, Sequence[ReportedCandidate]], most: int
) -> list[HardClass]:
    """The classes with the fewest images over all models; among equals, those with the most rejected images.

    Without full classes that no image is rejected in.
    """
    found = []
    for state in states:
        rejected = [each for each in candidates.get(state.class_index, ()) if each.causes and not each.uses]
        reasons = Counter(reason for each in rejected for reason in each.causes)
        by_count = dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0])))
        if rejected or state.short:
            found.append(HardClass(state, len(rejected), by_count))
    # the class index last, so that equal classes have one order
    found.sort(key=lambda each: (sum(each.state.kept.values()), -each.rejected, each.state.class_index))
    return found[:most]
