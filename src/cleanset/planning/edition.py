"""The plan of an edition: the images that preprocess reads, those that each network scores, and the other stages."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

from cleanset.classes import ClassTable, imagenet
from cleanset.dataset.archives import Location, locate
from cleanset.dataset.folder import read_images
from cleanset.edition.dvc_files import stages_in
from cleanset.edition.params import Params, read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.planning.costs import IMAGENET_IMAGE_BYTES, Costs, measured_costs
from cleanset.planning.scored import scoring_costs
from cleanset.planning.stages import StageStates, stage_states, without_network
from cleanset.planning.work import Passes, Plan, Work
from cleanset.plumbing.files import is_there, read_text
from cleanset.plumbing.machine import available_cores
from cleanset.scoring.engine import settings_for
from cleanset.scoring.models import LoadedModel, is_at_hand
from cleanset.scoring.parts import NOTHING, FinishedPart
from cleanset.scoring.shards import finished_shards
from cleanset.stages import score
from cleanset.stages.preprocess import measure_image
from cleanset.tables import INDEX, read_table

SCORE_BYTES = 90
"""Bytes of an image's row in a score table, about."""


def plan(edition: Edition) -> Plan:
    """The plan of an edition; nothing is written or downloaded. Raises CleansetError for params that no stage takes."""
    counted = _Counted(edition=edition, params=read_params(edition.folder), states=stage_states(edition.folder))
    works = [counted.work(stage) for stage in counted.stages()]
    return Plan(name=str(edition.folder), works=works, notes=counted.notes)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Images:
    """The images of an edition."""

    classes: ClassTable
    locations: Mapping[str, Location]
    """By image id."""


@dataclass(kw_only=True)
class _Counted:
    """An edition's stages."""

    edition: Edition
    params: Params
    states: StageStates
    notes: list[str] = field(default_factory=list)

    def stages(self) -> list[str]:
        """The stages of dvc.yaml, those of models by their roles."""
        text = read_text(self.edition.dvc_yaml, "expected the pipeline of an edition: git checkout it")
        try:
            stages = stages_in(text)
        except ValueError as error:
            raise CleansetError(f"{self.edition.dvc_yaml}: {error}; expected the pipeline of an edition") from None
        found = []
        for name, stage in stages.items():
            found += [f"{name}@{role}" for role in self.params.models] if "matrix" in stage else [name]
        return found

    def work(self, name: str) -> Work:
        """A stage, by its name in dvc.yaml; a list in place of a network has no passes."""
        stage, _, role = name.partition("@")
        state = self.states.state(name)
        is_network = stage == "score" and not self.params.model(role).is_list
        if state == "finished" or not (is_network or stage == "preprocess"):
            found = without_network(name, self.states)
            return Work(name=stage, model=role, stage=found.stage, state=found.state)
        count, size = self.counted
        if not is_network:
            return Work(name=stage, stage=name, images=count, bytes_read=size, measure=self._measure_preprocess)
        part = self._finished(role)
        return Work(
            name=stage,
            model=role,
            stage=name,
            images=count,
            part=part,
            of_image=Passes(forward=1),
            bytes_read=size * (count - part.images) // max(1, count),
            bytes_written=count * SCORE_BYTES,
            measure=partial(self._measure_score, role),
        )

    @cached_property
    def counted(self) -> tuple[int, int]:
        """The number of images and their bytes; without an index and images, what the params expect of ImageNet's."""
        if is_there(self.edition.index):
            index = read_table(self.edition.index, INDEX, self.edition.read_classes())
            return len(index), int(index["size"].sum())
        if self.params.dataset.is_own:
            sizes = [location.size for location in self.images.locations.values()]
            return len(sizes), sum(sizes)
        expected = self.params.dataset.expect_images or 0
        self.notes.append(
            f"The index is not here (stage preprocess): counted as {expected:,} images, dataset.expect_images of "
            "params.yaml."
        )
        return expected, expected * IMAGENET_IMAGE_BYTES

    @cached_property
    def images(self) -> _Images:
        """The images. Raises CleansetError if they are not here."""
        dataset = self.params.dataset
        images = self.edition.path(dataset.images)
        if not dataset.is_own:
            return _Images(classes=imagenet(), locations=locate(images))
        labels, names = (self.edition.path(name) if name else None for name in (dataset.labels, dataset.names))
        found = read_images(images, labels, names, classes_are_folders=dataset.classes_are_folders)
        return _Images(classes=found.classes, locations=found.locations)

    def _measure_preprocess(self) -> Costs:
        """The costs of reading, digesting and decoding images in threads, as the stage does."""
        formats = ("JPEG", "PNG") if self.params.dataset.is_own else ("JPEG",)

        def compute(images: Sequence[tuple[str, Location]]) -> None:
            for name, location in images:
                measure_image(name, location, formats)

        return measured_costs(compute, [*self.images.locations.items()], workers=available_cores())

    def _measure_score(self, role: str) -> Costs:
        """The costs of scoring the images with a network."""
        params = self.params
        settings = settings_for(params.score)
        locations = self.images.locations

        def load() -> LoadedModel:
            return score.load_network(self.edition, params, role, self.images.classes)

        def read(name: Hashable) -> bytes:
            return locations[str(name)].read()

        return scoring_costs(load, read, settings, [[name] for name in locations])

    def _finished(self, role: str) -> FinishedPart:
        """What an interrupted run with the same inputs has finished."""
        folder = self.edition.partial_scores(role)
        is_here = is_at_hand(self.params.network(role), self.edition.folder)
        if not (folder.is_dir() and is_there(self.edition.index) and is_here):
            return NOTHING
        inputs = score.read_inputs(self.edition, self.params, role)
        _, made_from = score.network_run(inputs, settings_for(self.params.score))
        return finished_shards(folder, made_from.fingerprint)
