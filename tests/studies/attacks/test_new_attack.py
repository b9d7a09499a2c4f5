"""A new attack is one module and one line: params, search, record, measures and page follow from these."""

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from cleanset.errors import CleansetError
from cleanset.studies.attacks import reporting
from cleanset.studies.attacks import study as attack_study
from cleanset.studies.attacks.attacking import run_attack, run_warnings
from cleanset.studies.attacks.page import parameters
from cleanset.studies.attacks.results import ATTACKED
from cleanset.studies.attacks.study import KINDS
from cleanset.tables import read_table
from tests.studies.attacks import toy
from tests.studies.attacks.study import ROLE, made_study

pytestmark = pytest.mark.slow

LINE = "    SquareAttack, TransferAttack, AutoAttackAttack, GuessAttack,\n"
"""The last line of ATTACKS."""


@pytest.fixture
def with_toy() -> ModuleType:
    """The module that has ATTACKS, but for its one line."""
    text = Path(str(attack_study.__file__)).read_text("utf-8")
    assert text.count(LINE) == 1
    module = ModuleType("study_with_toy")
    vars(module)["ToyAttack"] = toy.ToyAttack
    exec(compile(text.replace(LINE, f"{LINE}    ToyAttack,\n"), "study_with_toy", "exec"), vars(module))
    return module


def test_its_params(with_toy: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "params.yaml"
    path.write_text("attacks: {toy: {levels: 4}, darker: {kind: toy}}\n")
    found = with_toy.read_attack_params(path, [ROLE])
    assert [found.attack(name).levels for name in ("toy", "darker")] == [4, 9]
    assert "toy" in with_toy.AttackParams.model_validate({}).names
    path.write_text("attacks: {toy: {levels: 0}}\n")
    with pytest.raises(CleansetError, match=r"params\.yaml: attacks\.toy\.levels: expected greater than or equal to 1"):
        with_toy.read_attack_params(path, [ROLE])
    with pytest.raises(CleansetError, match=r"'toy': kind 'toy'; expected one of none, .*, guess"):
        attack_study.read_attack_params(path, [ROLE])


def test_it_is_run_and_shown(with_toy: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = made_study(tmp_path / "edition")
    given = {"attacks": {"none": {}, "toy": {"levels": 4}}, "probe": {"images": 1, "steps": 1, "spsa_steps": 1}}
    found = with_toy.AttackParams.model_validate(given)
    for name in found.names:
        run_attack(study, ROLE, name, found)
    table = read_table(study.results("toy", ROLE).table, ATTACKED)
    assert set(table["from_center"]) == {4 / 255}
    assert table["queries"].tolist() == [1] * len(table)
    record = json.loads(study.results("toy", ROLE).record.read_text())
    assert record["parameters"] == {"images": None, "kind": "toy", "levels": 4}
    assert {"pillow", "scikit-image"} <= set(record["versions"])
    reporting.write_measures(study, found)
    run_warnings(study, ROLE, found)
    study.params_yaml.write_text(json.dumps(given))
    monkeypatch.setattr(reporting, "read_attack_params", with_toy.read_attack_params)
    reporting.write_report(study)
    text = (study.report / "index.html").read_text("utf-8")
    assert "toy, eps 4/255" in text
    assert parameters(found, "toy") == "levels 4"


def test_attacks_are_known_by_their_kinds() -> None:
    assert list(KINDS) == [
        "none", "spatial_grid", "random_spatial", "spsa", "boundary", "common_corruptions", "pgd",
        "square", "transfer", "autoattack", "guess",
    ]  # fmt: skip


@pytest.mark.parametrize("module", ["study", "results", "warnings", "page"])
def test_params_and_records_are_read_without_torch(module: str) -> None:
    code = f"import sys, cleanset.studies.attacks.{module}; print(sorted({{'torch', 'foolbox'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
