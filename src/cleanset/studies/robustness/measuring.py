"""All measures of some models on one set of images, from their answers, as tables and metrics."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from cleanset.errors import CleansetError
from cleanset.files import replacing, write_text
from cleanset.metrics import write_metrics
from cleanset.statistics.bootstrap import Bootstrap
from cleanset.studies.robustness import corruption_results, perturbation_results, scenario_results
from cleanset.studies.robustness.answers import PREDICTIONS
from cleanset.studies.robustness.corruption_results import CorruptionStudy
from cleanset.studies.robustness.images import is_seen
from cleanset.studies.robustness.measure_files import ANSWERS, OFFICIAL
from cleanset.studies.robustness.measured_images import measured_images
from cleanset.studies.robustness.names import corruptions_of, perturbations_of
from cleanset.studies.robustness.perturbation_results import PerturbationStudy
from cleanset.studies.robustness.records import check_record, images_sha256, read_record
from cleanset.studies.robustness.results import Difference, Line, StudiedImages
from cleanset.studies.robustness.scenario_results import ScenarioStudy
from cleanset.studies.robustness.settings import StudyParams
from cleanset.studies.robustness.study import AnswerFiles
from cleanset.tables import read_table

WITH_INTERVALS = (
    "mean_error", "mce", "mean_fp", "mfr", "mean_t5d", "mt5d",
    "mean_accuracy", "score_as_published", "score_as_written",
)  # fmt: skip
"""The measures whose intervals are metrics, too."""

FamilyStudy = CorruptionStudy | PerturbationStudy | ScenarioStudy


@dataclass(frozen=True, slots=True, eq=False)
class Studied:
    """What is measured: models on images, with their answers.

    `images` and `masks`: rows of STUDY_IMAGES and MASKS. `models`: by name the stem of the files of its answers.
    `owners`: the roles that have sets. `selections`: those of `results.SELECTIONS` that are measured. `weights`: the
    SHA-256 that those of a model must have; the families of the others must agree.
    """

    images: pd.DataFrame
    masks: pd.DataFrame
    params: StudyParams
    models: Mapping[str, str]
    owners: Sequence[str]
    selections: Sequence[str]
    files: AnswerFiles
    weights: Mapping[str, str] = field(default_factory=dict)

    def answers(
        self, family: str, images: pd.DataFrame
    ) -> Iterator[tuple[str, np.ndarray, pd.DataFrame, pd.DataFrame]]:
        """By model: its name, which of the images it saw, these, and its answers."""
        for name, stem in self.models.items():
            seen = is_seen(images, self.params.images, name)
            table = PREDICTIONS[family]
            columns = [*table.key, "top5_class", "class_of_edition"]  # of 1.3 million frames all are gigabytes
            predictions = read_table(self.files.predictions(family, stem), table, columns)
            yield name, seen, images[seen], predictions

    def parameters(self, families: Iterable[str]) -> pd.DataFrame:
        """How many parameters each model has, from the record of its answers to the first of the families."""
        records = {
            name: read_record(self.files.record(family, stem))
            for family in list(families)[:1]
            for name, stem in self.models.items()
        }
        rows = [(name, record["parameters"]) for name, record in records.items()]
        return pd.DataFrame(rows, columns=["model", "parameters"])

    def check(self, families: Sequence[str]) -> None:
        """Raise CleansetError for answers with other weights, images, seed or JPEG quality than the study's."""
        params = self.params
        for name, stem in self.models.items():
            weights = self.weights.get(name)
            for family in families:
                images = measured_images(family, self.images, self.masks, params)
                seen = images[is_seen(images, params.images, name)]
                record = read_record(path := self.files.record(family, stem))
                weights = weights or record.get("weights_sha256")
                check_record(
                    path,
                    record,
                    {
                        "weights_sha256": weights,
                        "images_sha256": images_sha256(seen),
                        "seed": params.seed,
                        "jpeg": params.jpeg,
                    },
                )

    def images_of(self, family: str, images: pd.DataFrame) -> StudiedImages:
        """The images of a family as its measures take them."""
        return StudiedImages(
            images["class_index"].to_numpy(np.int64),
            images["sets"].tolist(),
            list(self.models),
            Bootstrap(resamples=self.params.bootstrap.draws, seed=f"{family} {self.params.seed}"),
            self.selections,
            self.owners,
        )


