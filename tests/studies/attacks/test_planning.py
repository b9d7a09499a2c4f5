"""The plan of a small study of attacks: real networks, no DVC."""

import json

import pandas as pd
import pytest
import yaml
from typer.testing import CliRunner

from cleanset.cli import app
from cleanset.planning.work import Plan
from cleanset.studies.attacks.attacking import run_attack
from cleanset.studies.attacks.planning import plan
from cleanset.studies.attacks.study import AttackStudy
from tests.studies.attacks.study import ROLE

pytestmark = pytest.mark.slow

ATTACKS = {
    "none": {}, "spsa": {"steps": 2, "samples": 4, "after": None}, "pgd": {"steps": 2, "max_steps": 2, "group": 2},
    "boundary": {"queries": 1_000_000},
}  # fmt: skip


@pytest.fixture
def asked(study: AttackStudy) -> AttackStudy:
    params = {"bootstrap": {"draws": 50}, "search_precision": "float64", "images": 3, "attacks": ATTACKS,
              "probe": {"images": 4, "steps": 2, "spsa_steps": 1, "spsa_samples": 2}}  # fmt: skip
    study.params_yaml.write_text(yaml.safe_dump(params, sort_keys=False))
    return study


def of(found: Plan, name: str) -> tuple[int, int, int, str]:
    """Images, passes forward and backward, and bound of an attack."""
    (work,) = (each.work for each in found.works if each.work.name == name)
    return work.images, work.passes.forward, work.passes.backward, work.bound


def test_a_plan(asked: AttackStudy) -> None:
    before = sorted(path.name for path in asked.folder.rglob("*"))
    found = plan(asked)
    assert [each.work.name for each in found.works] == [
        "none", "spsa", "pgd", "boundary", "guess", "warnings", "attack_results", "pages",
    ]  # fmt: skip
    # the verdict on each image and its candidate
    assert of(found, "none") == (3, 6, 0, "exact")
    assert of(found, "boundary") == (3, 3_000_006, 0, "at most")
    images, forward, backward, bound = of(found, "spsa")
    assert (images, backward, bound) == (3, 0, "measured")
    # five queries a step, of one step or two
    assert 3 * 5 + 6 <= forward <= 3 * 10 + 6
    images, forward, backward, bound = of(found, "pgd")
    # the verdicts, and the nearest file of each search
    assert (images, forward - backward, bound) == (3, 9, "measured")
    assert all(each.cost is not None and each.cost.seconds > 0 for each in found.works)
    # nothing was written
    assert sorted(path.name for path in asked.folder.rglob("*")) == before


def test_the_measured_passes_are_those_of_the_attack(asked: AttackStudy) -> None:
    """A trial of all images asks what the attack then asks."""
    forward = of(plan(asked), "spsa")[1]
    run_attack(asked, ROLE, "spsa")
    record = json.loads(asked.results("spsa", ROLE).record.read_text())
    assert record["attacked"] == 3
    queries = int(pd.read_parquet(asked.results("spsa", ROLE).table)["queries"].sum())
    assert forward == queries + 6


def test_the_command(asked: AttackStudy) -> None:
    """JSON, and a budget that refuses on one line."""
    done = CliRunner().invoke(app, ["plan", str(asked.folder), "--json", "--gpus", "4"])
    assert done.exit_code == 0, done.output
    content = json.loads(done.stdout)
    assert content["gpus"] == 4
    assert content["passes"]["forward"] > 3_000_000
    assert content["hours"] > 0
