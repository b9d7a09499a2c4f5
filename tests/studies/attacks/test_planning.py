"""The plan of a small study of attacks: counts by the parameters, no DVC; measured on a few images its hours."""

import json
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from cleanset.cli import app
from cleanset.planning.stages import StageStates
from cleanset.studies.attacks.planning import study_works
from cleanset.studies.attacks.study import AllParams, AttackStudy
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


def planned(study: AttackStudy, *options: str) -> dict[str, dict[str, Any]]:
    """The computations of the plan by name."""
    done = CliRunner().invoke(app, ["plan", str(study.folder), "--json", *options], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return {each["name"]: each for each in json.loads(done.stdout)["works"]}


def counts(work: dict[str, Any]) -> tuple[int, int, int, bool]:
    """Images, passes forward and backward, and whether these are a bound."""
    return work["images"], work["passes"]["forward"], work["passes"]["backward"], work["is_bound"]


def test_a_plan(asked: AttackStudy) -> None:
    before = sorted(path.name for path in asked.folder.rglob("*"))
    works = planned(asked)
    assert sorted(path.name for path in asked.folder.rglob("*")) == before
    assert [*works] == ["none", "spsa", "pgd", "boundary", "guess", "warnings", "attack_results", "pages"]
    # the verdict on each image and its candidate
    assert counts(works["none"]) == (3, 6, 0, False)
    assert counts(works["boundary"]) == (3, 3_000_006, 0, True)
    assert counts(works["spsa"]) == (3, 3 * 2 * 5 + 6, 0, True)
    # two losses: two steps from the first place, and two files; the nearest one without gradient
    assert counts(works["pgd"]) == (3, 3 * 2 * 6 + 6, 3 * 2 * 5, True)
    assert works["warnings"]["images"] == 4
    assert {each["seconds"] for each in works.values()} == {None, 0}


def test_the_sources_of_a_model_are_all_others_of_the_edition(asked: AttackStudy) -> None:
    """Neither a further nor a wrapped model: signs are looked for on the edition's models, too."""
    works = study_works(asked, AllParams.read(asked), StageStates(changed=None))
    (of_role,) = (each for each in works if each.name == "warnings")
    assert of_role.model == ROLE
    assert of_role.of_image.backward == planned(asked)["warnings"]["passes"]["backward"] // 4


def test_measured_hours(asked: AttackStudy) -> None:
    """Each attack has its seconds by a few images; nothing that is found is kept."""
    asked.params_yaml.write_text(asked.params_yaml.read_text().replace("queries: 1000000", "queries: 3"))
    before = sorted(path.name for path in asked.folder.rglob("*"))
    works = planned(asked, "--measure")
    assert sorted(path.name for path in asked.folder.rglob("*")) == before
    assert {name for name, each in works.items() if each["seconds"]} == {"none", "spsa", "pgd", "boundary"}
    assert {each["finished"] for each in works.values()} == {0}