def measure(
    studied: Studied, notices: Mapping[str, str], measures: Path, metrics: Path, official: Collection[str] = ()
) -> dict[str, list[Line]]:
    """Measure some of FAMILIES; write CSV files into the folder `measures`, and JSON files into `metrics`.

    `notices`: by family, what a reader of its numbers has to know. `official`: the families of which all published
    images were read. Returns the lines of each family. Raises CleansetError if answers are missing, or of other images,
    weights or seed than the study has, and for a family with fewer than two images.
    """
    found: dict[str, list[Line]] = {}
    written: dict[str, Mapping[str, float | None]] = {}
    families = list(notices)
    studied.check(families)
    with replacing(measures) as folder:
        folder.mkdir()
        write_csv(folder / "notices.csv", ("family", "notice"), notices.items())
        write_table_csv(folder / "models.csv", studied.parameters(families))
        for name in families:
            study = _study(name, studied)
            found[name] = list(study.lines())
            if not found[name]:
                raise CleansetError(
                    f"{name}: images to measure on: {len(study.images.classes)}; expected two or more, which intervals "
                    "need: take more images, or fewer families in the params"
                )
            tables = {name: pd.DataFrame(found[name], columns=Line._fields)}
            differences = pd.DataFrame(list(study.differences()), columns=Difference._fields)
            tables[f"{name.removesuffix('s')}_differences"] = differences
            tables |= _details(studied.params, study)
            labels = {OFFICIAL: "yes" if name in official else "no"}
            if name == "scenarios":
                labels[ANSWERS] = studied.params.scenarios.answers
            for stem, table in tables.items():
                write_table_csv(folder / f"{stem}.csv", table.assign(**labels))
            written |= metrics_of(name, found[name], studied.selections[0])
    write_metrics(metrics, written)
    return found


def _study(family: str, studied: Studied) -> FamilyStudy:
    images = measured_images(family, studied.images, studied.masks, studied.params)
    if family == "corruptions":
        return corruption_study(studied, images)
    if family == "perturbations":
        return perturbation_study(studied, images)
    return scenario_study(studied, images)


def _details(params: StudyParams, study: FamilyStudy) -> dict[str, pd.DataFrame]:
    """What a family has by severity, frame or class, by the stem of its file."""
    if isinstance(study, CorruptionStudy):
        cells = corruption_results.by_severity(study)
        return {"corruption_errors": cells, "errors_by_severity": shares(cells, "severity", "errors", "error")}
    if isinstance(study, PerturbationStudy):
        frames = perturbation_results.by_frame(study)
        as_written = frames[frames["definition"] == "as_written"]
        return {"perturbation_frames": frames, "flips_by_frame": shares(as_written, "frame", "flips", "flips")}
    return scenario_tables(params, study)


def shares(cells: pd.DataFrame, step: str, counted: str, name: str) -> pd.DataFrame:
    """The share of the images that are counted, by model, change and step, as `dvc plots` draws it; 0 to 1."""
    sums = cells.groupby(["model", "change", step], sort=False)[["images", counted]].sum().reset_index()
    return sums[["model", "change", step]].assign(**{name: (sums[counted] / sums["images"]).round(6)})


def corruption_study(studied: Studied, images: pd.DataFrame) -> CorruptionStudy:
    """The corruptions of the params, with the answers to them."""
    wanted = studied.params.corruptions
    names, severities = corruptions_of(wanted.names), sorted(set(wanted.severities))
    answers = {
        name: corruption_results.read_answers(seen_images, predictions, names, severities).of_all(seen)
        for name, seen, seen_images, predictions in studied.answers("corruptions", images)
    }
    of_images = studied.images_of("corruptions", images)
    return CorruptionStudy(of_images, names, severities, answers, wanted.reference, wanted.trained_on)


def perturbation_study(studied: Studied, images: pd.DataFrame) -> PerturbationStudy:
    """The perturbations of the params, with the answers to them."""
    wanted = studied.params.perturbations
    frames = wanted.frame_counts()
    answers = {
        name: perturbation_results.read_answers(seen_images, predictions, frames, seen)
        for name, seen, seen_images, predictions in studied.answers("perturbations", images)
    }
    of_images = studied.images_of("perturbations", images)
    return PerturbationStudy(of_images, perturbations_of(wanted.names), answers, wanted.difficulty, wanted.reference)


def scenario_study(studied: Studied, images: pd.DataFrame) -> ScenarioStudy:
    """The scenarios of the params, with the answers to them."""
    wanted = studied.params.scenarios
    names = wanted.expanded()
    answers = {
        name: scenario_results.read_answers(seen_images, predictions, names, wanted.answers, seen)
        for name, seen, seen_images, predictions in studied.answers("scenarios", images)
    }
    return ScenarioStudy(studied.images_of("scenarios", images), names, answers)


def scenario_tables(params: StudyParams, study: ScenarioStudy) -> dict[str, pd.DataFrame]:
    """Accuracy by model, scenario and class, and what follows from it, by the stem of its file.

    That is what Score is made of, and the regression, where all models saw the same images.
    """
    cells = scenario_results.cells_of(study)
    found = {"scenario_accuracies": cells}
    if study.scenarios and len(cells):
        found["scenario_scores"] = scenario_results.score_parts(study)
    base = params.scenarios.baselines
    regression = None
    if params.images == "union":
        regression = scenario_results.regression_of(study, cells, (base.model, base.scenario, base.class_index))
    if regression is not None:
        found["scenario_regression"] = regression.estimates
        found["scenario_anova"] = regression.anova
        found["scenario_fitted"] = regression.fitted
    return found


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
