"""The plan of an edition: the images that preprocess reads, those that each network scores, and the other stages."""

from dataclasses import dataclass, field
from functools import partial

from cleanset.dataset.folder import read_images
from cleanset.edition.dvc_files import stages_in
from cleanset.edition.params import Params, read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.planning.stages import StageStates, stage_states, without_network
from cleanset.planning.work import IMAGE_BYTES, Passes, Plan, Work
from cleanset.plumbing.files import is_there, read_text
from cleanset.scoring.engine import settings_for
from cleanset.scoring.models import is_at_hand
from cleanset.scoring.parts import NOTHING, FinishedPart
from cleanset.scoring.shards import finished_shards
from cleanset.stages import score
from cleanset.tables import INDEX, read_table

SCORE_BYTES = 90
"""Bytes of an image's row in a score table, about."""


def plan(edition: Edition) -> Plan:
    """The plan of an edition; nothing is written or downloaded. Raises CleansetError for params that no stage takes."""
    counted = _Counted(edition=edition, params=read_params(edition.folder), states=stage_states(edition.folder))
    works = [counted.work(stage) for stage in counted.stages()]
    return Plan(name=str(edition.folder), works=works, notes=counted.notes)


@dataclass(kw_only=True)
class _Counted:
    """An edition's stages."""

    edition: Edition
    params: Params
    states: StageStates
    notes: list[str] = field(default_factory=list)
    images: int | None = None
    """The number of images; None: not counted yet."""

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
        if self.images is None:
            self.images = self._count()
        count = self.images
        if not is_network:
            return Work(name=stage, stage=name, images=count, bytes_read=count * IMAGE_BYTES)
        part = self._finished(role)
        return Work(
            name=stage,
            model=role,
            stage=name,
            images=count,
            part=part,
            of_image=Passes(forward=1),
            bytes_read=(count - part.images) * IMAGE_BYTES,
            bytes_written=count * SCORE_BYTES,
            start=partial(score.run, self.edition, role),
        )

    def _count(self) -> int:
        """The number of images; without an index and images, the one that the params expect."""
        dataset = self.params.dataset
        if is_there(self.edition.index):
            return len(read_table(self.edition.index, INDEX, self.edition.read_classes()))
        if dataset.is_own:
            labels, names = (self.edition.path(name) if name else None for name in (dataset.labels, dataset.names))
            images = self.edition.path(dataset.images)
            return len(read_images(images, labels, names, classes_are_folders=dataset.classes_are_folders).locations)
        expected = dataset.expect_images or 0
        self.notes.append(
            f"The index is not here (stage preprocess): counted as {expected:,} images, dataset.expect_images of "
            "params.yaml."
        )
        return expected

    def _finished(self, role: str) -> FinishedPart:
        """What an interrupted run with the same inputs has finished."""
        folder = self.edition.partial_scores(role)
        is_here = is_at_hand(self.params.network(role), self.edition.folder)
        if not (folder.is_dir() and is_there(self.edition.index) and is_here):
            return NOTHING
        inputs = score.read_inputs(self.edition, self.params, role)
        _, made_from = score.network_run(inputs, settings_for(self.params.score))
        return finished_shards(folder, made_from.fingerprint)
