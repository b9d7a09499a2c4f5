"""What DVC says of stages."""

import subprocess
from pathlib import Path

import pytest

from cleanset.planning.stages import StageStates, stage_states

DELETED = {"changed outs": {"data/runs/one": "deleted"}}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([DELETED], True),
        ([{"changed outs": {"data/runs/one": "modified"}}], False),
        ([{"changed outs": {"data/runs/one": "deleted", "costs/one.json": "modified"}}], False),
        ([{"changed deps": {"data/division.csv": "modified"}}, DELETED], False),
        ([DELETED, "changed command"], False),
        (["always changed"], False),
    ],
)
def test_only_outputs_are_missing(changes: list[object], expected: bool) -> None:
    """DVC's cache may then have them."""
    states = StageStates(changed={"train@one": changes})
    assert states.lacks_only_outputs("train@one") is expected
    assert (states.state("train@one"), states.state("train@two")) == ("needed", "finished")
    assert not states.lacks_only_outputs("train@two")
    assert not StageStates(changed=None).lacks_only_outputs("train@one")


@pytest.mark.slow
def test_what_comes_after_a_changed_stage_is_needed(tmp_path: Path) -> None:
    stages = {"a": ("input", "one"), "b": ("one", "two"), "c": ("two", "three"), "apart": ("other", "four")}
    lines = ["stages:"]
    for name, (dep, out) in stages.items():
        lines += [f"  {name}:", f"    cmd: cp {dep} {out}", f"    deps: [{dep}]", f"    outs: [{out}]"]
    (tmp_path / "dvc.yaml").write_text("\n".join([*lines, ""]))
    for name in ("input", "other"):
        (tmp_path / name).write_text("1")
    for command in (["init", "--no-scm", "--quiet"], ["repro", "--quiet"]):
        subprocess.run(["dvc", *command], cwd=tmp_path, check=True)
    assert stage_states(tmp_path).changed == {}
    (tmp_path / "input").write_text("2")
    found = stage_states(tmp_path)
    assert {name: found.state(name) for name in stages} == {
        "a": "needed", "b": "needed", "c": "needed", "apart": "finished",
    }  # fmt: skip
    assert not found.lacks_only_outputs("b")
