"""The params.yaml of studies/attacks, and that a new attack is one class and one name."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Literal, cast

import numpy as np
import pytest

from cleanset.classes import imagenet
from cleanset.edition.params import read_params
from cleanset.errors import CleansetError
from cleanset.studies.attacks import page
from cleanset.studies.attacks.attack_stage import run_attack
from cleanset.studies.attacks.base import Ball, Known, Other, Parameters, registered
from cleanset.studies.attacks.boundary import BoundaryAttack
from cleanset.studies.attacks.changes import RandomSpatialAttack, SpatialGridAttack, center_of
from cleanset.studies.attacks.gradient_attacks import PgdAttack, SpsaAttack
from cleanset.studies.attacks.page import parameters
from cleanset.studies.attacks.results import ATTACKED
from cleanset.studies.attacks.study import ATTACKS, AttackParams, AttackStudy, read_attack_params
from cleanset.studies.attacks.warning_stage import run_warnings
from cleanset.tables import read_table
from tests.studies.attacks.networks import drawn, subject
from tests.studies.attacks.study import ROLE
from tests.studies.attacks.toy import ToyAttack

pytestmark = pytest.mark.slow

OTHERS = {"a/1": Other(0, lambda: drawn(1)), "a/2": Other(1, lambda: drawn(2))}
KNOWN = Known(3, lambda: OTHERS)


def settings(tmp_path: Path, text: str) -> AttackParams:
    path = tmp_path / "params.yaml"
    path.write_text(text)
    return read_attack_params(path, ["standard"], imagenet())


def test_the_defaults_are_those_of_the_warm_up(tmp_path: Path) -> None:
    found = settings(tmp_path, "seed: 1\n")
    assert found.names == [
        "none", "spatial_grid", "random_spatial", "spsa", "boundary", "common_corruptions", "pgd",
        "square", "transfer", "autoattack", "guess",
    ]  # fmt: skip
    assert [found.images_of(name, "standard") for name in ("boundary", "spsa")] == [100, None]


def test_every_default_is_that_of_the_table() -> None:
    """The warm-up's, and for what it has none of those that its tables of results are made with."""
    found = {
        name: attack.model_dump(exclude={"kind"}) for name, attack in AttackParams.model_validate({}).attacks.items()
    }
    spatial = {"images": None, "scale": 204 / 224, "max_translation": 18, "max_angle": 30}
    after = spatial | {"kind": "random_spatial"}
    ball = {"images": None, "norm": "Linf", "eps": 4 / 255}
    angles = [
        -30, -28, -26, -24, -22, -20, -18, -16, -14, -12, -10, -8, -6, -4, -2, 0,
        2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30,
    ]  # fmt: skip
    assert found == {
        "none": {"images": None},
        "spatial_grid": {
            "images": None, "definition": "as_written", "scale": 158 / 224, "translations": [-18, -9, 0, 9, 18],
            "angles": angles,
        },
        "random_spatial": spatial,
        "spsa": {
            "images": None, "eps": 16 / 255, "steps": 200, "samples": 64, "learning_rate": 0.01, "delta": 0.01,
            "stop_margin": 1, "after": after,
        },
        "boundary": {"images": 100, "eps": 10, "queries": 105_000, "group": 10, "starts": None, "after": after},
        "common_corruptions": {"images": None, "corruptions": 17, "severity": 1},
        "pgd": ball | {
            "steps": 20, "max_steps": None, "step": None, "random_start": True, "losses": ["cross_entropy", "margin"],
            "restarts": 1, "files": 5, "draws": 1, "group": 16,
        },
        "square": ball | {"queries": 5000, "group": 16},
        "transfer": ball | {"steps": 20, "sources": None, "group": 16},
        "autoattack": ball | {
            "attacks": ["apgd-ce", "apgd-t", "fab-t", "square"], "steps": 100, "square_queries": 5000, "draws": 1,
            "group": 16,
        },
    }  # fmt: skip


def test_guess_is_always_there(tmp_path: Path) -> None:
    assert settings(tmp_path, "attacks: {none: {}}\n").names == ["none", "guess"]
    with pytest.raises(CleansetError, match="guess is always there; leave it out"):
        settings(tmp_path, "attacks: {guess: {}}\n")


