"""Stage measure: errors, CE and mCE of every model, with intervals. No model runs, no image is read."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from cleanset.edition.params import read_params
from cleanset.files import replacing, write_text
from cleanset.metrics import write_metrics
from cleanset.robustness.answers import PREDICTIONS
from cleanset.robustness.corruption_results import (
    SELECTIONS,
    CorruptionStudy,
    Difference,
    Line,
    differences,
    measured,
    read_answers,
    spread,
)
from cleanset.robustness.images import STUDY_IMAGES, is_seen
from cleanset.robustness.measures.bootstrap import Bootstrap
from cleanset.robustness.names import corruptions_of
from cleanset.robustness.study import Study, read_study_params
from cleanset.tables import read_table


def run(study: Study) -> None:
    """Read the images and the answers of all models, write data/measures/ and metrics/."""
    roles = list(read_params(study.edition.folder).models)
    params = read_study_params(study, roles)
    images = read_table(study.images, STUDY_IMAGES)
    corruptions, severities = corruptions_of(params.corruptions.names), sorted(set(params.corruptions.severities))
    answers = {}
    for role in roles:
        seen = is_seen(images, params.images, role)
        predictions = read_table(study.predictions(role), PREDICTIONS)
        answers[role] = spread(read_answers(images[seen], predictions, corruptions, severities), seen)
    found = CorruptionStudy(
        images["class_index"].to_numpy(np.int64),
        images["sets"].tolist(),
        corruptions,
        severities,
        answers,
        params.corruptions.reference,
        params.corruptions.trained_on,
        Bootstrap(resamples=params.bootstrap.draws, seed=f"corruptions {params.seed}"),
        SELECTIONS if params.images == "union" else ("own",),
    )
    lines = list(measured(found))
    with replacing(study.measures) as folder:
        write_csv(folder / "corruptions.csv", Line._fields, lines)
        write_csv(folder / "corruption_differences.csv", Difference._fields, list(differences(found)))
        write_text(folder / "corruption_errors.csv", by_severity(found).to_csv(index=False, lineterminator="\n"))
    write_metrics(study.metrics, metrics_of(lines, found.selections[0]))


def write_csv(path: Path, names: Sequence[str], rows: Iterable[tuple[object, ...]]) -> None:
    """Write rows as CSV, numbers with as many digits as tell them apart, NaN as nothing."""
    write_text(path, pd.DataFrame(list(rows), columns=list(names)).to_csv(index=False, lineterminator="\n"))


def by_severity(study: CorruptionStudy) -> pd.DataFrame:
    """The misclassified images by model, corruption, severity and class, of the first of the study's selections."""
    seen = {role: study.selected(study.selections[0], role) for role in study.answers}
    rows = [
        (role, change, severity, class_index, len(wrong), int(wrong[:, i, j].sum()))
        for role, answers in study.answers.items()
        for class_index in np.unique(study.classes).tolist()
        for wrong in (answers.corrupted[seen[role] & (study.classes == class_index)],)
        for i, change in enumerate(study.corruptions)
        for j, severity in enumerate(study.severities)
    ]
    return pd.DataFrame(rows, columns=["model", "change", "severity", "class_index", "images", "errors"])


def metrics_of(lines: Iterable[Line], selection: str) -> Mapping[str, Mapping[str, float | None]]:
    """The lines of `dvc metrics show`: the measures on one selection, with the intervals of mean error and mCE."""
    found: dict[str, dict[str, float | None]] = defaultdict(dict)
    for line in lines:
        if line.selection != selection:
            continue
        name = "/".join(part for part in ("corruptions", line.measure, line.change) if part)
        ends = {"": line.value}
        if line.measure in ("mean_error", "mce"):
            ends |= {"_low": line.low, "_high": line.high}
        for end, value in ends.items():
            found[name + end][line.model] = round(value, 6) if np.isfinite(value) else None
    return found
