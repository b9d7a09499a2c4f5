"""The code that trained the three small models, and the weights it left."""

import hashlib
from pathlib import Path

import pytest
import torch
from torch.nn import functional

import models
import train
from cleanset.edition.params import read_params

pytestmark = pytest.mark.slow

ROLES = ("standard", "norm_robust", "corruption_robust")


@pytest.mark.parametrize("role", ROLES)
def test_weights_are_small_and_those_of_the_params(role: str, repository: Path) -> None:
    model = read_params(repository).model(role)
    assert model.weights == f"sample/weights/{role}.safetensors"
    content = (repository / model.weights).read_bytes()
    assert len(content) < 2**20
    assert hashlib.sha256(content).hexdigest() == model.sha256
    assert model.name == models.ARCHITECTURES[role]


def test_the_attack_raises_the_loss_within_its_bound(repository: Path) -> None:
    """The inner maximum of adversarial training: at most EPSILON per value, pixels stay in 0..1."""
    model = models.load("norm_robust", repository / "sample" / "weights" / "norm_robust.safetensors")
    drawn = [train.training_image(number) for number in range(8)]
    images, labels = torch.stack([d[0] for d in drawn]), torch.tensor([d[1] for d in drawn])
    torch.manual_seed(0)
    attacked = train.attacked("norm_robust")(model, images, labels)
    original = images.float() / 255

    def loss(inputs: torch.Tensor) -> float:
        return float(functional.cross_entropy(model(models.normalise("norm_robust", inputs)), labels))

    assert float((attacked - original).abs().max()) <= train.EPSILON + 1e-6
    assert float(attacked.min()) >= 0
    assert float(attacked.max()) <= 1
    assert loss(attacked) > 1.2 * loss(original)


@pytest.mark.long
@pytest.mark.parametrize(
    "role", [pytest.param(role, marks=[] if role == "corruption_robust" else pytest.mark.exhaustive) for role in ROLES]
)
def test_training_lowers_the_loss(role: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(train.EPOCHS, role, 6)
    monkeypatch.setitem(train.WARM_UP, role, 2)
    drawn = [train.training_image(number) for number in range(32)]
    images, labels = torch.stack([d[0] for d in drawn]), torch.tensor([d[1] for d in drawn])
    untrained = models.create(role)
    models.favour(untrained, sorted(set(labels.tolist())))
    trained = train.train(role, images, labels)
    inputs = models.normalise(role, images.float() / 255)
    with torch.no_grad():
        before = functional.cross_entropy(untrained.train()(inputs), labels)
        after = functional.cross_entropy(trained.train()(inputs), labels)
    assert after < before
