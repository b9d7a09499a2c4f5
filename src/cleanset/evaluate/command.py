"""The command `evaluate`: from names on the command line to the measures of each model."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from cleanset.edition.params import Params, Score, read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.evaluate.measures import measures
from cleanset.evaluate.printing import Row, as_json
from cleanset.evaluate.sets import EvaluationSet, open_list, open_set
from cleanset.evaluate.specs import Spec, parse_specs
from cleanset.files import write_text
from cleanset.machine import cache_folder
from cleanset.validation import first_problem

RESULTS = "results.json"
"""In the folder of the predictions: what --json prints."""


@dataclass(frozen=True, slots=True)
class ModelsToRun:
    """The models of a request, how to compute, and the roles of the edition."""

    specs: Sequence[Spec]
    score: Score
    roles: Sequence[str]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A request to measure models, as named on the command line, on a set or on the images of a list."""

    name: str | None
    models: Sequence[str]
    architecture: str | None = None
    images: Path | None = None
    role: str | None = None
    precision: str | None = None
    device: str | None = None
    out: Path | None = None

    def models_to_run(self, edition: Edition) -> ModelsToRun:
        """The models by their specs. Checks names, options and `out`, and imports no torch; raises CleansetError."""
        params = read_params(edition.folder) if edition.params_yaml.is_file() else None
        roles = params.models if params else {}
        score = score_settings(params, self.precision, self.device)
        weights = edition.folder if params else cache_folder()
        specs = parse_specs(self.models, self.architecture, roles, edition.folder, weights)
        if self.out is not None and self.out.exists() and not self.out.is_dir():
            raise CleansetError(f"{self.out}: a file; expected a folder, new or of an earlier evaluation")
        return ModelsToRun(specs, score, list(roles))


def run(edition: Edition, wanted: Wanted) -> tuple[EvaluationSet, list[Row]]:
    """Measure the models, in their order; with `out`, write predictions and results there.

    Names are checked and all images are read before torch is imported. Raises CleansetError that says what to do.
    """
    asked = wanted.models_to_run(edition)
    images = _images(edition, wanted, asked.roles)

    from cleanset.evaluate.run import evaluate
    from cleanset.scoring.engine import settings_for

    evaluated = evaluate(asked.specs, images, settings_for(asked.score), wanted.out)
    rows = [Row(each.name, measures(each.predictions), each.record, each.path) for each in evaluated]
    if wanted.out is not None:
        write_text(wanted.out / RESULTS, as_json(images, rows) + "\n")
    return images, rows


def _images(edition: Edition, wanted: Wanted, roles: Sequence[str]) -> EvaluationSet:
    if (wanted.name is None) == (wanted.images is None):
        found = "neither" if wanted.name is None else "both"
        raise CleansetError(f"evaluate: {found} a set and --images; expected one of the two")
    if wanted.images is not None:
        return open_list(wanted.images, edition, wanted.role)
    if wanted.role is not None:
        raise CleansetError(f"--role {wanted.role}: goes with --images; expected the role as the set")
    return open_set(str(wanted.name), edition, roles)


def score_settings(params: Params | None, precision: str | None, device: str | None) -> Score:
    """How to compute: as the edition's params say, or as stage score does by default, but for the options."""
    score = params.score if params else Score()
    options = {"precision": precision, "device": device}
    given = {name: value for name, value in options.items() if value is not None}
    try:
        return Score.model_validate(score.model_dump() | given)
    except ValidationError as error:
        raise CleansetError(f"--{first_problem(error)}") from None
