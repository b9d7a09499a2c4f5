"""The plan of `cleanset evaluate`: models of any kind on a set."""

from collections.abc import Sequence

from cleanset.edition.params import Score
from cleanset.errors import CleansetError
from cleanset.measure.run import load
from cleanset.measure.sets import EvaluationSet
from cleanset.measure.specs import Spec, ZooModel
from cleanset.planning.clock import machine_of, speed_of, timed
from cleanset.planning.launch import seconds_of_code
from cleanset.planning.reading import seconds_of_reading
from cleanset.planning.work import IMAGE_BYTES, Cost, Passes, Plan, PlannedWork, Work, random_weights
from cleanset.progress import tracked
from cleanset.scoring.engine import Settings, settings_for
from cleanset.scoring.models import is_at_hand, untrained
from cleanset.scoring.shards import MIN_SHARD_IMAGES


def plan(specs: Sequence[Spec], images: EvaluationSet, score: Score) -> Plan:
    """The plan of measuring models on a set; nothing is written, and no weights are downloaded."""
    settings = settings_for(score)
    device = settings.devices[0]
    start = seconds_of_code("import cleanset.measure.run", is_separate=device.is_separate)
    notes: list[str] = []
    works = [
        _of_model(spec, images, settings, start=start, notes=notes) for spec in tracked(specs, len(specs), "measuring")
    ]
    return Plan(name=images.name, machine=machine_of(settings.devices), works=works, notes=notes)


def _of_model(spec: Spec, images: EvaluationSet, settings: Settings, *, start: float, notes: list[str]) -> PlannedWork:
    device = settings.devices[0]
    files = [each.file for each in images.items]
    work = Work(
        name="evaluate",
        model=spec.text,
        images=len(files),
        passes=Passes(forward=len(files)),
        bytes_read=len(files) * IMAGE_BYTES,
        tasks=-(-len(files) // MIN_SHARD_IMAGES),
    )
    try:
        with timed(device) as opening:
            if isinstance(spec, ZooModel) and not is_at_hand(spec.model, spec.folder):
                notes.append(random_weights(spec.text))
                model = untrained(spec.model)
            else:
                model = load(spec, settings, images.classes).loaded
    except CleansetError as error:
        return PlannedWork(work=work, remark=str(error))
    side = model.preprocessing.size
    speed = speed_of(model.network, side, device, precision=settings.precision, batch=settings.batch_size)
    reading = seconds_of_reading(images.read, files, model.preprocessing, device)
    cost = Cost(start=start + opening.seconds) + speed.cost(work.passes) + Cost(cores=len(files) * reading)
    return PlannedWork(work=work, cost=cost)
