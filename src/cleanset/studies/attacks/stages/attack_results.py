"""Stage attack_results: the table of all attacks on all models. No model runs, no image is read."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

import numpy as np

from cleanset.edition.params import read_params
from cleanset.metrics import write_metrics
from cleanset.statistics.bootstrap import Bootstrap
from cleanset.studies.attacks.measures import AttackMeasure, attack_measures
from cleanset.studies.attacks.params import AttackParams, read_attack_params
from cleanset.studies.attacks.results import ATTACKED
from cleanset.studies.attacks.study import AttackStudy
from cleanset.studies.robustness.measuring import write_csv
from cleanset.tables import read_table

SHOWN = ("success", "error", "queries")
"""The measures in `dvc metrics show`; error comes with its interval."""


def run(study: AttackStudy, params: AttackParams | None = None) -> None:
    """Read the results of all attacks, write data/attack_measures.csv and attack_metrics/."""
    roles = list(read_params(study.edition.folder).models)
    params = read_attack_params(study.params_yaml, roles) if params is None else params
    bootstrap = Bootstrap(resamples=params.bootstrap.draws, seed=f"attacks {params.seed}")
    lines = [
        line
        for name, model in params.runs(roles)
        for line in attack_measures(name, model, read_table(study.results(name, model).table, ATTACKED), bootstrap)
    ]
    write_csv(study.measures, AttackMeasure._fields, lines)
    # metrics are of the edition's models; the CSV file has the wrapped ones, too
    write_metrics(study.metrics, metrics_of(line for line in lines if line.model in roles))


def metrics_of(lines: Iterable[AttackMeasure]) -> Mapping[str, Mapping[str, float | None]]:
    """The lines of `dvc metrics show`."""
    found: dict[str, dict[str, float | None]] = defaultdict(dict)
    for line in lines:
        if line.measure in SHOWN:
            ends = {"": line.value}
            if line.measure == "error":
                ends |= {"_low": line.low, "_high": line.high}
            for end, value in ends.items():
                name = f"{line.attack}/{line.measure}{end}"
                found[name][line.model] = round(value, 6) if np.isfinite(value) else None
    return found
