"""What runs on a GPU, run on one that is not there: the same values, and nothing on the wrong device.

See tests/gpu.py for what such a GPU refuses.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file
from torch import Tensor, nn

from cleanset.classes import imagenet
from cleanset.edition.params import Score
from cleanset.evaluation.function import predict
from cleanset.evaluation.sets import EvaluationImage, EvaluationSet
from cleanset.scoring.differentiable import PixelNetwork, Uninteresting, searching
from cleanset.scoring.engine import open_pipelines, score_few, settings_for
from cleanset.scoring.shards import Shards
from cleanset.studies.attacks.base import Known, Other, Parameters, globally_seeded
from cleanset.studies.attacks.gradient_attacks import PgdAttack, SpsaAttack
from cleanset.studies.attacks.judge import Judge
from cleanset.studies.attacks.probing import probe
from cleanset.studies.attacks.study import ATTACKS
from cleanset.studies.attacks.targets import ResizedPixels
from cleanset.studies.training import data, train
from cleanset.studies.training.study import TrainingStudy
from tests.checkouts import Checkout
from tests.gpu import GPU, Gpu, gpu
from tests.scoring.networks import linear, many
from tests.scoring.sharded import score_shards
from tests.studies.attacks.networks import CPU, correct_subjects, drawn, loaded, random_network
from tests.studies.training.coloured_study import coloured_study, write_params

__all__ = ["gpu"]  # a fixture
pytestmark = pytest.mark.slow
EPS = 16 / 255
PGD = PgdAttack(eps=EPS, steps=4, group=4, draws=2)


def network() -> nn.Module:
    return random_network(4, seed=3).double().eval()


def test_a_gpu_that_is_not_there_refuses_what_a_real_one_refuses(gpu: Gpu) -> None:
    """And gives the values and gradients of the CPU."""
    pixels = torch.ones(2, 3, 12, 12, dtype=torch.float64)
    label = torch.tensor([0, 1])
    on_cpu = network()
    on_gpu = network().to(GPU)
    for network_on_one, pixels_on_another in ((on_cpu, pixels.to(GPU)), (on_gpu, pixels)):
        with pytest.raises(RuntimeError, match="on the same device"):
            network_on_one(pixels_on_another)
    with pytest.raises(RuntimeError, match="type"):
        on_gpu(pixels.to(GPU).float())
    with pytest.raises(TypeError, match="numpy"):
        pixels.to(GPU).numpy()
    with pytest.raises(RuntimeError, match="generator"):
        torch.rand(3, device=GPU, generator=torch.Generator().manual_seed(1))
    later = pixels.pin_memory().to(GPU).to("cpu", non_blocking=True)
    assert not torch.equal(later, pixels)
    torch.cuda.synchronize()
    assert torch.equal(later, pixels)
    gradients = []
    for asked, device in ((on_cpu, CPU), (on_gpu, GPU)):
        leaf = pixels.to(device).requires_grad_()
        loss = nn.functional.cross_entropy(asked(leaf), label.to(device))
        gradients += [found := torch.autograd.grad(loss, leaf)[0]]
        assert found.device == device
    assert torch.equal(gradients[0], gradients[1].cpu())


def test_scores(gpu: Gpu) -> None:
    images = many(21)
    model = linear()
    found = {}
    for device in ("cpu", "cuda"):
        settings = replace(settings_for(Score(device=device, batch_size=4)), workers=1)
        found[device] = score_few(model, images.__getitem__, settings, list(images))
    # threads decode a few images, into memory that is not page-locked
    assert (gpu.transfers, gpu.slow) == (0, 6)
    assert found["cpu"].equals(found["cuda"])


def test_shards(gpu: Gpu, tmp_path: Path) -> None:
    """Three shards of eight images; the next batch is copied while the one before is computed."""
    images = many(21)
    found = {}
    for device in ("cpu", "cuda"):
        shards = Shards(tmp_path / device, "f", list(images), 4, classes=imagenet(), min_images=8)
        settings = replace(settings_for(Score(device=device, batch_size=4)), workers=1)
        with open_pipelines(images.__getitem__, linear().preprocessing, settings) as pipelines:
            score_shards(linear(), pipelines, settings, shards)
        found[device] = shards.table()
    assert (gpu.transfers, gpu.slow) == (6, 0)
    assert found["cpu"].equals(found["cuda"])


SOURCE = random_network(4, seed=8).double().eval()
SEARCHES: dict[str, Parameters] = {
    **{kind: each.model_validate(each.small) for kind, each in ATTACKS.items() if not each.reads_predictions},
    "pgd_l2": PgdAttack(norm="L2", eps=1.0, steps=4, step=0.3, group=4),
}


def asked(network: nn.Module, device: torch.device) -> PixelNetwork:
    return PixelNetwork(network, device, "float64", 3)


@pytest.mark.parametrize("name", SEARCHES)
def test_attacks(gpu: Gpu, name: str) -> None:
    """SPSA draws on the GPU, where a real one draws other numbers."""
    group = correct_subjects(network(), 4, side=32, least=60, most=200)
    results = []
    for device in (CPU, GPU):
        source = asked(nn.Sequential(ResizedPixels(40), SOURCE), device)
        known = Known(3, lambda: {"other": Other(9, lambda: drawn(70, 32))}, lambda source=source: {"other": source})  # type: ignore[misc]
        with searching("float64"), globally_seeded(1, device):
            results.append(SEARCHES[name].results(asked(network(), device), group, known))
    assert bool(gpu.transfers) == bool(SEARCHES[name].passes(1, 4).own.forward)
    assert not gpu.slow
    for one, other in zip(*results, strict=True):
        assert np.array_equal(one.candidate, other.candidate)
        assert one.queries == other.queries


@pytest.mark.long
def test_verdicts_and_signs(gpu: Gpu) -> None:
    group = correct_subjects(network(), 6, least=60, most=200)
    wrapped = Uninteresting(network())
    judges = [Judge(loaded(wrapped), device) for device in (CPU, GPU)]
    judged = [[judge.logits(one.pixels, seed) for seed, one in enumerate(group)] for judge in judges]
    assert np.array_equal(judged[0], judged[1])
    spsa = SpsaAttack(steps=2, samples=8, stop_margin=5, after=None)
    found = []
    for each in (CPU, GPU):
        known = Known(3, sources=lambda each=each: {"a": asked(SOURCE, each)})  # type: ignore[misc]
        found.append(probe(asked(network(), each), group, known, PGD, [spsa]))
    np.testing.assert_equal(found[0], found[1])


@pytest.fixture
def study(small: Checkout, tmp_path: Path) -> TrainingStudy:
    found = coloured_study(small.folder, tmp_path)
    data.run(found)
    return found


@pytest.mark.long
@pytest.mark.parametrize(
    "run",
    [
        {}, {"recipe": "adversarial"}, {"recipe": "augmix"},
        {"recipe": "noise", "trained_on": ["noise", "speckle_noise"]},
        {"task": "segmentation", "network": {"source": "smp", "name": "fpn", "encoder": "test_efficientnet"}},
    ],
    ids=lambda run: run.get("recipe", run.get("task", "standard")),
)  # fmt: skip
def test_training(study: TrainingStudy, gpu: Gpu, run: dict[str, Any]) -> None:
    weights = []
    for device in ("cpu", "cuda"):
        write_params(study, {"device": device}, one={"epochs": 1, "test": ["original"]} | run)
        train.run(study, "one")
        weights.append(load_file(study.fold("one", "fold_01").weights))
    assert gpu.transfers
    assert not gpu.slow
    # torch sums in another order for a class of tensors of its own; Adam enlarges the difference of gradients near 0
    assert all((each - weights[1][name]).float().abs().mean() < 1e-5 for name, each in weights[0].items())


def test_a_custom_network_is_evaluated_on_its_own_device(gpu: Gpu) -> None:
    def read(file: str) -> Image.Image:
        return Image.fromarray(drawn(int(file[0]), 8).transpose(1, 2, 0))

    def transform(image: Image.Image) -> Tensor:
        return torch.from_numpy(np.array(image)).permute(2, 0, 1).float() / 255

    items = [EvaluationImage(f"{number}.png", 0, None, "0" * 64) for number in range(5)]
    images = EvaluationSet(name="five", kind="folder", items=items, read=read, checked=None, classes=imagenet())
    model = linear().network
    predictions = [predict(model.to(device), images, transform, "own", 2) for device in (CPU, GPU)]
    assert predictions[0][0].equals(predictions[1][0])
