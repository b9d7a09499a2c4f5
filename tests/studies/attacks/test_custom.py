"""Attacks of users: what they get, what a run says of them, and what is refused."""

from pathlib import Path

import pytest

from cleanset.errors import CleansetError
from cleanset.evaluation.measures import Measure
from cleanset.studies.attacks.base import Known, Result
from cleanset.studies.attacks.checklist import Evidence, checklist
from cleanset.studies.attacks.custom import CustomAttack, given_attack
from cleanset.studies.attacks.study import AttackParams
from tests.studies.attacks.networks import on_cpu, random_linear, subject

pytestmark = pytest.mark.slow

MODULE = """
import torch

def ascend(model, images, labels, eps):
    images.requires_grad_(True)
    torch.nn.functional.cross_entropy(model(images), labels).backward()
    return images.detach() + eps * images.grad.sign()

def darken(model, images, labels, eps):
    model(images)
    return images - eps

def cut(model, images, labels):
    return images[:, :, 1:]

class Steps:
    def __init__(self, steps):
        self.steps = steps
"""


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)


def attack_of(kind: str, **fields: object) -> CustomAttack:
    return CustomAttack.model_validate({"kind": f"mine:{kind}", "eps": "8/255", **fields})


def found_by(attack: CustomAttack) -> Result:
    (found,) = attack.results(on_cpu(random_linear()), [subject(0, 1)], Known(seed=0))
    return found


@pytest.mark.parametrize(("kind", "backward", "uses"), [("ascend", 1, "gradients"), ("darken", 0, "logits")])
def test_it_uses_what_its_passes_say(kind: str, backward: int, uses: str) -> None:
    attack = attack_of(kind, forward=1, backward=backward)
    assert attack.uses == uses
    assert found_by(attack).queries == 1


def test_without_backward_passes_it_gets_no_gradients() -> None:
    with pytest.raises(CleansetError, match=r"for 1 image; with backward: 0 it gets no gradients$"):
        found_by(attack_of("ascend", backward=0))


@pytest.mark.parametrize(("backward", "known"), [(10, "weights"), (0, "answers")])
def test_what_the_checklist_says(backward: int, known: str) -> None:
    own = attack_of("darken", backward=backward)
    params = AttackParams.model_validate({"attacks": {"own": own}})
    (threat,) = params.threats
    measures = {(name, "net", "error"): Measure(value=1.0) for name in ("own", threat.name)}
    measures[threat.name, "net", "robust_high"] = Measure(value=0.0)
    found = checklist(Evidence(params=params, model="net", measures=measures, record=None, models=["net"]))
    points = {point.text: (point.state, point.why) for point in found}
    assert points["Perform adaptive attacks"] == (
        "undecided",
        "own: code of yours; say whether it is written for this model",
    )
    assert points["State a precise threat model"][1].endswith(f"attackers know the model by its {known}")
    assert ("gradient-free: own" in points["Try a gradient-free and a hard-label attack"][1]) == (backward == 0)


@pytest.mark.parametrize(
    ("kind", "fields", "words"),
    [
        ("cut", {}, "mine:cut: gives torch.float64 (1, 3, 11, 12); expected finite images of shape (1, 3, 12, 12)"),
        (
            "Steps",
            {},
            "mine:Steps: raises TypeError (Steps.__init__() missing 1 required positional argument: 'steps') for {}",
        ),
        (
            "Steps",
            {"parameters": {"steps": 2}},
            "mine:Steps: its instances cannot be called; expected attack(model, images, labels)",
        ),
    ],
)
def test_what_is_refused(kind: str, fields: dict[str, object], words: str) -> None:
    with pytest.raises(CleansetError) as raised:
        found_by(attack_of(kind, **fields))
    assert str(raised.value) == words


def test_an_object_that_cannot_be_called() -> None:
    with pytest.raises(CleansetError, match=r"^attacks own: a value of type int; expected a callable of model, images"):
        given_attack("own", 3, {"norm": "Linf", "eps": "8/255"})
