"""The plan of any folder: an edition, or a study of robustness, attacks or training; and its start."""

from collections.abc import Sequence
from pathlib import Path

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.planning import stages
from cleanset.planning.work import Plan
from cleanset.yaml_files import read_yaml

STUDIES = ("robustness", "attacks", "training")
"""The names of the folders of studies that have a plan."""


def kind_of_folder(folder: Path) -> str:
    """The kind of a folder: that of an edition by its params.yaml, that of a study by its name.

    Raises CleansetError for another folder.
    """
    path = folder / "params.yaml"
    expected = "the folder of an edition, or of a study of robustness, attacks or training"
    content = read_yaml(path, f"expected {expected}", merges=True)
    if isinstance(content, dict) and "dataset" in content:
        return "edition"
    name = folder.resolve().name
    if name not in STUDIES:
        raise CleansetError(
            f"{folder}: neither an edition nor in a folder named {', '.join(STUDIES)}; expected {expected}"
        )
    return name


def of_folder(folder: Path, grid: str | None, steps: int, budget: float | None) -> tuple[Plan, float | None]:
    """The plan of a folder, and its budget in hours: `budget`, or else the one of its params.

    `grid`: of a study of training alone; `steps`: of each run that are timed. Raises CleansetError as the stages do.
    """
    kind = kind_of_folder(folder)
    if kind == "training":
        from cleanset.studies.training import planning as of_training
        from cleanset.studies.training.study import StudyInputs, TrainingStudy

        study = TrainingStudy(folder)
        known = StudyInputs.read(study).params.budget_hours if budget is None else budget
        return of_training.plan(study, grid, steps), known
    if grid is not None:
        raise CleansetError(f"--grid {grid}: goes with a study of training; {folder} is of kind {kind}")
    if kind == "attacks":
        from cleanset.studies.attacks import planning as of_attacks
        from cleanset.studies.attacks.study import AttackStudy

        return of_attacks.plan(AttackStudy(folder)), budget
    if kind == "robustness":
        from cleanset.studies.robustness import planning as of_robustness
        from cleanset.studies.robustness.images import Study

        return of_robustness.plan(Study(folder)), budget
    from cleanset.planning import edition as of_edition

    return of_edition.plan(Edition(folder)), budget


def start(kind: str, folder: Path, found: Plan, grid: str | None) -> None:
    """Run the stages of a plan that are needed, by DVC; trainings first on all devices at a time.

    Raises CleansetError if one fails.
    """
    needed = list(dict.fromkeys(each.work.stage for each in found.needed if each.work.stage))
    if not needed:
        print("nothing is left to do")
        return
    if kind == "training":
        _train(folder, needed, grid)
    stages.reproduce(folder, needed)


def _train(folder: Path, needed: Sequence[str], grid: str | None) -> None:
    """Train what is needed on all devices; stages then take it over."""
    if "data" in needed:
        stages.reproduce(folder, ["data"])
    states = stages.stage_states(folder)
    if missing := [stage for stage in needed if states.lacks_only_outputs(stage)]:
        stages.restore(folder, missing)
    if any(stage.startswith("train") for stage in needed):
        stages.run_command(folder, "training", "train", *([] if grid is None else ["--grid", grid]))
