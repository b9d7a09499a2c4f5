"""The plan of a study of robustness: changed images, answers of each model to them, and what both take here.

Changed images are made once, by the first stage of a family that lacks answers, which shows them to all such models:
its row has the seconds of making them.
"""

import io
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from PIL import Image

from cleanset.classes import ClassTable
from cleanset.drawing.folders import photograph
from cleanset.edition.params import Params
from cleanset.errors import CleansetError
from cleanset.files import sha256
from cleanset.images.preprocessing import BASE_SIZE, Resized
from cleanset.planning.clock import NetworkSpeed, machine_of, speed_of, timed
from cleanset.planning.launch import seconds_of_code
from cleanset.planning.stages import StageStates, stage_states, without_network
from cleanset.planning.work import IMAGE_BYTES, Cost, Passes, Plan, PlannedWork, Work, random_weights
from cleanset.progress import tracked
from cleanset.scoring.decoding import worker_processes
from cleanset.scoring.devices import Device
from cleanset.scoring.engine import settings_for
from cleanset.scoring.models import LoadedModel, is_at_hand, untrained
from cleanset.scoring.shards import MIN_SHARD_IMAGES, finished_shards, shard_size
from cleanset.studies.robustness.answering import AnsweringModel, StudyModels, plan_for
from cleanset.studies.robustness.digests import DigestRun
from cleanset.studies.robustness.families import (
    CHANGING,
    FAMILIES,
    ChangePlan,
    OpenedStudy,
    StudyParams,
    change_plan,
)
from cleanset.studies.robustness.family import Family
from cleanset.studies.robustness.images import MASKS, Sources, Study, StudyFile
from cleanset.studies.robustness.one_pass import squares
from cleanset.studies.robustness.params import TrainedModel

ANSWER_BYTES = 80
"""Bytes of an answer in a table, about."""
MAKING_SECONDS = 3.0
"""Whole images are changed until it has taken that long."""
TABLES = {
    "images": "cleanset.studies.robustness.image_sets",
    "digests": "cleanset.studies.robustness.digests",
    "measure": "cleanset.studies.robustness.measuring",
    "pages": "cleanset.studies.robustness.pages",
}
"""The stages without a network, and the module that each imports."""


def expected_images(params: Params, classes: ClassTable) -> int:
    """The images of all finished sets, at most, as an edition's params allow them."""
    per_class = params.export.images_per_class
    if not isinstance(per_class, int):
        return params.dataset.expect_images or 0
    return per_class * len(params.dataset.class_list(classes)) * len(params.models)


def images_not_here(study: Study, params: Params, classes: ClassTable) -> str:
    """The note of a plan whose images are not known yet."""
    count = expected_images(params, classes)
    return (
        f"The images are not here (stage images of {study.folder.name}): counted as {count:,}, the most that the "
        "edition's params allow."
    )


def plan(study: Study) -> Plan:
    """The plan of a study of robustness; nothing is written or downloaded.

    Raises CleansetError for params, images or masks that no stage would take.
    """
    opened = OpenedStudy.read(study)
    models = StudyModels(opened, settings_for(opened.edition.score))
    sources = opened.sources() if study.images.is_file() else None
    planner = _Planner(opened=opened, models=models, sources=sources, states=stage_states(study.folder))
    works = planner.works()
    return Plan(name=str(study.folder), machine=machine_of(models.settings.devices), works=works, notes=planner.notes)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweringSpeed:
    """What a model costs that answers changed images."""

    opening: float
    """Seconds until it is read."""
    speed: NetworkSpeed
    side: int
    """Side, in pixels, of the images that it sees."""
    model: AnsweringModel | None
    """None: its weights or the images are not here."""


