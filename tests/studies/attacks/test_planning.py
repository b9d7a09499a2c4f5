"""The plan of a small study of attacks: real networks, no DVC."""

import json
from typing import Any

import pandas as pd
import pytest
import torch
import yaml
from typer.testing import CliRunner

from cleanset.cli import app
from cleanset.planning.stages import StageStates
from cleanset.scoring.devices import Device
from cleanset.studies.attacks.attack_stage import run_attack
from cleanset.studies.attacks.planning import _Planner
from cleanset.studies.attacks.pricing import ProbedModel, ratio_of_probe
from cleanset.studies.attacks.study import AllParams, AttackParams, AttackStudy
from tests.studies.attacks.conftest import copied
from tests.studies.attacks.study import ROLE

pytestmark = pytest.mark.slow

ATTACKS = {
    "none": {}, "spsa": {"steps": 2, "samples": 4, "after": None}, "pgd": {"steps": 2, "max_steps": 2, "group": 2},
    "boundary": {"queries": 1_000_000},
}  # fmt: skip


@pytest.fixture(scope="module")
def asked(made: AttackStudy, tmp_path_factory: pytest.TempPathFactory) -> AttackStudy:
    study = copied(made, tmp_path_factory.mktemp("asked") / "edition")
    params = {"bootstrap": {"draws": 50}, "search_precision": "float64", "images": 3, "attacks": ATTACKS,
              "probe": {"images": 4, "steps": 2, "spsa_steps": 1, "spsa_samples": 2}}  # fmt: skip
    study.params_yaml.write_text(yaml.safe_dump(params, sort_keys=False))
    return study


@pytest.fixture(scope="module")
def content(asked: AttackStudy) -> dict[str, Any]:
    """The plan as JSON; nothing was written."""
    before = sorted(path.name for path in asked.folder.rglob("*"))
    done = CliRunner().invoke(app, ["plan", str(asked.folder), "--json", "--gpus", "4"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in asked.folder.rglob("*")) == before
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def of(content: dict[str, Any], name: str) -> tuple[int, int, int, str]:
    """Images, passes forward and backward, and bound of an attack."""
    (work,) = (each for each in content["works"] if each["name"] == name)
    return work["images"], work["passes"]["forward"], work["passes"]["backward"], work["bound"]


def test_a_plan(content: dict[str, Any]) -> None:
    assert [each["name"] for each in content["works"]] == [
        "none", "spsa", "pgd", "boundary", "guess", "warnings", "attack_results", "pages",
    ]  # fmt: skip
    # the verdict on each image and its candidate
    assert of(content, "none") == (3, 6, 0, "exact")
    assert of(content, "boundary") == (3, 3_000_006, 0, "at most")
    images, forward, backward, bound = of(content, "spsa")
    assert (images, backward, bound) == (3, 0, "measured")
    # five queries a step, of one step or two
    assert 3 * 5 + 6 <= forward <= 3 * 10 + 6
    images, forward, backward, bound = of(content, "pgd")
    # the verdicts, and the nearest file of each search
    assert (images, forward - backward, bound) == (3, 9, "measured")
    assert of(content, "warnings")[3] == "measured"
    assert all(sum(each["cost"][key] for key in ("start", "device", "cores")) > 0 for each in content["works"])


def test_a_long_search_for_signs_is_not_tried() -> None:
    """On fewer images it would tell another time: it ends before it searches, as they show no sign."""

    def opened() -> ProbedModel:
        raise AssertionError("nothing is opened for it")

    assert ratio_of_probe(opened, AttackParams.model_validate({"attacks": ATTACKS}), 12, 30.1) is None


def test_the_sources_of_a_model_are_all_others_of_the_edition(asked: AttackStudy) -> None:
    """A further or wrapped model is none of them: those of the edition are its sources, without one left out."""
    planner = _Planner(
        study=asked, params=AllParams.read(asked), device=Device(torch.device("cpu")), states=StageStates(changed=None)
    )
    assert (planner.pricer(ROLE).sources, planner.pricer("wrapped").sources) == (0, 1)


def test_the_sums(content: dict[str, Any]) -> None:
    assert content["gpus"] == 4
    assert content["passes"]["forward"] > 3_000_000
    assert content["hours"] > content["hours_on_gpus"] > 0


def test_the_measured_passes_are_those_of_the_attack(content: dict[str, Any], asked: AttackStudy) -> None:
    """A trial of all images asks what the attack then asks."""
    run_attack(asked, ROLE, "spsa")
    record = json.loads(asked.results("spsa", ROLE).record.read_text())
    assert record["attacked"] == 3
    queries = int(pd.read_parquet(asked.results("spsa", ROLE).table)["queries"].sum())
    assert of(content, "spsa")[1] == queries + 6
