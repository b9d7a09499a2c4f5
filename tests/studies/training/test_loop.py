"""The loop: early stopping on literal losses, a loss that is not finite, and a training that was interrupted."""

import math
import resource
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from cleanset.errors import CleansetError
from cleanset.plumbing.progress import TrainingStep
from cleanset.studies.training.loop import Outcome, best_epoch, stops_early, train
from cleanset.studies.training.state import StateFolder, TrainingState
from tests.studies.training.toy_task import STEPS, Points, ToyTask, settings, trained

pytestmark = pytest.mark.slow


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def history(*losses: float) -> list[dict[str, float]]:
    return [{"epoch": epoch, "validation_loss": loss} for epoch, loss in enumerate(losses, 1)]


@pytest.mark.parametrize(
    ("losses", "best", "patience", "stops"),
    [
        ((3.0,), 1, 1, False),
        ((3.0, 2.0, 2.5), 2, 1, True),
        ((3.0, 2.0, 2.5), 2, 2, False),
        ((3.0, 2.0, 2.0, 2.0), 2, 2, True),
        ((3.0, 2.0, 2.5, 1.0, 1.1), 4, 2, False),
        ((1.0, 2.0, 0.5, 2.0, 3.0, 4.0), 3, 3, True),
    ],
)
def test_early_stopping(losses: tuple[float, ...], best: int, patience: int, stops: bool) -> None:
    assert best_epoch(history(*losses)) == best
    assert stops_early(history(*losses), patience) is stops


def test_nothing_validated_never_stops_early() -> None:
    rows = [{"epoch": 1.0}, {"epoch": 2.0}]
    assert best_epoch(rows) == 2
    assert not stops_early(rows, 1)
    assert not stops_early([], 1)


@pytest.mark.parametrize(("precision", "dtype"), [("float32", torch.float32), ("bfloat16", torch.bfloat16)])
def test_the_precision_of_the_forward_pass(precision: str, dtype: torch.dtype, tmp_path: Path) -> None:
    task, found = ToyTask(), set[torch.dtype]()
    task.network.register_forward_hook(lambda _, __, logits: found.add(logits.dtype))
    trained(task, tmp_path, epochs=1, precision=precision)
    assert found == {dtype}


def test_an_epoch_before_the_attack_is_never_chosen() -> None:
    """Clean losses fall in the warm-up and rise under attack; the loss under attack alone counts."""
    rows = history(1.0, 0.1, 2.0, 3.0, 4.0)
    for row, robust in zip(rows[2:], (9.0, 8.0, 8.5), strict=True):
        row["validation_robust_loss"] = robust
    assert [best_epoch(rows[:count], "robust_loss") for count in range(1, 6)] == [1, 2, 3, 4, 4]
    assert [stops_early(rows[:count], 1, "robust_loss") for count in range(1, 6)] == [False] * 4 + [True]
    assert best_epoch(rows) == 2


def test_training_keeps_the_epoch_that_is_best_under_attack(tmp_path: Path) -> None:
    class Attacked(ToyTask):
        chosen_by = "robust_loss"

        def validate(self, epoch: int) -> dict[str, float]:
            return {"loss": float(epoch), **({"robust_loss": abs(epoch - 4.0)} if epoch > 2 else {})}

    found = trained(Attacked(), tmp_path, epochs=6, early_stopping=1)
    assert found.epoch == 4
    assert len(found.history) == 5


def test_training_leaves_the_random_numbers_of_others(tmp_path: Path) -> None:
    torch.manual_seed(7)
    wanted = torch.rand(3)
    task = ToyTask()
    torch.manual_seed(7)
    trained(task, tmp_path)
    assert torch.equal(torch.rand(3), wanted)


