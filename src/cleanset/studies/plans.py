"""The plan of any folder: an edition, or a study of robustness, attacks or training; and its start."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.planning import stages
from cleanset.planning.work import Count, Plan
from cleanset.plumbing.yaml_files import read_yaml

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


def counting(folder: Path, grid: str | None) -> Count:
    """Counts the work of a folder; `grid`: only for a training study. Raises CleansetError as the stages do."""
    kind = kind_of_folder(folder)
    if kind == "training":
        from cleanset.studies.training import planning as of_training
        from cleanset.studies.training.study import TrainingStudy

        return partial(of_training.plan, TrainingStudy(folder), grid)
    if grid is not None:
        raise CleansetError(f"--grid {grid}: goes with a study of training; {folder} is of kind {kind}")
    if kind == "attacks":
        from cleanset.studies.attacks import planning as of_attacks
        from cleanset.studies.attacks.study import AttackStudy

        return partial(of_attacks.plan, AttackStudy(folder))
    if kind == "robustness":
        from cleanset.studies.robustness import planning as of_robustness
        from cleanset.studies.robustness.images import Study

        return partial(of_robustness.plan, Study(folder))
    from cleanset.planning import edition as of_edition

    return partial(of_edition.plan, Edition(folder))


def budget_of(folder: Path) -> float | None:
    """The budget in hours that the params of a study of training have; None: none."""
    from cleanset.studies.training.study import StudyInputs, TrainingStudy

    return StudyInputs.read(TrainingStudy(folder)).params.budget_hours


def start(kind: str, folder: Path, found: Plan, grid: str | None) -> None:
    """Run the stages of a plan that are needed, by DVC; trainings first on all devices at a time.

    Raises CleansetError if one fails.
    """
    needed = list(dict.fromkeys(each.stage for each in found.needed if each.stage))
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
