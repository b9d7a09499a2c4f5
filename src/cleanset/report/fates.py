"""The candidates of each class in the order that pages show them, each with its fate: a place in a set, or a reason."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from cleanset.images.boxes import Box, CropBox, known_box
from cleanset.report.figures import LEFT_OVER, CandidateKey, ClassState
from cleanset.review.store import Votes, basis_of
from cleanset.review.verdicts import Review
from cleanset.selection.fill import Filled
from cleanset.selection.selected import rejected_images, selected_images
from cleanset.statistics.basics import most_first
from cleanset.vocabulary import BASES


@dataclass(frozen=True, slots=True)
class Fate:
    """The fate of a candidate for one model.

    `place`: in the set, from 1; None for a rejected one, which has a `reason`. `confidence`: on the delivered pixels;
    None for a rejected one, where the five most probable classes of a crop lack the class, and where it is not known.
    `source_confidence`: on the whole image; None if it is not known. `open`: it could still enter the set.
    """

    role: str
    tier: str | None
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


@dataclass(frozen=True)
class ReportedCandidate:
    """A candidate of a class; without slots, as pages ask for the same properties many times."""

    class_index: int
    image_id: str
    box: CropBox
    """UNKNOWN_BOX for one that is kept for counting only."""

    fates: tuple[Fate, ...]
    """One for each model that had it."""

    votes: Mapping[str, Review]
    """By reviewer."""

    @property
    def crop(self) -> Box | None:
        """The box that is cut out; None for a whole image and for an unknown box."""
        return known_box(self.box)

    @cached_property
    def uses(self) -> tuple[Fate, ...]:
        """The fates of the models that keep it."""
        return tuple(fate for fate in self.fates if fate.place is not None)

    @cached_property
    def causes(self) -> tuple[str, ...]:
        """The reasons that are a flaw of the image, each once."""
        return tuple(dict.fromkeys(fate.reason for fate in self.fates if fate.reason and fate.is_flaw))

    @cached_property
    def is_left_over(self) -> bool:
        """Whether every model leaves it out without a flaw as the reason."""
        return not self.uses and not self.causes

    @property
    def best_rank(self) -> int:
        """The best of its ranks."""
        return min(fate.rank for fate in self.fates)

    @property
    def basis(self) -> str | None:
        """The firmest basis of its reviews; None if nobody reviewed it."""
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
    boxes: dict[CandidateKey, CropBox] = {}
    for role, filled in sets.items():
        for kept, confidence in zip(selected_images(filled.selection), delivered[role], strict=True):
            key = kept.class_index, kept.image_id
            boxes[key] = kept.box
            fates.setdefault(key, []).append(
                Fate(
                    role=role,
                    tier=kept.tier,
                    rank=kept.rank,
                    source_confidence=kept.confidence,
                    place=kept.place,
                    confidence=confidence,
                )
            )
        for rejected in rejected_images(filled.rejected):
            fates.setdefault((rejected.class_index, rejected.image_id), []).append(
                Fate(
                    role=role,
                    tier=rejected.tier,
                    rank=rejected.rank,
                    source_confidence=rejected.confidence,
                    reason=rejected.reason,
                    open=rejected.open,
                )
            )
    found: dict[int, list[ReportedCandidate]] = {}
    for key, of_models in sorted(fates.items()):
        class_index, image_id = key
        candidate = ReportedCandidate(
            class_index=class_index,
            image_id=image_id,
            box=boxes.get(key),
            fates=tuple(of_models),
            votes={name: vote.review for name, vote in sorted(votes.get(key, {}).items())},
        )
        found.setdefault(class_index, []).append(candidate)
    order = list(sets)
    for candidates in found.values():
        candidates.sort(key=lambda each: _order(each, order))
    return found


def _order(candidate: ReportedCandidate, roles: Sequence[str]) -> tuple[bool, bool, int, int, str]:
    uses = [(fate.place, roles.index(fate.role)) for fate in candidate.uses if fate.place is not None]
    place, role = min(uses, default=(candidate.best_rank, 0))
    return not uses, candidate.is_left_over, place, role, candidate.image_id


def images_rejected_by_all(candidates: Mapping[int, Sequence[ReportedCandidate]]) -> set[str]:
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
        by_count = most_first(reasons)
        if rejected or state.short:
            found.append(HardClass(state, len(rejected), by_count))
    # the class index last, so that equal classes have one order
    found.sort(key=lambda each: (sum(each.state.kept.values()), -each.rejected, each.state.class_index))
    return found[:most]
