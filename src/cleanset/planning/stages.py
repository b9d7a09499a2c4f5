"""DVC in a plan: which stages it finds up to date, and starting what is needed."""

import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cleanset.edition.dvc_files import dvc_stages
from cleanset.errors import CleansetError
from cleanset.planning.work import State, Work
from cleanset.plumbing.interpreter import python_command

if TYPE_CHECKING:
    from dvc.stage import Stage as LoadedStage


@dataclass(frozen=True, slots=True, kw_only=True)
class StageStates:
    """The stages that DVC would run; without DVC's answer all of them."""

    changed: Mapping[str, object] | None
    """By the name of a stage, what has changed, or nothing if an earlier stage has; None: DVC could not be asked."""

    def state(self, stage: str) -> State:
        """Whether a stage is needed."""
        return "needed" if self.changed is None or stage in self.changed else "finished"

    def lacks_only_outputs(self, stage: str) -> bool:
        """Whether nothing of a stage has changed but that outputs are missing, which DVC's cache may have."""
        changes = (self.changed or {}).get(stage)
        if not isinstance(changes, list) or not changes:
            return False
        parts = [part for each in changes if isinstance(each, dict) for part in each.items()]
        return len(parts) == len(changes) and all(
            name == "changed outs" and set(found.values()) == {"deleted"} for name, found in parts
        )


def stage_states(folder: Path) -> StageStates:
    """Ask DVC about the dvc.yaml of a folder. Raises CleansetError as `dvc_stages` does.

    All that comes after a stage counts with it, though DVC runs it only where an input turns out to be another one.
    """
    pipeline = folder / "dvc.yaml"
    if not pipeline.is_file():
        return StageStates(changed=None)
    try:
        with dvc_stages(pipeline) as stages:
            changed = {stage.name: changes for stage in stages for changes in stage.status().values()}
            later = _later_stages([each for each in stages if each.name in changed])
    except ModuleNotFoundError:
        return StageStates(changed=None)
    return StageStates(changed=dict.fromkeys(later) | changed)


def _later_stages(stages: Sequence["LoadedStage"]) -> list[str]:
    """The stages of the same dvc.yaml that come after any of these in DVC's graph, whose edges lead to dependencies."""
    from networkx import ancestors

    found = [later for stage in stages for later in ancestors(stage.repo.index.graph, stage)]
    return [each.name for each in found if each.path == stages[0].path]


def without_network(stage: str, states: StageStates) -> Work:
    """A stage without a network, which takes seconds or minutes."""
    return Work(name=stage, stage=stage, state=states.state(stage))


def reproduce(folder: Path, stages: Iterable[str]) -> None:
    """Run these stages by DVC. Raises CleansetError if it fails."""
    _run("dvc repro", python_command("-m", "dvc", "repro", *stages), folder)


def restore(folder: Path, stages: Sequence[str]) -> None:
    """Take what DVC's cache has of the missing outputs of stages; what it lacks stays missing."""
    command = python_command("-m", "dvc", "checkout", "--quiet", *stages)
    subprocess.run(command, cwd=folder, capture_output=True, check=False)


def run_command(folder: Path, *arguments: str) -> None:
    """Run a command of cleanset in a folder, in a process of its own. Raises CleansetError if it fails."""
    _run(f"cleanset {' '.join(arguments)}", python_command("-m", "cleanset", *arguments), folder)


def _run(name: str, command: Sequence[str], folder: Path) -> None:
    if subprocess.run(command, cwd=folder, check=False).returncode:
        raise CleansetError(f"{name} failed; expected every stage to finish: see its messages above, then run again")
