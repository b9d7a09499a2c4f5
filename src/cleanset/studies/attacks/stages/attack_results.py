"""Stage attack_results: the table of all attacks on all models. No model runs, no image is read."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from cleanset.edition.params import read_params
from cleanset.files import write_metrics
from cleanset.statistics.bootstrap import Bootstrap
from cleanset.studies.attacks.measures import AttackMeasure, attack_measures, worst_case_measures
from cleanset.studies.attacks.params import WORST_CASE, AttackParams, read_attack_params
from cleanset.studies.attacks.results import ATTACKED
from cleanset.studies.attacks.study import AttackStudy
from cleanset.studies.robustness.measuring import write_csv
from cleanset.studies.robustness.params import further_roles
from cleanset.tables import read_table

SHOWN = ("robust_accuracy", "success", "error", "queries")
"""The measures in `dvc metrics show`; the first and error come with their intervals."""
WITH_INTERVAL = ("robust_accuracy", "error")


def run(study: AttackStudy, params: AttackParams | None = None) -> None:
    """Read the results of all attacks, write data/attack_measures.csv and attack_metrics/."""
    roles = list(read_params(study.edition.folder).models)
    further = further_roles(study.robustness.params_yaml)
    params = read_attack_params(study.params_yaml, roles, further) if params is None else params
    bootstrap = Bootstrap(resamples=params.bootstrap.draws, seed=f"attacks {params.seed}")
    results = {
        (name, model): read_table(study.results(name, model).table, ATTACKED)
        for name, model in params.runs(roles, further)
    }
    lines = measure_lines(params, params.models(roles, further), results, bootstrap)
    write_csv(study.measures, AttackMeasure._fields, lines)
    # metrics are of the edition's models; the CSV file has the wrapped ones, too
    write_metrics(study.metrics, metrics_of(line for line in lines if line.model in roles))


def measure_lines(
    params: AttackParams,
    models: Sequence[str],
    results: Mapping[tuple[str, str], pd.DataFrame],
    bootstrap: Bootstrap,
) -> list[AttackMeasure]:
    """The measures of all attacks together by model, then those of each attack; `results` by attack and model."""
    lines = []
    for model in models:
        of_model = {
            name: found for (name, of), found in results.items() if of == model and params.attack(name).is_of_image
        }
        lines += worst_case_measures(WORST_CASE, model, of_model)
    for (name, model), found in results.items():
        lines += attack_measures(name, model, found, bootstrap)
    return lines


def metrics_of(lines: Iterable[AttackMeasure]) -> Mapping[str, Mapping[str, float | None]]:
    """The lines of `dvc metrics show`."""
    found: dict[str, dict[str, float | None]] = defaultdict(dict)
    for line in lines:
        if line.measure in SHOWN:
            ends = {"": line.value}
            if line.measure in WITH_INTERVAL:
                ends |= {"_low": line.low, "_high": line.high}
            for end, value in ends.items():
                name = f"{line.attack}/{line.measure}{end}"
                found[name][line.model] = round(value, 6) if np.isfinite(value) else None
    return found
