"""The plan of `cleanset evaluate`: models of any kind on a set."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.measure.command import Wanted
from cleanset.measure.image_lists import open_set_or_list
from cleanset.measure.run import finished_images, lacks_weights, load_for
from cleanset.measure.sets import EvaluationSet
from cleanset.measure.specs import CommandModel, Spec, file_stems
from cleanset.planning.clock import machine_of, speed_of, timed
from cleanset.planning.launch import seconds_of_code
from cleanset.planning.reading import seconds_of_reading
from cleanset.planning.work import (
    IMAGE_BYTES,
    Cost,
    Passes,
    Plan,
    PlannedWork,
    Work,
    of_program,
    random_weights,
    with_start,
)
from cleanset.progress import tracked
from cleanset.scoring.engine import Settings, settings_for
from cleanset.scoring.models import LoadedModel, untrained
from cleanset.scoring.shards import MIN_SHARD_IMAGES

CODE = "import cleanset.cli, cleanset.measure.command, cleanset.measure.rendering, cleanset.measure.run"
"""Begins as the command does."""
PREDICTION_BYTES = 150
"""Bytes of an image's row in a table of predictions, about."""


def plan(edition: Edition, wanted: Wanted) -> Plan:
    """The plan of measuring models on a set; what is finished in the folder `out` of the request is taken off.

    Nothing is written, and no weights are downloaded. Raises CleansetError for a wrong name or image.
    """
    specs, score, roles = wanted.models_to_run(edition)
    images = open_set_or_list(wanted.name, edition, roles, wanted.role)
    settings = settings_for(score)
    planner = _Planner(wanted=wanted, images=images, settings=settings)
    stems = file_stems([spec.text for spec in specs])
    works = [
        planner.of_model(spec, stem)
        for spec, stem in tracked([*zip(specs, stems, strict=True)], len(specs), "measuring")
    ]
    is_separate = settings.devices[0].is_separate
    works = with_start(works, lambda: seconds_of_code(CODE, is_separate=is_separate))
    return Plan(name=images.name, machine=machine_of(settings.devices), works=works, notes=planner.notes)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Planner:
    """Plans the models one by one."""

    wanted: Wanted
    images: EvaluationSet
    settings: Settings
    notes: list[str] = field(default_factory=list)

    def of_model(self, spec: Spec, stem: str) -> PlannedWork:
        """A model; `stem`: of its files."""
        files = [each.file for each in self.images.items]
        work = self._left(Work(name="evaluate", model=spec.text, images=len(files)))
        if isinstance(spec, CommandModel):
            return PlannedWork(work=work, remark=of_program(spec.text))
        device = self.settings.devices[0]
        try:
            with timed(device) as opening:
                model, finished = self._opened(spec, stem)
        except CleansetError as error:
            return PlannedWork(work=work, remark=str(error))
        work = self._left(replace(work, finished=finished))
        if not work.left:
            return PlannedWork(work=replace(work, finished=0, state="finished"))
        how = self.settings
        speed = speed_of(model.network, model.preprocessing.size, device, precision=how.precision, batch=how.batch_size)
        reading = seconds_of_reading(self.images.read, files, model.preprocessing, device)
        cost = Cost(start=opening.seconds) + speed.cost(work.passes) + Cost(cores=work.left * reading)
        return PlannedWork(work=work, cost=cost)

    def _left(self, work: Work) -> Work:
        """The work with what its images that are left take."""
        return replace(
            work,
            passes=Passes(forward=work.left),
            bytes_read=work.left * IMAGE_BYTES,
            bytes_written=0 if self.wanted.out is None else work.images * PREDICTION_BYTES,
            tasks=-(-work.left // MIN_SHARD_IMAGES),
        )

    def _opened(self, spec: Spec, stem: str) -> tuple[LoadedModel, int]:
        """A model, with random weights if its own are not here, and its finished images."""
        if lacks_weights(spec):
            self.notes.append(random_weights(spec.text))
            return untrained(spec.model), 0
        model = load_for(self.images, spec, self.settings, restricted=self.wanted.restricted)
        if self.wanted.out is None:
            return model.loaded, 0
        path: Path = self.wanted.out / f"{stem}.parquet"
        return model.loaded, finished_images(model, self.images, self.settings, path)
