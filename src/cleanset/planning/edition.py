"""The plan of an edition: the images that preprocess reads, those that each network scores, and the other stages."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from cleanset.classes import ClassTable
from cleanset.dataset.folder import read_images
from cleanset.edition.dvc_files import stages_in
from cleanset.edition.params import Model, Params, read_params
from cleanset.edition.paths import Edition, verified_images
from cleanset.errors import CleansetError
from cleanset.files import is_there, read_text
from cleanset.measure.user_model import load_member
from cleanset.planning.clock import machine_of, speed_of, timed
from cleanset.planning.launch import seconds_of_code
from cleanset.planning.reading import drawn_image, seconds_of_inspecting, seconds_of_reading
from cleanset.planning.stages import StageStates, stage_states
from cleanset.planning.work import IMAGE_BYTES, Cost, Passes, Plan, PlannedWork, Work, random_weights
from cleanset.progress import tracked
from cleanset.scoring.devices import Device
from cleanset.scoring.engine import Settings, settings_for
from cleanset.scoring.models import LoadedModel, is_at_hand, untrained
from cleanset.scoring.shards import MIN_SHARD_IMAGES, finished_shards, shard_size
from cleanset.stages.score import network_run, read_inputs
from cleanset.tables import INDEX, read_table

SCORE_BYTES = 90
"""Bytes of an image's row in a score table, about."""


def plan(edition: Edition) -> Plan:
    """The plan of an edition; nothing is written or downloaded. Raises CleansetError for params that no stage takes."""
    params = read_params(edition.folder)
    planner = _Planner(
        edition=edition, params=params, settings=settings_for(params.score), states=stage_states(edition.folder)
    )
    works = planner.works()
    machine = machine_of(planner.settings.devices)
    return Plan(name=str(edition.folder), machine=machine, works=works, notes=planner.notes)


@dataclass
class _Planner:
    """Plans an edition's stages; each network is measured once."""

    edition: Edition
    params: Params
    settings: Settings
    states: StageStates
    notes: list[str] = field(default_factory=list)

    @cached_property
    def classes(self) -> ClassTable:
        return self.edition.read_classes()

    @property
    def _device(self) -> Device:
        return self.settings.devices[0]

    def works(self) -> list[PlannedWork]:
        """All stages, in the order of dvc.yaml."""
        names = self._stage_names()
        networks = [name for name in names if name.startswith("score@")]
        measured = {name: self._of_network(name) for name in tracked(networks, len(networks), "measuring")}
        return [measured[name] if name in measured else self._of_other(name) for name in names]

    def _stage_names(self) -> list[str]:
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

    @cached_property
    def _names(self) -> Sequence[str]:
        """The image ids; without an index and images, a number for each that the params expect."""
        if is_there(self.edition.index):
            return list(read_table(self.edition.index, INDEX, self.classes)["image_id"])
        dataset = self.params.dataset
        if dataset.is_own:
            labels, names = (self.edition.path(name) if name else None for name in (dataset.labels, dataset.names))
            found = read_images(
                self.edition.path(dataset.images), labels, names, classes_are_folders=dataset.classes_are_folders
            )
            return list(found.locations)
        self.notes.append(
            f"The index is not here (stage preprocess): counted as {dataset.expect_images or 0:,} images, "
            "dataset.expect_images of params.yaml."
        )
        return [str(number) for number in range(dataset.expect_images or 0)]

    @cached_property
    def _read(self) -> Callable[[str], bytes]:
        """Reads an image by its id; a drawn one where the images are not here."""
        images = self.edition.path(self.params.dataset.images)
        if is_there(self.edition.index) and images.exists():
            index = read_table(self.edition.index, INDEX, self.classes)
            return verified_images(self.edition, self.params.dataset.images, index, self.classes).read
        lacking = "index is" if images.exists() else "images are"
        self.notes.append(f"The {lacking} not here: reading was measured on a drawn image of 500 x 375 pixels.")
        return drawn_image

    def _of_other(self, name: str) -> PlannedWork:
        """A stage without a network."""
        stage, _, role = name.partition("@")
        work = Work(name=stage, model=role, stage=name, state=self.states.state(name))
        if work.state == "finished":
            return PlannedWork(work=work)
        cost = Cost(start=self._start)
        if stage == "preprocess":
            count = len(self._names)
            seconds = seconds_of_inspecting(self._read, self._names, self._device)
            work = replace(work, images=count, bytes_read=count * IMAGE_BYTES, tasks=count)
            cost += Cost(cores=count * seconds)
        return PlannedWork(work=work, cost=cost)

    @cached_property
    def _start(self) -> float:
        """Seconds of a core that a stage without a network takes to begin."""
        return seconds_of_code("import cleanset.stages.export")

    @cached_property
    def _start_of_score(self) -> float:
        code = "import cleanset.scoring.engine, cleanset.measure.user_model"
        return seconds_of_code(code, is_separate=self._device.is_separate)

    def _of_network(self, name: str) -> PlannedWork:
        """Stage score of a model; a list needs no network."""
        stage, _, role = name.partition("@")
        model = self.params.model(role)
        work = Work(name=stage, model=role, stage=name, state=self.states.state(name))
        if work.state == "finished" or model.is_list:
            return PlannedWork(work=work, cost=Cost(start=self._start))
        count = len(self._names)
        work = replace(work, images=count, finished=self._finished(role), tasks=-(-count // MIN_SHARD_IMAGES))
        left = work.left
        work = replace(
            work, passes=Passes(forward=left), bytes_read=left * IMAGE_BYTES, bytes_written=count * SCORE_BYTES
        )
        try:
            with timed(self._device) as opening:
                loaded = self._network(role, model)
        except CleansetError as error:
            return PlannedWork(work=work, remark=str(error))
        side = loaded.preprocessing.size
        how = self.settings
        speed = speed_of(loaded.network, side, self._device, precision=how.precision, batch=how.batch_size)
        reading = seconds_of_reading(self._read, self._names, loaded.preprocessing, self._device)
        start = Cost(start=self._start_of_score + opening.seconds)
        return PlannedWork(work=work, cost=start + speed.cost(work.passes) + Cost(cores=left * reading))

    def _network(self, role: str, model: Model) -> LoadedModel:
        if is_at_hand(model, self.edition.folder):
            return load_member(model, self.edition.folder, self.classes)
        self.notes.append(random_weights(role))
        return untrained(model)

    def _finished(self, role: str) -> int:
        """The images in finished shards of an interrupted run with the same inputs."""
        folder = self.edition.partial_scores(role)
        if not (folder.is_dir() and is_there(self.edition.index)):
            return 0
        _, made_from = network_run(read_inputs(self.edition, self.params, role), self.settings)
        size = shard_size(self.settings.batch_size)
        return min(len(self._names), finished_shards(folder, made_from.fingerprint) * size)
