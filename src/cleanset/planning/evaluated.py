"""The plan of `cleanset evaluate`: models of any kind on a set."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.evaluation.models import check_model, lacks_weights
from cleanset.evaluation.request import Request
from cleanset.evaluation.specs import Spec, file_stems
from cleanset.measure.image_lists import open_set_or_list
from cleanset.measure.run import finished_part, has_begun, load_for, pixels_digest, predict
from cleanset.measure.sets import EvaluationSet
from cleanset.planning.work import IMAGE_BYTES, Count, Passes, Plan, Work, no_start
from cleanset.scoring.engine import Settings, settings_for
from cleanset.scoring.parts import NOTHING

PREDICTION_BYTES = 150
"""Bytes of an image's row in a table of predictions, about."""


def counting(edition: Edition, wanted: Request) -> Count:
    """Counts the work of measuring models on a set; what is finished in the folder `out` of the request is taken off.

    Nothing is written, and no weights are downloaded. Raises CleansetError for a wrong name or image.
    """
    specs, score, roles = wanted.models_to_run(edition)
    images = open_set_or_list(wanted.name, edition, roles, wanted.role)
    stems = file_stems([spec.text for spec in specs])
    models = [
        _Model(spec=spec, stem=stem, wanted=wanted, images=images, settings=settings_for(score))
        for spec, stem in zip(specs, stems, strict=True)
    ]
    return lambda: Plan(name=images.name, works=[each.work() for each in models])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Model:
    """A model of a request."""

    spec: Spec
    stem: str
    """The name of its files."""
    wanted: Request
    images: EvaluationSet
    settings: Settings

    def work(self) -> Work:
        """The passes of the images that are left, each once forward."""
        out = self.wanted.out
        path = None if out is None else out / f"{self.stem}.parquet"
        count = len(self.images.items)
        part = NOTHING
        remark = ""
        if path is not None and has_begun(path) and not lacks_weights(self.spec):
            try:
                model = load_for(self.images, self.spec, self.settings, restricted=self.wanted.restricted)
                part = finished_part(model, self.images, self.settings, path)
            except CleansetError as error:
                remark = str(error)
        return Work(
            name="evaluate",
            model=self.spec.text,
            state="needed" if part.images < count else "finished",
            images=count,
            part=part,
            of_image=Passes(forward=1),
            bytes_read=(count - part.images) * IMAGE_BYTES,
            bytes_written=0 if path is None else count * PREDICTION_BYTES,
            remark=remark,
            start=no_start if path is None else partial(self.start, path),
        )

    def start(self, path: Path) -> None:
        """Predict the images, as the command does; `path`: the table of predictions."""
        check_model(self.spec)
        self.settings.start_workers()
        model = load_for(self.images, self.spec, self.settings, restricted=self.wanted.restricted)
        predict(model, self.images, self.settings, path, partial(pixels_digest, self.images))
