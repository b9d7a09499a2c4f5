"""The plan of `cleanset evaluate`: models of any kind on a set."""

from functools import partial

from cleanset.errors import CleansetError
from cleanset.evaluation.models import check_model, lacks_weights
from cleanset.evaluation.request import Request
from cleanset.evaluation.run import finished_part, has_begun, load_for, pixels_digest, predict, predictions_path
from cleanset.planning.work import IMAGE_BYTES, Count, Passes, Plan, Work, no_start
from cleanset.scoring.engine import Settings, settings_for
from cleanset.scoring.parts import NOTHING

PREDICTION_BYTES = 150
"""Bytes of an image's row in a table of predictions, about."""


def counting(request: Request[None]) -> Count:
    """Counts the work of measuring models on a set; what is finished in the folder of the request is taken off.

    Nothing is written, and no weights are downloaded.
    """
    settings = settings_for(request.score)
    return lambda: Plan(name=request.images.name, works=[_work(request, name, settings) for name in request.specs])


def _work(request: Request[None], name: str, settings: Settings) -> Work:
    """The passes of the images that are left, each once forward."""
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
        bytes_read=(count - part.images) * IMAGE_BYTES,
        bytes_written=0 if path is None else count * PREDICTION_BYTES,
        remark=remark,
        start=no_start if path is None else partial(_start, request, name, settings),
    )


def _start(request: Request[None], name: str, settings: Settings) -> None:
    """Predict the images, as the command does."""
    check_model(request.specs[name])
    settings.start_workers()
    model = load_for(request, name, settings)
    images = request.images
    predict(model, images, settings, predictions_path(request, name), partial(pixels_digest, images))
