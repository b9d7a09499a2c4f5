"""`cleanset plan COMMAND …` on an edition of four drawn images and one small network, before and after the command."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cleanset.cli import app
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.studies.attacks import earlier_disk
from cleanset.studies.plan_commands import is_of_command
from tests.studies.attacks.study import ROLE, made_study

pytestmark = pytest.mark.slow

CORRUPTIONS = "jpeg: null\ncorruptions: {names: [contrast], severities: [1, 2]}\nbootstrap: {draws: 20}\n"
ATTACKS = """
bootstrap: {draws: 20}
images: 2
attacks:
  none: {}
  spsa: {steps: 2, samples: 4, after: null}
probe: {images: 3, steps: 1, spsa_steps: 1, spsa_samples: 2}
"""


@pytest.fixture(scope="module")
def edition(tmp_path_factory: pytest.TempPathFactory) -> Edition:
    """An edition with a set of four images."""
    return made_study(tmp_path_factory.mktemp("planned")).edition


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["evaluate", "standard"], True), (["attacks", "evaluate", "--help"], True), (["hints"], True),
        (["attacks"], False), (["./evaluate"], False), (["attacks", "--json", "evaluate"], False), ([], False),
    ],
)  # fmt: skip
def test_words_of_a_command(words: Sequence[str], expected: bool) -> None:
    """Other words are the folder of an edition or a study."""
    assert is_of_command(words) is expected


def asked(edition: Edition, *words: str) -> list[str]:
    """A command on the set of the edition, by its model."""
    name = words.index("SET")
    named = [*words[:name], str(edition.export(ROLE)), *words[name + 1 :]]
    return [*named, "--model", ROLE, "--edition", str(edition.folder)]


def planned(command: Sequence[str]) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["plan", *command, "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def rows(command: Sequence[str]) -> list[tuple[object, ...]]:
    """For each computation its name, state, images, finished ones, and passes forward."""
    keys = ("name", "state", "images", "finished")
    return [(*(work[key] for key in keys), work["passes"]["forward"]) for work in planned(command)["works"]]


def run(command: Sequence[str]) -> None:
    done = CliRunner().invoke(app, command, catch_exceptions=False)
    assert done.exit_code == 0, done.output


@pytest.mark.long
def test_evaluate(edition: Edition, tmp_path: Path) -> None:
    """What an earlier run has finished is not counted: all of it, or shards of an interrupted one."""
    command = asked(edition, "evaluate", "SET", "--out", str(tmp_path / "out"))
    assert rows(command) == [("evaluate", "needed", 4, 0, 4)]
    assert not (tmp_path / "out").exists()
    run(command)
    assert rows(command) == [("evaluate", "finished", 4, 4, 0)]
    # among the images' classes alone the predictions are others
    assert rows([*command, "--restricted"]) == [("evaluate", "needed", 4, 0, 4)]


@pytest.mark.long
def test_robustness_evaluate(edition: Edition, tmp_path: Path) -> None:
    """Each image unchanged and in two severities, and once more by the model's own preprocessing."""
    params = tmp_path / "changes.yaml"
    params.write_text(CORRUPTIONS)
    command = asked(edition, "robustness", "evaluate", "SET", "--params", str(params), "--out", str(tmp_path / "out"))
    content = planned(command)
    (work,) = content["works"]
    assert (work["name"], work["images"], work["passes"]) == ("corruptions", 12, {"forward": 16, "backward": 0})
    assert work["changes"] == 3
    assert not (tmp_path / "out").exists()
    run(command)
    assert rows(command) == [("corruptions", "finished", 12, 0, 0)]


@pytest.mark.exhaustive
def test_attacks_evaluate(edition: Edition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two images of each attack, three of the search for signs, and the files of all of them judged again."""
    # a process that bubblewrap begins imports torch again, which takes seconds
    monkeypatch.setattr(earlier_disk, "beginning", lambda *_: None)
    params = tmp_path / "attacks.yaml"
    params.write_text(ATTACKS)
    command = asked(edition, "attacks", "evaluate", "SET", "--attacks", str(params), "--out", str(tmp_path / "out"))
    content = planned(command)
    works = {work["name"]: work for work in content["works"]}
    assert {name: work["images"] for name, work in works.items()} == {
        "none": 2, "spsa": 2, "warnings": 3, "judged again": 2 + 2 + 3 + 3,
    }  # fmt: skip
    # an image and its candidate are judged
    assert (works["none"]["passes"]["forward"], works["none"]["is_bound"]) == (4, False)
    # five queries a step
    assert (works["spsa"]["passes"]["forward"], works["spsa"]["is_bound"]) == (4 + 2 * 10, True)
    assert works["judged again"]["passes"] == {"forward": 10, "backward": 0}
    assert not (tmp_path / "out").exists()
    command.append("--no-warnings")
    run(command)
    assert rows(command) == [("none", "finished", 2, 0, 0), ("spsa", "finished", 2, 0, 0)]


@pytest.mark.long
def test_a_start(edition: Edition, tmp_path: Path) -> None:
    """A sample of the images is measured, and nothing is kept."""
    command = asked(edition, "evaluate", "SET", "--out", str(tmp_path / "out"))
    assert rows([*command, "--measure"]) == [("evaluate", "needed", 4, 0, 4)]
    assert not (tmp_path / "out").exists()


def test_a_program_is_counted(edition: Edition) -> None:
    command = asked(edition, "evaluate", "SET")
    command[command.index(ROLE, command.index("--model"))] = "mine=command:cat"
    assert rows(command) == [("evaluate", "needed", 4, 0, 4)]


@pytest.mark.long
def test_a_model_that_cannot_be_started_ends_in_its_reason(edition: Edition, tmp_path: Path) -> None:
    """After the table, in which its hours are not known."""
    command = asked(edition, "evaluate", "SET", "--out", str(tmp_path / "out"))
    command[command.index(ROLE, command.index("--model"))] = "mine=command:no-such-program"
    assert rows(command) == [("evaluate", "needed", 4, 0, 4)]
    with pytest.raises(
        CleansetError, match=r"evaluate mine could not be measured, so its hours are not known: .*no-such"
    ):
        CliRunner().invoke(app, ["plan", *command, "--measure"], catch_exceptions=False)


@pytest.mark.long
def test_hints(edition: Edition) -> None:
    command = ["hints", str(edition.export(ROLE)), "--no-text"]
    assert rows(command) == [("hints", "needed", 4, 0, 0)]
    with pytest.raises(CleansetError, match="the hours of 1 of 1 computations are not known; expected"):
        CliRunner().invoke(app, ["plan", *command, "--budget-hours", "1"], catch_exceptions=False)
    assert rows([*command, "--measure", "--budget-hours", "1"]) == [("hints", "needed", 4, 0, 0)]