@dataclass
class _Planner:
    """Plans a study's stages; each model is measured once."""

    opened: OpenedStudy
    models: StudyModels
    sources: Sources | None
    """None: the study has no images yet."""
    states: StageStates
    notes: list[str] = field(default_factory=list)
    start: float | None = None
    """Seconds until a stage of answers computes, but for its model; None: not measured yet."""

    @property
    def _device(self) -> Device:
        return self.models.settings.devices[0]

    def works(self) -> list[PlannedWork]:
        """All stages, in the order of dvc.yaml; a further model's rows stand with the families."""
        opened = self.opened
        if self.sources is None:
            self.notes.append(images_not_here(opened.study, opened.edition, opened.classes))
        roles = opened.params.models(opened.roles)
        lacking = [role for role in roles if any(self._lacks(role, family) for family in FAMILIES)]
        speeds = dict[str, AnsweringSpeed | CleansetError]()
        for role in tracked(lacking, len(lacking), "measuring"):
            try:
                speeds[role] = self._speed(role)
            except CleansetError as error:
                speeds[role] = error
        found = [without_network("images", TABLES["images"], self.states)]
        for family in FAMILIES:
            found += self._of_family(family, roles, speeds)
        others = [each for each in TABLES if each != "images"]
        return [*found, *(without_network(stage, TABLES[stage], self.states) for stage in others)]

    def _stage(self, role: str, family: Family) -> str:
        return f"{family.name}@{role}" if role in self.opened.roles else f"further@{role}"

    def _lacks(self, role: str, family: Family) -> bool:
        return self.states.state(self._stage(role, family)) == "needed"

    def _of_family(
        self, family: Family, roles: Sequence[str], speeds: "dict[str, AnsweringSpeed | CleansetError]"
    ) -> list[PlannedWork]:
        """The answers of each model to the images of a family."""
        params = self.opened.params
        change = None if self.sources is None else change_plan(family, self.sources, params)
        steps = self._steps(family)
        found = list[PlannedWork]()
        making: float | None = None
        for role in roles:
            work = Work(name=family.name, model=role, stage=self._stage(role, family))
            if not self._lacks(role, family):
                found.append(PlannedWork(work=replace(work, state="finished")))
                continue
            own = None if change is None else plan_for(change, params, role)
            clean = self._expected if own is None else len(own.images)
            images = clean * steps if own is None else len(own.names())
            work = replace(work, images=images, bytes_read=clean * IMAGE_BYTES, bytes_written=images * ANSWER_BYTES)
            speed = speeds[role]
            if isinstance(speed, CleansetError):
                found.append(PlannedWork(work=replace(work, passes=Passes(forward=images + clean)), remark=str(speed)))
                continue
            work = replace(work, finished=self._finished(speed, own), tasks=-(-images // MIN_SHARD_IMAGES))
            work = replace(work, passes=Passes(forward=work.left + clean))
            cost = speed.speed.cost(work.passes)
            if role in self.opened.roles or family is FAMILIES[0]:
                cost += Cost(start=self._start(role, speed) + speed.opening)
            if making is None and work.left:
                sides = {each.side for each in speeds.values() if isinstance(each, AnsweringSpeed)}
                making = self._seconds_of_making(family, change, sides)
                others = sum(each.opening for each in speeds.values() if isinstance(each, AnsweringSpeed))
                cost += Cost(cores=making * work.left, start=others - speed.opening)
            found.append(PlannedWork(work=work, cost=cost))
        return found

    def _steps(self, family: Family) -> int:
        """The changed images of an image, with the unchanged one; of those that need a mask, were all to have one."""
        params = self.opened.params
        if changes := family.section_in(params).changes():
            return 1 + len(changes)
        with TemporaryDirectory() as folder:
            return len(change_plan(family, drawn_sources(Path(folder), self.opened), params).names())

    @property
    def _expected(self) -> int:
        return expected_images(self.opened.edition, self.opened.classes)

    def _finished(self, speed: AnsweringSpeed, plan: ChangePlan | None) -> int:
        """The images in finished shards of an interrupted run with the same inputs."""
        if speed.model is None or plan is None:
            return 0
        return finished_images(speed.model, self.opened.params, plan)

    def _speed(self, role: str) -> AnsweringSpeed:
        """The speed of a model. Raises CleansetError where no network of that kind can be built."""
        entry = self.opened.params.further_models.get(role) or self.opened.edition.network(role)
        is_here = isinstance(entry, str) or is_at_hand(entry, self.opened.study.edition.folder)
        with timed(self._device) as elapsed:
            answering = self.models.load(role) if is_here else None
        if answering is None:
            if isinstance(entry, str) or (isinstance(entry, TrainedModel) and entry.is_of_training):
                raise CleansetError(f"{role}: its weights are not here; expected them, to build its network")
            self.notes.append(random_weights(role))
            model: LoadedModel = untrained(entry)
        else:
            model = answering.model
        settings = self.models.settings
        side = model.preprocessing.size
        speed = speed_of(model.network, side, self._device, precision=settings.precision, batch=settings.batch_size)
        return AnsweringSpeed(opening=elapsed.seconds, speed=speed, side=side, model=answering)

    def _seconds_of_making(self, family: Family, change: ChangePlan | None, sides: Collection[int]) -> float:
        """Seconds of a core for a changed image: made or read, digested, and resized for each side of a model's."""
        params = self.opened.params
        if change is not None and self.sources is not None:
            return seconds_of_making(change, self.sources, params, sides=sides, device=self._device)
        with TemporaryDirectory() as folder:
            sources = drawn_sources(Path(folder), self.opened)
            change = change_plan(family, sources, params)
            return seconds_of_making(change, sources, params, sides=sides, device=self._device)

    def _start(self, role: str, speed: AnsweringSpeed) -> float:
        """Seconds until answers are computed, but for the model's; measured once."""
        if self.start is None:
            code = "import sys; from cleanset.studies.robustness import planning; planning.start(*sys.argv[1:])"
            asked = [] if speed.model is None else [str(self.opened.study.folder), role]
            seconds = seconds_of_code(code, *asked, is_separate=self._device.is_separate)
            self.start = max(0.0, seconds - speed.opening)
        return self.start


def start(folder: str = "", role: str = "") -> None:
    """Start as a stage of answers does, up to two changed images by worker processes; nothing is written.

    Without a folder, only start the server of processes.
    """
    worker_processes(CHANGING)
    if not folder:
        return
    opened = OpenedStudy.read(Study(Path(folder)))
    StudyModels(opened, settings_for(opened.edition.score)).load(role)
    sources = opened.sources()
    family = next(each for each in FAMILIES if each.section_in(opened.params).names)
    make_two(change_plan(family, sources, opened.params), sources, opened.params)


def make_two(change: ChangePlan, sources: Sources, params: StudyParams) -> None:
    """Make two changed images in worker processes, as answers do."""
    list(DigestRun(change, sources, params).digests(change.names()[:2]))


def finished_images(model: AnsweringModel, params: StudyParams, plan: ChangePlan) -> int:
    """The changed images in finished shards of an interrupted run with the same inputs."""
    folder = model.answers.partial(plan.name, model.stem or model.name)
    if not folder.is_dir():
        return 0
    size = shard_size(model.settings.batch_size)
    shards = finished_shards(folder, model.made_from(params, plan).fingerprint)
    return min(len(plan.names()), shards * size)


def seconds_of_making(
    change: ChangePlan, sources: Sources, params: StudyParams, *, sides: Collection[int], device: Device
) -> float:
    """Mean seconds of a core for a changed image, over all changes of whole images; 0 without an image.

    With its digest, and resized to each of `sides`, of square images in pixels.
    """
    names = change.names()
    changed = change.changed_images(sources.files_in(change.images), params)
    square = Resized(BASE_SIZE)
    resizing = [squares(side) for side in sorted(sides) if side != BASE_SIZE]
    per_image = len(names) // max(1, len(change.images))
    made = 0
    with timed(device) as elapsed:
        while made < len(names) and elapsed.seconds < MAKING_SECONDS:
            for name in names[made : made + per_image]:
                pixels = np.ascontiguousarray(square(changed(name)).transpose(1, 2, 0))
                sha256(pixels.tobytes())
                for resize in resizing:
                    resize(Image.fromarray(pixels))
            made += per_image
    return elapsed.seconds / made if made else 0.0


def drawn_sources(folder: Path, opened: OpenedStudy) -> Sources:
    """One drawn image in a folder, in place of images that are not here."""
    content = io.BytesIO()
    photograph("goldfish", 1).save(content, "PNG")
    path = folder / "drawn.png"
    path.write_bytes(content.getvalue())
    digest = sha256(content.getvalue())
    row = {
        "file": path.name, "image_id": "drawn", "class_index": 0, "crop": None, "file_sha256": digest,
        "sets": opened.roles,
    }  # fmt: skip
    images = pd.DataFrame([row])
    masks = pd.DataFrame([{**dict.fromkeys(MASKS.names), "file": path.name, "left_out": "no_mask"}])
    files = {path.name: StudyFile(path, digest, "drawn")}
    return Sources(images=images, masks=masks, files=files, classes=opened.classes, study=opened.study)
