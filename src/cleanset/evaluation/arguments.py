"""What is asked of an evaluation on the command line: images, models, how they are run, where results are written."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pydantic import ValidationError

from cleanset.edition.params import Params, Score, read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.evaluation.specs import GivenModel, Spec, parse_specs, split_name
from cleanset.plumbing.validation import first_problem


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a command that measures models on a set, or on the images of a list."""

    name: str
    """The set's or the list's name."""

    models: Sequence[str]
    """As `parse_specs` takes them."""

    architecture: str | None = None
    """timm architecture of the file of weights among the models."""

    role: str | None = None
    """The model whose rows of a list are taken."""

    precision: str | None = None
    """None: as in the edition's params, or float64."""

    device: str | None = None
    """None: as in the edition's params, or auto."""

    out: Path | None = None
    """Folder for predictions and results."""

    predictions: Sequence[str] = ()
    """Predictions made elsewhere, as `parse_prediction_files` takes them."""

    report: Path | None = None
    """Folder for the page."""

    hub: Path | None = None
    """File or folder for model cards."""

    restricted: bool = False
    """Whether predictions are among the classes of the images alone."""

    labels: Path | None = None
    """Folder with the files of label sources, for multi-label accuracies."""

    given: Sequence[GivenModel] = ()
    """Further models, which Python handed over as objects."""

    measures: Sequence[str] = ()
    """Custom measures of the predictions, by MODULE:NAME."""

    factors: Path | None = None
    """File of ImageNet-X's annotations, by whose factors errors are measured, too."""

    @classmethod
    def of_options(
        cls,
        *,
        images_of: str,
        model: Sequence[str] | None,
        predictions: Sequence[str] | None,
        labels_in: Path | None,
        architecture: str | None,
        role: str | None,
        restricted: bool,
        factors: Path | None,
        custom_measure: Sequence[str] | None,
        precision: str | None,
        device: str | None,
        out: Path | None,
        hub: Path | None,
        report: Path | None,
        **_: object,
    ) -> Self:
        """The options of `evaluate` and of its plan; without those for printing results."""
        return cls(
            name=images_of,
            models=model or [],
            architecture=architecture,
            role=role,
            precision=precision,
            device=device,
            out=out,
            predictions=predictions or [],
            report=report,
            hub=hub,
            restricted=restricted,
            labels=labels_in,
            factors=factors,
            measures=custom_measure or [],
        )

    @property
    def names(self) -> list[str]:
        """The names of the models, under which their results are."""
        return [split_name(text)[0] for text in self.models]

    @property
    def all_names(self) -> list[str]:
        """The names of all models, those that were handed over last."""
        return [*self.names, *(each.text for each in self.given)]

    def models_to_run(self, edition: Edition) -> tuple[list[Spec], Score, list[str]]:
        """The models by their specs, how to compute, and the roles of the edition.

        Checks names, options and `out`, and imports no torch; raises CleansetError.
        """
        params = read_params(edition.folder) if edition.params_yaml.is_file() else None
        roles = params.models if params else {}
        score = _score_settings(params, self.precision, self.device)
        weights = edition.folder if params else None
        specs: list[Spec] = []
        if self.models or not (self.predictions or self.given):
            specs = parse_specs(self.models, self.architecture, roles, edition=edition.folder, weights=weights)
        elif self.architecture is not None:
            raise CleansetError(f"--architecture {self.architecture}: goes with --model; expected a file of weights")
        specs += self.given
        for folder in (self.out, self.report):
            if folder is not None and folder.exists() and not folder.is_dir():
                raise CleansetError(f"{folder}: a file; expected a folder, new or of an earlier evaluation")
        return specs, score, list(roles)


def _score_settings(params: Params | None, precision: str | None, device: str | None) -> Score:
    """Settings of the computation: the edition's params, or the defaults of stage score, overridden by the options."""
    score = params.score if params else Score()
    options = {"precision": precision, "device": device}
    given = {name: value for name, value in options.items() if value is not None}
    try:
        return Score.model_validate(score.model_dump() | given)
    except ValidationError as error:
        raise CleansetError(f"--{first_problem(error)}") from None
