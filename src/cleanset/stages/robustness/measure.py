"""Stage measure: all measures of every model, with intervals. No model runs, no image is read."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from cleanset.edition.params import read_params
from cleanset.files import replacing, write_text
from cleanset.metrics import write_metrics
from cleanset.robustness import corruption_results, perturbation_results, scenario_results
from cleanset.robustness.answers import PREDICTIONS
from cleanset.robustness.corruption_results import CorruptionStudy
from cleanset.robustness.image_masks import MASKS, has_scenarios
from cleanset.robustness.images import STUDY_IMAGES, first_images, is_seen
from cleanset.robustness.measures.bootstrap import Bootstrap
from cleanset.robustness.names import corruptions_of, perturbations_of, scenarios_of
from cleanset.robustness.perturbation_results import PerturbationStudy
from cleanset.robustness.results import SELECTIONS, Difference, Line, StudiedImages
from cleanset.robustness.scenario_results import ScenarioStudy
from cleanset.robustness.settings import StudyParams, read_study_params
from cleanset.robustness.study import Study
from cleanset.tables import read_table

WITH_INTERVALS = (
    "mean_error", "mce", "mean_fp", "mfr", "mean_t5d", "mt5d",
    "mean_accuracy", "score_as_published", "score_as_written",
)  # fmt: skip
"""The measures whose intervals are metrics, too."""


@dataclass(frozen=True, slots=True)
class Studied:
    """What is measured: the study, its params, the models, and the images with the answers."""

    study: Study
    params: StudyParams
    roles: Sequence[str]

    def answers(
        self, family: str, images: pd.DataFrame
    ) -> Iterator[tuple[str, np.ndarray, pd.DataFrame, pd.DataFrame]]:
        """By model: its role, which of the images it saw, these, and its answers."""
        for role in self.roles:
            seen = is_seen(images, self.params.images, role)
            predictions = read_table(self.study.answers.predictions(family, role), PREDICTIONS[family])
            yield role, seen, images[seen], predictions

    def images(self, family: str, images: pd.DataFrame) -> StudiedImages:
        """The images of a family as its measures take them."""
        return StudiedImages(
            images["class_index"].to_numpy(np.int64),
            images["sets"].tolist(),
            self.roles,
            Bootstrap(resamples=self.params.bootstrap.draws, seed=f"{family} {self.params.seed}"),
            SELECTIONS if self.params.images == "union" else ("own",),
        )


def run(study: Study) -> None:
    """Read the images and the answers of all models, write data/measures/ and metrics/."""
    roles = list(read_params(study.edition.folder).models)
    studied = Studied(study, read_study_params(study.params_yaml, roles), roles)
    images, masks = read_table(study.images, STUDY_IMAGES), read_table(study.masks_table, MASKS)
    corruptions = corruption_study(studied, images)
    perturbations = perturbation_study(studied, first_images(images, studied.params.perturbations.max_images))
    scenarios = scenario_study(studied, has_scenarios(images, masks))
    metrics: dict[str, Mapping[str, float | None]] = {}
    with replacing(study.measures) as folder:
        for name, each in (("corruptions", corruptions), ("perturbations", perturbations), ("scenarios", scenarios)):
            lines = list(each.lines())
            write_csv(folder / f"{name}.csv", Line._fields, lines)
            write_csv(
                folder / f"{name.removesuffix('s')}_differences.csv", Difference._fields, list(each.differences())
            )
            metrics |= metrics_of(name, lines, each.images.selections[0])
        write_table_csv(folder / "corruption_errors.csv", corruption_results.by_severity(corruptions))
        write_table_csv(folder / "perturbation_frames.csv", perturbation_results.by_frame(perturbations))
        write_scenarios(folder, studied.params, scenarios)
    write_metrics(study.metrics, metrics)


def corruption_study(studied: Studied, images: pd.DataFrame) -> CorruptionStudy:
    """The corruptions of the params, with the answers to them."""
    wanted = studied.params.corruptions
    names, severities = corruptions_of(wanted.names), sorted(set(wanted.severities))
    answers = {
        role: corruption_results.read_answers(seen_images, predictions, names, severities).of_all(seen)
        for role, seen, seen_images, predictions in studied.answers("corruptions", images)
    }
    of_images = studied.images("corruptions", images)
    return CorruptionStudy(of_images, names, severities, answers, wanted.reference, wanted.trained_on)


def perturbation_study(studied: Studied, images: pd.DataFrame) -> PerturbationStudy:
    """The perturbations of the params, with the answers to them."""
    wanted = studied.params.perturbations
    frames = wanted.frame_counts()
    answers = {
        role: perturbation_results.read_answers(seen_images, predictions, frames, seen)
        for role, seen, seen_images, predictions in studied.answers("perturbations", images)
    }
    of_images = studied.images("perturbations", images)
    return PerturbationStudy(of_images, perturbations_of(wanted.names), answers, wanted.difficulty, wanted.reference)


def scenario_study(studied: Studied, images: pd.DataFrame) -> ScenarioStudy:
    """The scenarios of the params, with the answers to them."""
    wanted = studied.params.scenarios
    names = scenarios_of(wanted.names)
    answers = {
        role: scenario_results.read_answers(seen_images, predictions, names, wanted.answers, seen)
        for role, seen, seen_images, predictions in studied.answers("scenarios", images)
    }
    return ScenarioStudy(studied.images("scenarios", images), names, answers)


def write_scenarios(folder: Path, params: StudyParams, study: ScenarioStudy) -> None:
    """Write accuracy by model, scenario and class, and the regression of it where all models saw the same images."""
    cells = scenario_results.cells_of(study)
    write_table_csv(folder / "scenario_accuracies.csv", cells)
    base = params.scenarios.baselines
    found = None
    if params.images == "union":
        found = scenario_results.regression_of(study, cells, (base.model, base.scenario, base.class_index))
    if found is not None:
        write_table_csv(folder / "scenario_regression.csv", found.estimates)
        write_table_csv(folder / "scenario_anova.csv", found.anova)
        write_table_csv(folder / "scenario_fitted.csv", found.fitted)


def write_csv(path: Path, names: Sequence[str], rows: Iterable[tuple[object, ...]]) -> None:
    """Write rows as CSV, numbers with as many digits as tell them apart, NaN as nothing."""
    write_table_csv(path, pd.DataFrame(list(rows), columns=list(names)))


def write_table_csv(path: Path, table: pd.DataFrame) -> None:
    """Write a table as CSV, as `write_csv` does."""
    write_text(path, table.to_csv(index=False, lineterminator="\n"))


def metrics_of(family: str, lines: Iterable[Line], selection: str) -> Mapping[str, Mapping[str, float | None]]:
    """The lines of `dvc metrics show`: the measures on one selection, with the intervals of WITH_INTERVALS."""
    found: dict[str, dict[str, float | None]] = defaultdict(dict)
    for line in lines:
        if line.selection != selection:
            continue
        name = "/".join(part for part in (family, line.measure, line.change) if part)
        ends = {"": line.value}
        if line.measure in WITH_INTERVALS:
            ends |= {"_low": line.low, "_high": line.high}
        for end, value in ends.items():
            found[name + end][line.model] = round(value, 6) if np.isfinite(value) else None
    return found
