"""The plan of any folder: an edition, or a study of robustness, attacks or training; and of models on a set."""

from collections.abc import Sequence
from pathlib import Path

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
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


def of_models(
    edition: Edition, images: str, models: Sequence[str], *, precision: str | None, device: str | None
) -> Plan:
    """The plan of measuring models on a set, named as for `cleanset evaluate`."""
    from cleanset.measure.command import Wanted
    from cleanset.measure.image_lists import open_set_or_list
    from cleanset.planning import evaluated

    wanted = Wanted(name=images, models=models, precision=precision, device=device)
    specs, score, roles = wanted.models_to_run(edition)
    return evaluated.plan(specs, open_set_or_list(images, edition, roles), score)