def test_training_stops_and_keeps_the_best_epoch(tmp_path: Path) -> None:
    losses = [3.0, 1.0, 2.0, 2.0, 0.5, 0.1]
    found = trained(ToyTask(losses), tmp_path / "a", epochs=6, early_stopping=2)
    assert [row["epoch"] for row in found.history] == [1, 2, 3, 4]
    assert found.epoch == 2
    # as long as the schedule is the same, two epochs have the weights of the second
    again = trained(ToyTask(losses), tmp_path / "b", epochs=6, early_stopping=2, keep="last")
    assert again.epoch == 4
    assert not same(found.weights, again.weights)


def test_the_history_has_means_and_rates(tmp_path: Path) -> None:
    reports: list[TrainingStep] = []
    task = ToyTask([2.0, 1.0])
    wanted = settings(epochs=2, schedule="constant")
    found = train(task, wanted, StateFolder(tmp_path, {}), reports.append)
    assert [row["step"] for row in found.history] == [3, 6]
    assert [row["rate"] for row in found.history] == [0.1, 0.1]
    assert found.history[0]["train_loss"] == pytest.approx(sum(each.loss for each in reports[:3]) / 3, rel=1e-6)
    assert 0 < found.history[0]["train_accuracy"] <= 1
    assert [(each.number, each.total, each.epoch) for each in reports] == [
        (1, 6, 1), (2, 6, 1), (3, 6, 1), (4, 6, 2), (5, 6, 2), (6, 6, 2),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("keys", "rates"),
    [
        # as MadryLab's StepLR, and AugMix's script for ImageNet with a third of the epochs
        ({"schedule": "step", "decay_epochs": 2}, [0.1, 0.1, 0.01, 0.01, 0.001, 0.001]),
        # (1 - i / 18) ** .9 of what is above the end, at the last step of each epoch
        ({"schedule": "poly", "end_rate": 0.01}, [0.0909478, 0.0771500, 0.0630270, 0.0484667, 0.0332462, 0.0166757]),
        ({"schedule": "linear"}, [0.0888889, 0.0722222, 0.0555556, 0.0388889, 0.0222222, 0.0055556]),
    ],
)
def test_rates_at_the_last_step_of_each_epoch(tmp_path: Path, keys: dict[str, object], rates: list[float]) -> None:
    found = trained(ToyTask(), tmp_path, epochs=6, **keys)
    assert [row["rate"] for row in found.history] == pytest.approx(rates, abs=1e-7)


def test_steps_may_end_within_an_epoch(tmp_path: Path) -> None:
    found = trained(ToyTask(), tmp_path, epochs=None, steps=STEPS + 1)
    assert [row["step"] for row in found.history] == [3, 4]


@pytest.mark.parametrize("schedule", ["constant", "cosine", "poly"])
@pytest.mark.parametrize("optimizer", ["sgd", "adam", "adamw"])
def test_the_same_seed_gives_the_same_weights(tmp_path: Path, optimizer: str, schedule: str) -> None:
    one = trained(ToyTask(), tmp_path / "a", optimizer=optimizer, schedule=schedule, warm_up_epochs=1)
    torch.manual_seed(99)
    other = trained(ToyTask(), tmp_path / "b", optimizer=optimizer, schedule=schedule, warm_up_epochs=1)
    assert same(one.weights, other.weights)
    assert one.history == other.history
    if schedule != "constant":
        assert one.history[-1]["rate"] < one.history[1]["rate"]


@pytest.mark.parametrize("keep", ["best", "last"])
def test_an_interrupted_training_ends_with_the_same_weights(tmp_path: Path, keep: str) -> None:
    losses = [3.0, 1.0, 2.0, 2.5]
    whole = trained(ToyTask(losses), tmp_path / "a", keep=keep)

    class StoppedError(Exception):
        pass

    class Stopping(ToyTask):
        def validate(self, epoch: int) -> dict[str, float]:
            if epoch == 3:
                raise StoppedError
            return dict(super().validate(epoch))

    with pytest.raises(StoppedError):
        trained(Stopping(losses), tmp_path / "b", keep=keep)
    resumed_task = ToyTask(losses)
    resumed = trained(resumed_task, tmp_path / "b", keep=keep)
    assert resumed_task.begun == [3, 4]
    assert same(whole.weights, resumed.weights)
    assert whole.history == resumed.history
    assert (resumed.epoch, resumed.images) == (whole.epoch, whole.images)