def test_names_fractions_and_kinds(tmp_path: Path) -> None:
    text = """
images: 20
attacks:
  none:
  pgd: {eps: 8/255, steps: 7}
  pgd_l2: {kind: pgd, norm: L2, eps: 0.5, images: 5}
  common_corruptions: {corruptions: 19}
  spsa: {after: null}
wrapped: {noisy: {model: standard, wrapper: uninteresting, images: 7}}
"""
    found = settings(tmp_path, text)
    linf, l2, worst, spsa = (found.attack(name) for name in list(found.attacks)[1:])
    assert isinstance(linf, PgdAttack)
    assert (linf.ball, linf.length, linf.steps) == (Ball("Linf", 8 / 255), 2 / 255, 7)
    assert isinstance(l2, PgdAttack)
    assert (l2.ball, l2.length) == (Ball("L2", 0.5), 0.125)
    assert [found.images_of(name, "standard") for name in ("pgd", "pgd_l2")] == [20, 5]
    assert [found.images_of(name, "noisy") for name in ("pgd", "pgd_l2")] == [7, 5]
    assert worst.model_dump() == {"images": None, "kind": "common_corruptions", "corruptions": 19, "severity": 1}
    assert isinstance(spsa, SpsaAttack)
    assert spsa.after is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{attacks: {pgd: {eps: 0}}}", "attacks.pgd.eps: expected greater than 0; found 0"),
        ("{attacks: {far: {kind: pgd, pgd: 1}}}", "attacks.far: unknown key 'pgd'"),
        ("{attacks: {pgd: {eps: 0/255}}}", "eps"),
        ("{attacks: {spatial_grid: {scale: 225/224}}}", "spatial_grid.scale: expected less than or equal to 1"),
        ("{attacks: {pgd: {eps: much}}}", "expected a number, or a fraction such as 4/255; found 'much'"),
        ("{attacks: {psychic: {}}}", "'psychic': kind 'psychic'; expected one of none, spatial_grid"),
        ("{attacks: {pgd: {step_size: 1}}}", "unknown key 'step_size'"),
        ("{attacks: {spsa: {samples: 63}}}", "samples"),
        (
            "{attacks: {autoattack: {attacks: [square, square]}}}",
            "attacks.autoattack.attacks: 'square' twice; expected each once",
        ),
        ("{attacks: {boundary: {starts: [a, a]}}}", "boundary.starts: 'a' twice; expected each once"),
        ("{search_precision: half}", "search_precision"),
        ("{budget: {seconds: 0}}", "budget.seconds"),
        ("{attacks: {}}", "attacks"),
    ],
)
def test_what_is_wrong_is_reported(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(CleansetError) as error:
        settings(tmp_path, f"{text}\n")
    assert message in str(error.value)
    assert str(tmp_path / "params.yaml: ") in str(error.value)


def test_an_image_is_moved_at_its_own_size_at_most(tmp_path: Path) -> None:
    attack = settings(tmp_path, "attacks: {spatial_grid: {scale: 224/224}}\n").attack("spatial_grid")
    assert isinstance(attack, SpatialGridAttack)
    assert attack.scale == 1


def test_no_such_attack(tmp_path: Path) -> None:
    with pytest.raises(CleansetError, match="unknown attack 'psychic'; expected one of none"):
        settings(tmp_path, "{}\n").attack("psychic")


def test_starts_are_images_that_the_model_gets_right(tmp_path: Path) -> None:
    found = settings(tmp_path, "attacks: {boundary: {starts: [a/2], after: null}}\n")
    attack = found.attack("boundary")
    assert isinstance(attack, BoundaryAttack)
    assert list(attack.prepare(KNOWN)) == ["a/2"]
    assert attack.after is None
    found = settings(tmp_path, "attacks: {boundary: {starts: [a/3]}}\n")
    with pytest.raises(CleansetError, match="a/3 is not among the images that the model classifies correctly"):
        found.attack("boundary").prepare(KNOWN)


def test_a_start_is_the_random_change_of_the_study(tmp_path: Path) -> None:
    found = settings(tmp_path, "attacks: {spsa: {after: {max_angle: 5}}, random_spatial: {max_angle: 5}}\n")
    spsa, spatial = (found.attack(name) for name in ("spsa", "random_spatial"))
    assert isinstance(spsa, SpsaAttack)
    assert isinstance(spatial, RandomSpatialAttack)
    changed = spatial.changed(subject(1, 0), 3)
    assert np.array_equal(center_of(subject(1, 0), spsa.after, KNOWN), changed)
    assert not np.array_equal(RandomSpatialAttack().changed(subject(1, 0), 3), changed)


@pytest.mark.parametrize("edition", [".", "imagenet"])
def test_the_params_of_the_editions(edition: str, repository: Path) -> None:
    folder = repository / edition
    found = read_attack_params(
        folder / "studies" / "attacks" / "params.yaml", list(read_params(folder).models), imagenet()
    )
    assert found.names[0] == "none"


@pytest.fixture
def toy_attack(monkeypatch: pytest.MonkeyPatch) -> None:
    """A further attack among all."""
    monkeypatch.setitem(cast(dict[str, type[Parameters]], ATTACKS), "toy", ToyAttack)


@pytest.mark.usefixtures("toy_attack")
def test_its_params(tmp_path: Path) -> None:
    assert settings(tmp_path, "attacks: {toy: {levels: 4}, darker: {kind: toy}}\n").attacks == {
        "toy": ToyAttack(levels=4), "darker": ToyAttack(levels=9),
    }  # fmt: skip
    with pytest.raises(CleansetError, match=r"params\.yaml: attacks\.toy\.levels: expected greater than or equal to 1"):
        settings(tmp_path, "attacks: {toy: {levels: 0}}\n")
    with pytest.raises(CleansetError, match=r"'psychic': kind 'psychic'; expected one of none, .*guess.*, toy"):
        settings(tmp_path, "attacks: {psychic: {}}\n")


@pytest.mark.usefixtures("toy_attack")
def test_it_joins_nobodys_default_run() -> None:
    found = AttackParams.model_validate({})
    assert "toy" not in found.names
    (linf,) = (threat for threat in found.threats if threat.name == "Linf 4/255")
    assert linf.attacks == ("pgd", "square", "transfer", "autoattack")


class Silent(ToyAttack):
    """Says less than an attack has to."""

    passes = Parameters.passes


class Unbounded(ToyAttack):
    """An attack in a ball, without the ball."""

    ball = Parameters.ball  # type: ignore[assignment]


class Undescribed(Parameters):
    """An unknown attack."""

    kind: Literal["undescribed"] = "undescribed"


@pytest.mark.parametrize(
    ("attack", "missing"),
    [
        (Silent, "Silent: without passes; expected of every attack"),
        (Unbounded, "Unbounded: without ball; expected of every attack"),
        (Undescribed, "Undescribed: without passes, results, effect, family, uses, in_defaults, small"),
        (ToyAttack, "ToyAttack: has the kind toy, as does ToyAttack"),
    ],
)
def test_what_an_attack_leaves_out(attack: type[Parameters], missing: str) -> None:
    with pytest.raises(TypeError, match=missing):
        registered(ToyAttack, attack)


@pytest.mark.long
@pytest.mark.usefixtures("toy_attack")
def test_it_is_run_and_shown(study: AttackStudy) -> None:
    given = {"attacks": {"none": {}, "toy": {"levels": 4}}, "probe": {"images": 1, "steps": 1, "spsa_steps": 1}}
    found = AttackParams.model_validate(given)
    for name in found.names:
        run_attack(study, ROLE, name, found)
    table = read_table(study.results("toy", ROLE).table, ATTACKED, imagenet())
    assert set(table["from_center"]) == {4 / 255}
    assert table["queries"].tolist() == [1] * len(table)
    record = json.loads(study.results("toy", ROLE).record.read_text())
    assert record["parameters"] == {"images": None, "kind": "toy", "levels": 4}
    assert {"pillow", "scikit-image"} <= set(record["versions"])
    run_warnings(study, ROLE, found)
    page.write_measures(study, found)
    study.params_yaml.write_text(json.dumps(given))
    page.write_report(study)
    text = (study.report / "index.html").read_text("utf-8")
    assert "toy, eps 4/255" in text
    assert parameters(found, "toy") == "levels 4"


@pytest.mark.long
def test_params_and_records_are_read_without_torch() -> None:
    modules = ("study", "results", "warnings", "page")
    told = "print('{0}', sorted({{'torch', 'foolbox'}} & set(sys.modules)))"
    lines = [f"import cleanset.studies.attacks.{module}; {told.format(module)}" for module in modules]
    code = "\n".join(["import sys", *lines])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "".join(f"{module} []\n" for module in modules)
