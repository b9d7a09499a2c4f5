"""The plan of `cleanset evaluate`: models of any kind on a set."""

from collections.abc import Hashable, Sequence
from functools import partial

from cleanset.errors import CleansetError
from cleanset.evaluation.models import check_model, lacks_weights
from cleanset.evaluation.request import Request
from cleanset.evaluation.run import digest_of_pixels, finished_part, has_begun, load_for, predictions_path
from cleanset.planning.costs import Costs, total_size
from cleanset.planning.scored import scoring_costs
from cleanset.planning.work import Count, Passes, Plan, Work
from cleanset.scoring.engine import Settings, dependence_of, settings_for
from cleanset.scoring.models import LoadedModel
from cleanset.scoring.parts import NOTHING
from cleanset.scoring.scorer import ignore

PREDICTION_BYTES = 150
"""Bytes of an image's row in a table of predictions, about."""


def counting(request: Request[None]) -> Count:
    """Counts the work of measuring models on a set; what is finished in the folder of the request is taken off.

    Nothing is written, and no weights are downloaded.
    """
    settings = settings_for(request.score)

    def count() -> Plan:
        # in an archive: its size
        size = total_size([item.path for item in request.images.items if item.path is not None])
        return Plan(name=request.images.name, works=[_work(request, name, settings, size) for name in request.specs])

    return count


def _work(request: Request[None], name: str, settings: Settings, size: int) -> Work:
    """The passes of the images that are left, each once forward; `size`: bytes of all images."""
    path = predictions_path(request, name)
    count = len(request.images.items)
    part = NOTHING
    remark = ""
    if path is not None and has_begun(path) and not lacks_weights(request.specs[name]):
        try:
            part = finished_part(load_for(request, name, settings), request.images, settings, path)
        except CleansetError as error:
            remark = str(error)
    return Work(
        name="evaluate",
        model=name,
        state="needed" if part.images < count else "finished",
        images=count,
        part=part,
        of_image=Passes(forward=1),
        bytes_read=size * (count - part.images) // max(1, count),
        bytes_written=0 if path is None else count * PREDICTION_BYTES,
        remark=remark,
        measure=partial(_measure, request, name, settings),
    )


def _measure(request: Request[None], name: str, settings: Settings) -> Costs:
    """The costs of predicting the images; with the first model their pixels are digested."""
    images = request.images
    by_file = {each.file: each for each in images.items}

    def load() -> LoadedModel:
        check_model(request.specs[name])
        model = load_for(request, name, settings).loaded
        dependence_of(model, images.read, [*by_file], settings)
        return model

    def digest(files: Sequence[Hashable]) -> None:
        for file in files:
            digest_of_pixels(images, by_file[str(file)])

    is_first = name == next(iter(request.specs))
    return scoring_costs(
        load,
        images.read,
        settings,
        [[file] for file in by_file],
        besides=digest if is_first else ignore,
    )
