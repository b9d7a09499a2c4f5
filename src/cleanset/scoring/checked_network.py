"""A network of torch behind the gate of `gate`: exceptions, and answers other than logits, become one-line errors."""

import torch
from torch import Tensor, nn

from cleanset.errors import CleansetError, raised
from cleanset.scoring.checkpoints import unusable_kind
from cleanset.scoring.gate import NetworkError, NetworkGate, wrong_answer


class CheckedNetwork(nn.Module):
    """A network whose exceptions, and results of another kind than logits, become a NetworkError of one line."""

    def __init__(self, name: str, network: nn.Module, classes: int) -> None:
        super().__init__()
        self.network = network
        self.gate = NetworkGate(name, classes)

    def forward(self, pixels: Tensor) -> Tensor:
        """Logits of shape (n, classes) of pixels in [0, 1]."""
        gate = self.gate
        try:
            answer = self.network(pixels)
        except torch.OutOfMemoryError:
            raise  # the engine continues with fewer images at a time
        except CleansetError:
            raise  # of a wrapper within it, such as StraightThrough
        except (Exception, SystemExit) as error:
            kind = str(pixels.dtype).removeprefix("torch.")
            # constants outside the network's parameters and buffers stay float32
            lower = pixels.dtype == torch.float64 and isinstance(error, RuntimeError)
            remedy = "correct it, or try --precision float32" if lower else "correct it"
            raise NetworkError(
                f"{gate.name}: the network raises {raised(error)} for {kind} pixels {tuple(pixels.shape)}; "
                f"expected logits: {remedy}"
            ) from None
        return checked_logits(answer, len(pixels), gate)


def output_note(network: nn.Module) -> str | None:
    """What all answers of a network so far have in common that logits have not, in a sentence; None for nothing."""
    gates = (module.gate for module in network.modules() if isinstance(module, CheckedNetwork))
    return next(filter(None, (gate.note for gate in gates)), None)


def checked_logits(answer: object, count: int, gate: NetworkGate) -> Tensor:
    """What a network gives for `count` images, if these are logits of shape (n, classes); NetworkError otherwise."""
    if (
        not isinstance(answer, Tensor)
        or answer.shape != (count, gate.classes)
        or not answer.is_floating_point()
        or unusable_kind(answer)
    ):
        raise wrong_answer(gate.name, kind_of(answer), count, gate.classes)
    # a GPU waits for the copy: with an honest network, only at its first batch
    if not gate.is_decided:
        gate.check(answer.detach().double().cpu().numpy())
    return answer


def kind_of(value: object) -> str:
    """The kind of a value, for people."""
    if isinstance(value, Tensor):
        return unusable_kind(value) or f"{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)}"
    if isinstance(value, tuple):
        return f"a tuple of {len(value)}"
    return f"a value of type {type(value).__name__}"
