"""What `cleanset plan` says before something runs, against what it then takes.

`python bench/planned.py [attacks] [robustness] [training] [evaluate] [--only TEXT]`: the sample's studies, stage by
stage, and, as `evaluate`, a model of the sample on its set, on changed images of it and under attacks: by default all,
or the stages whose names contain one of the texts. Seconds are those of all processes and cores, which other work on
the machine changes less than the clock's. Nothing is finished before: plan and run are of everything. Plans take
minutes, all runs an hour on two cores; `evaluate` is five minutes of that.
"""

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cleanset.planning.launch import process_seconds
from measuring import BIN, PROJECT, print_machine, print_table, scratch

LIMIT = 0.3
"""Relative difference of a plan from what its stages take."""
TRAINING_IMAGES = 20
"""Drawn images of each class."""
STUDIES = ("attacks", "robustness", "training")
EVALUATE = "evaluate"
EVALUATED = ["standard", "--model", "corruption_robust"]
"""The set, and the model."""
CORRUPTIONS = "corruptions: {names: [gaussian_noise, contrast, zoom_blur, fog], severities: [1, 3, 5]}"
ATTACKS = """
attacks:
  pgd: {steps: 8, max_steps: 8, group: 4}
  spsa: {steps: 5, samples: 16, after: null}
images: 12
probe: {images: 8, steps: 4, spsa_steps: 2, spsa_samples: 8}
"""
"""Few steps, so that plan and run take a minute or two."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    everything = (*STUDIES, EVALUATE)
    parser.add_argument("studies", nargs="*", default=everything, help=", ".join(everything))
    parser.add_argument("--only", action="append", default=[], help="stages whose names contain this")
    asked = parser.parse_args()
    print_machine()
    rows = []
    with scratch() as folder:
        project = copy_of_sample(folder / "cleanset", asked.studies)
        for study in asked.studies:
            if study == EVALUATE:
                rows += compared_commands(project, folder)
            else:
                rows += compared(project / "studies" / study, study, asked.only)
    print_table(
        f"Limit: {LIMIT:g} of what the stages take",
        ("study", "stages", "planned, s", "taken, s", "planned by taken"),
        rows,
    )


def copy_of_sample(folder: Path, studies: Sequence[str]) -> Path:
    """A clone of this checkout with the sample's data, none of its studies' results, and their images."""
    subprocess.run(["git", "clone", "--quiet", PROJECT, folder], check=True)
    shutil.copytree(PROJECT / "data", folder / "data", dirs_exist_ok=True)
    if not {*studies} & {*STUDIES}:
        return folder
    (folder / "studies" / "robustness" / "generated").mkdir(exist_ok=True)
    (folder / "studies" / "robustness" / "backgrounds").mkdir(exist_ok=True)
    cleanset(folder / "studies" / "robustness", "robustness", "stage", "images")
    if "training" in studies:
        draw = [sys.executable, "training_images.py", "--per-class", str(TRAINING_IMAGES)]
        subprocess.run(draw, cwd=folder / "sample", check=True)
        cleanset(folder / "studies" / "training", "training", "data")
    return folder


def cleanset(folder: Path, *arguments: str) -> float:
    """Run a command in a study; the seconds of all its processes."""
    study = ["--study", str(folder)]
    return process_seconds([str(BIN / "cleanset"), *arguments, *study]).processor_seconds


def compared(folder: Path, study: str, only: Sequence[str]) -> list[tuple[str, ...]]:
    """A row for each stage that runs, and the sum."""
    command = [str(BIN / "cleanset"), "plan", str(folder), "--json"]
    plan = json.loads(subprocess.check_output(command, text=True))
    planned = dict[str, float]()
    first = dict[str, Mapping[str, Any]]()
    for work in plan["works"]:
        name = work["stage"]
        if work["state"] != "needed" or work["cost"] is None:
            continue
        # known mistakes are read from the results of the other study, and the tables of attacks need them
        is_left_out = study == "attacks" and (name.startswith("guess@") or not work["model"])
        if is_left_out or (only and not any(text in name for text in only)):
            continue
        cost = work["cost"]
        planned[name] = planned.get(name, 0.0) + cost["start"] + cost["device"] + cost["cores"]
        first.setdefault(name, work)
    rows = []
    for name, work in first.items():
        taken = cleanset(folder, *command_of(study, work))
        rows.append((name, planned[name], taken))
        # a plan is worth something while the rest still runs
        print(f"{name}: planned {planned[name]:.1f} s, taken {taken:.1f} s", flush=True)
    total = (f"{study}, all", sum(each[1] for each in rows), sum(each[2] for each in rows))
    return [row(study, *each) for each in [*rows, total]]


def compared_commands(project: Path, folder: Path) -> list[tuple[str, ...]]:
    """A row for each evaluating command."""
    corruptions, attacks = folder / "corruptions.yaml", folder / "attacks.yaml"
    corruptions.write_text(CORRUPTIONS)
    attacks.write_text(ATTACKS)
    commands = [
        ["evaluate", *EVALUATED],
        ["robustness", "evaluate", *EVALUATED, "--params", str(corruptions)],
        ["attacks", "evaluate", *EVALUATED, "--attacks", str(attacks)],
    ]
    rows = []
    for number, command in enumerate(commands):
        of_edition = [*command, "--edition", str(project), "--out", str(folder / f"out{number}")]
        plan = json.loads(subprocess.check_output([BIN / "cleanset", "plan", *of_edition, "--json"], text=True))
        name = " ".join(command[: command.index(EVALUATED[0])])
        planned = plan["processor_hours"] * 3600
        taken = process_seconds([str(BIN / "cleanset"), *of_edition]).processor_seconds
        rows.append(row(EVALUATE, name, planned, taken))
        print(f"{name}: planned {planned:.1f} s, taken {taken:.1f} s", flush=True)
    return rows


def command_of(study: str, work: Mapping[str, Any]) -> list[str]:
    """The command of a stage, as its dvc.yaml has it."""
    name = work["name"]
    model = work["model"]
    if study == "training":
        return ["training", name] if name in ("data", "summary") else ["training", "train", "--run", name]
    if not model:
        pages = "attack-pages" if study == "attacks" else "pages"
        return ["robustness", "stage", {"attack_results": "attack-results", "pages": pages}.get(name, name)]
    if study == "robustness":
        family = [] if work["stage"].startswith("further@") else ["--family", name]
        return ["robustness", "stage", "answers", "--model", model, *family]
    if name == "warnings":
        return ["robustness", "stage", "attack-warnings", "--model", model]
    return ["robustness", "stage", "attacks", "--model", model, "--attack", name]


def row(study: str, name: str, planned: float, taken: float) -> tuple[str, ...]:
    """A row of the table."""
    return study, name, f"{planned:.1f}", f"{taken:.1f}", f"{planned / taken:.2f}"


if __name__ == "__main__":
    main()