def test_a_finished_training_is_not_repeated(tmp_path: Path) -> None:
    whole = trained(ToyTask(), tmp_path)
    task = ToyTask()
    again = trained(task, tmp_path)
    assert not task.begun
    assert same(whole.weights, again.weights)
    assert again.seconds == pytest.approx(whole.seconds)


def test_a_validation_loss_that_is_nan_is_not_the_best(tmp_path: Path) -> None:
    task = ToyTask(values=[0.5, 0.4, math.nan, 0.3])
    message = "toy, all: the validation loss is nan in epoch 3, step 9; expected a finite one: the state after epoch 2"
    with pytest.raises(CleansetError, match=message):
        trained(task, tmp_path)
    assert trained(ToyTask(values=[0.5, 0.4, 0.6, 0.3]), tmp_path).epoch == 4


class OnlyItsGradientIsNan(ToyTask):
    """As the square root of 0 has it: a finite loss with a gradient that is not."""

    def loss(self, network: nn.Module, batch: Points, epoch: int) -> Outcome:
        outcome = super().loss(network, batch, epoch)
        zero = torch.stack([each.sum() for each in network.parameters()]).sum() * 0.0
        return outcome._replace(loss=outcome.loss + zero.sqrt()) if epoch == 2 else outcome


def test_a_gradient_that_is_nan_leaves_no_weights(tmp_path: Path) -> None:
    message = (
        "toy, all: the gradient's length is nan in epoch 2, step 4; expected a finite one: the state after epoch 1"
    )
    with pytest.raises(CleansetError, match=message):
        trained(OnlyItsGradientIsNan(), tmp_path)
    found = trained(ToyTask(), tmp_path)
    assert all(each.isfinite().all() for each in found.weights.values())


class OverflowsInTheLastStep(ToyTask):
    """As a step too far has it, or the variance of a batch normalization: neither loss nor gradient shows it."""

    def validate(self, epoch: int) -> dict[str, float]:
        found = dict(super().validate(epoch))
        if epoch == 2:
            with torch.no_grad():
                next(self.network.parameters()).fill_(math.inf)
        return found


def test_weights_that_are_infinite_are_not_kept(tmp_path: Path) -> None:
    message = "toy, all: the weights' length is inf in epoch 2, step 6; expected a finite one: the state after epoch 1"
    with pytest.raises(CleansetError, match=message):
        trained(OverflowsInTheLastStep(values=[0.5, 0.4, 0.3, 0.2]), tmp_path)
    task = ToyTask(values=[0.5, 0.4, 0.3, 0.2])
    found = trained(task, tmp_path)
    assert task.begun == [2, 3, 4]
    assert all(bool(value.isfinite().all()) for value in found.weights.values())


def test_a_loss_that_is_nan_stops_and_leaves_the_last_good_state(tmp_path: Path) -> None:
    message = "toy, all: the loss is nan in epoch 3, step 7; expected a finite one: the state after epoch 2 stays"
    with pytest.raises(CleansetError, match=message):
        trained(ToyTask(nan_in=3), tmp_path)
    task = ToyTask()
    found = trained(task, tmp_path)
    assert task.begun == [3, 4]
    assert all(bool(value.isfinite().all()) for value in found.weights.values())


def test_other_settings_are_refused(tmp_path: Path) -> None:
    trained(ToyTask(), tmp_path)
    with pytest.raises(CleansetError, match=r"begun with rate 0.1, now 0.2; expected the same settings: put it back"):
        trained(ToyTask(), tmp_path, rate=0.2)


EMPTY: TrainingState = {
    "network": {}, "optimizer": {}, "weights": {}, "epoch": 0, "history": [], "images": 0, "seconds": 0.0,
}  # fmt: skip


