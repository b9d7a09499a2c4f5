"""The cost of having nothing to do: dvc repro on the sample, the start of a stage, the imports."""

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import simulation
from measuring import BIN, PROJECT, Run, cleanset, figures, print_machine, print_table, run, scratch, share

ROUNDS = 9
REPRO_SECONDS = 3.0
START_SECONDS = 1.0
IMPORTS = (
    "numpy",
    "pandas",
    "pyarrow.parquet",
    "pydantic",
    "typer",
    "cleanset.cli",
    "cleanset.stages.intersect",
    "cleanset.stages.review_apply",
    "cleanset.stages.export",
    "cleanset.stages.score",
)
"""Imported modules; the last one brings torch and timm."""


def main() -> None:
    with scratch() as folder:
        simulation.write_edition(folder, [[label] for label in range(10)])
        simulation.write_params(folder)
        rows = [
            repro_row(),
            row("cleanset intersect, 10 images", partial(cleanset, "intersect", edition=folder), START_SECONDS),
            row("python, no import", partial(python, "pass", folder)),
            *(row(f"import {name}", partial(python, f"import {name}", folder)) for name in IMPORTS),
        ]
    print_machine()
    header = ("what", "seconds", "processor seconds", "limit", "of the limit")
    print_table(f"Nothing to do, median of {ROUNDS} runs", header, rows)


def repro_row() -> tuple[str, ...]:
    """Time `dvc repro` where it has nothing to do; where it would run something, say so instead."""
    name = "dvc repro, sample, nothing to do"
    if subprocess.run([BIN / "dvc", "status", "--quiet"], cwd=PROJECT, capture_output=True, check=False).returncode:
        return f"{name}: run make repro first", "", "", f"{REPRO_SECONDS:g}", ""
    return row(name, partial(run, BIN / "dvc", "repro", cwd=PROJECT), REPRO_SECONDS)


def row(name: str, work: Callable[[], Run], limit: float | None = None) -> tuple[str, ...]:
    seconds, processor_seconds, _ = figures([work() for _ in range(ROUNDS)])
    against = (f"{limit:g}", share(seconds, limit)) if limit else ("", "")
    return name, f"{seconds:.2f}", f"{processor_seconds:.2f}", *against


def python(code: str, folder: Path) -> Run:
    return run(sys.executable, "-c", code, cwd=folder)


if __name__ == "__main__":
    main()