def test_inner_settings_are_reported(tmp_path: Path) -> None:
    StateFolder(tmp_path, {"settings": {"network": {"name": "a"}}, "seed": 0}).save(EMPTY)
    with pytest.raises(CleansetError, match=r"begun with network.name 'a', now 'b'; expected the same settings"):
        StateFolder(tmp_path, {"settings": {"network": {"name": "b"}}, "seed": 0}).load()


@pytest.mark.parametrize("place", [0, 70, 0.3, 0.5, 0.9, -1])
def test_a_damaged_state_is_refused(tmp_path: Path, place: float) -> None:
    """A flipped bit of a weight leaves a file that torch reads; it is reported, and nothing is trained from it."""
    trained(ToyTask(), tmp_path)
    content = bytearray((tmp_path / "state.pt").read_bytes())
    content[int(place * len(content)) if isinstance(place, float) else place] ^= 4
    (tmp_path / "state.pt").write_bytes(content)
    with pytest.raises(CleansetError, match=r"state.pt: damaged, or not the state of a training; .* remove the folder"):
        trained(ToyTask(), tmp_path)
    assert (tmp_path / "state.pt").read_bytes() == content


def test_a_state_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    trained(ToyTask(), tmp_path)
    path = tmp_path / "state.pt"
    for content in (b"", b"PK\x03\x04", path.read_bytes()[:-1], path.read_bytes().partition(b"\n")[2]):
        path.write_bytes(content)
        with pytest.raises(CleansetError, match=r"state.pt: damaged, or not the state of a training"):
            trained(ToyTask(), tmp_path)


def test_a_full_disk_leaves_the_state_before(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    class Filling(ToyTask):
        def validate(self, epoch: int) -> dict[str, float]:
            if epoch == 3:
                resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
            return {}

    try:
        with pytest.raises(OSError, match=r"state\.pt"):
            trained(Filling(), tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [path.name for path in tmp_path.iterdir()] == ["state.pt"]
    task = ToyTask()
    trained(task, tmp_path)
    assert task.begun == [3, 4]


class Flat(ToyTask):
    """A loss without a slope, under which weights change by their decay alone."""

    def loss(self, network: nn.Module, batch: Points, epoch: int) -> Outcome:
        found = super().loss(network, batch, epoch)
        return found._replace(loss=0 * found.loss)


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_weight_decay_is_of_every_parameter(tmp_path: Path, optimizer: str) -> None:
    """Biases too, as in the authors' recipes: three steps of rate .1 and decay .5 leave .95 ** 3 of each."""
    task = Flat()
    before = {name: each.clone() for name, each in task.network.state_dict().items()}
    how = {"optimizer": optimizer, "weight_decay": 0.5, "schedule": "constant", "momentum": 0.0, "epochs": 1}
    found = trained(task, tmp_path, **how)
    assert sorted(found.weights) == ["0.bias", "0.weight", "2.bias", "2.weight"]
    for name, each in found.weights.items():
        torch.testing.assert_close(each, 0.857375 * before[name])


def test_the_roots_of_adam_are_not_those_of_mkl(tmp_path: Path) -> None:
    """MKL's vector roots depend on the processor's maker: 20 % of them are not the nearest float32."""
    state = StateFolder(tmp_path, {})
    train(ToyTask(), settings(optimizer="adamw", epochs=1), state)
    loaded = state.load()
    assert loaded is not None
    assert [group["fused"] for group in loaded["optimizer"]["param_groups"]] == [True]


def test_parameters_can_be_spared_from_weight_decay_by_name(tmp_path: Path) -> None:
    task = Flat()
    before = {name: each.clone() for name, each in task.network.state_dict().items()}
    found = trained(task, tmp_path, weight_decay=0.5, optimizer="sgd", epochs=1, undecayed=["2.", "cls_token"])
    assert [name for name in before if torch.equal(found.weights[name], before[name])] == ["2.weight", "2.bias"]
