"""Kinds of outputs at the gate, over all batches: refused where they are certainly no logits, noted where likely."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from cleanset.scoring.gate import NetworkError, NetworkGate, exponents

Outputs = NDArray[np.float64]
ROWS = 40


def softmax(logits: Outputs) -> Outputs:
    found = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def without_background(logits: Outputs) -> Outputs:
    return softmax(np.column_stack([logits.max(axis=1) - 1, logits]))[:, 1:]


def sigmoid(logits: Outputs) -> Outputs:
    return np.asarray(1 / (1 + np.exp(-logits)))


def checked(end: Callable[[Outputs], Outputs], classes: int, seed: int = 0) -> NetworkGate:
    drawn = np.random.default_rng(seed)
    logits = drawn.normal(0, 2, (ROWS, classes))
    logits[np.arange(ROWS), drawn.integers(0, classes, ROWS)] += 8
    gate = NetworkGate("net", classes, notify=lambda _: None)
    outputs = end(logits)
    for start in range(0, ROWS, 8):
        gate.check(outputs[start : start + 8])
    return gate


@pytest.mark.parametrize("classes", [12, 1000])
@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (softmax, "gives probabilities, rows from 0 to 1 with a sum of 1"),
        (lambda z: softmax(z / 3), "gives probabilities, rows from 0 to 1 with a sum of 1"),
        (lambda z: np.eye(z.shape[1])[z.argmax(axis=1)], "gives probabilities, rows from 0 to 1 with a sum of 1"),
        (lambda z: 100 * softmax(z), "gives percent, rows from 0 to 100 with a sum of 100"),
        (lambda z: np.log10(softmax(z)), "gives logarithms of probabilities to the base 10;"),
        (lambda z: np.log2(softmax(z)), "gives logarithms of probabilities to the base 2;"),
        (lambda z: -np.log(softmax(z)), "gives negative log-probabilities, the smallest of them for the prediction;"),
        (lambda z: (softmax(z) + softmax(0.9 * z)) / 2, "gives probabilities, rows from 0 to 1 with a sum of 1"),
    ],
)
def test_what_is_refused(end: Callable[[Outputs], Outputs], classes: int, expected: str) -> None:
    with pytest.raises(NetworkError, match=expected):
        checked(end, classes)


@pytest.mark.parametrize("classes", [12, 1000])
@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (sigmoid, "all outputs are from 0 to 1"),
        (without_background, "all outputs are from 0 to 1"),
        (lambda z: 255 * softmax(z), "the outputs of every image are positive and have the same sum"),
        (lambda z: np.log(sigmoid(z)), "all outputs are negative"),
        (lambda z: -np.exp(-z), "all outputs are negative"),
        (lambda z: softmax(z) + softmax(0.9 * z), "the outputs of every image are positive and have the same sum"),
        (lambda z: 100 * sigmoid(z), "all outputs are from 0 upwards"),
        (lambda z: np.log1p(np.exp(z)), "all outputs are from 0 upwards"),
        (np.exp, "all outputs are from 0 upwards"),
        (lambda z: -np.log10(softmax(z)), "all outputs are from 0 upwards"),
        (lambda z: np.log1p(softmax(z)), "all outputs are from 0 to 1"),
        (lambda z: 1 - softmax(z), "all outputs are from 0 to 1"),
        (lambda z: softmax(z) ** 0.5, "all outputs are from 0 to 1"),
        (lambda z: np.zeros_like(z), "the outputs are the same for every image"),
        (lambda z: np.tile(-1.0 - np.arange(z.shape[1]), (len(z), 1)), "the outputs are the same for every image"),
        (
            lambda z: np.repeat(z.mean(axis=1, keepdims=True), z.shape[1], axis=1),
            "the largest output of every image is",
        ),
        (lambda z: np.repeat(z.argmax(axis=1)[:, None], z.shape[1], axis=1) * 1.0, "the largest output of every"),
        (lambda z: (1e6 * z).clip(-65504, 65504), "the largest output of every image is shared"),
        (lambda z: z.argsort(axis=1).argsort(axis=1) - 3.0, "all outputs are whole numbers"),
        (lambda z: np.rint(z), "all outputs are whole numbers"),
        (lambda z: 10 * np.eye(z.shape[1])[z.argmax(axis=1)], "all outputs are whole numbers"),
        (
            lambda z: (z - z.mean(axis=1, keepdims=True)) / z.std(axis=1, keepdims=True),
            "the outputs of every image have",
        ),
        (
            lambda z: (z / np.linalg.norm(z, axis=1, keepdims=True)).astype(np.float16),
            "the outputs of every image have",
        ),
    ],
)
def test_what_is_noted(end: Callable[[Outputs], Outputs], classes: int, expected: str) -> None:
    note = checked(end, classes).note
    assert note is not None
    assert note.startswith(f"net: {expected}")
    assert note.endswith(
        "probably not logits: confidences mean nothing, nor does accuracy unless the largest output is the prediction"
    )


def test_a_clamped_softmax_of_many_classes_is_noted() -> None:
    assert "all outputs are from 0 to 1" in str(checked(lambda z: softmax(z).clip(1e-3, 1 - 1e-3), 1000).note)


@pytest.mark.parametrize("classes", [12, 1000])
@pytest.mark.parametrize(
    "end",
    [
        lambda z: z,
        lambda z: z + 50,
        lambda z: 0.1 * z,
        lambda z: z - z.mean(axis=1, keepdims=True),
        lambda z: np.maximum(z, 0),
        lambda z: np.log(softmax(z)),
        # logits of few of many classes
        lambda z: np.where(z < z.max(axis=1, keepdims=True), 0, z),
    ],
)
def test_what_passes(end: Callable[[Outputs], Outputs], classes: int) -> None:
    assert checked(end, classes).note is None


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("classes", [2, 10, 100, 1000])
@pytest.mark.parametrize("temperature", [0.01, 0.1, 1, 10, 100])
def test_logits_of_any_temperature_pass(temperature: float, classes: int, kind: type[np.floating]) -> None:
    for seed in range(10):
        gate = checked(lambda z: (z / temperature).astype(kind).astype(np.float64), classes, seed)
        assert gate.note is None


def test_a_later_row_ends_a_hypothesis() -> None:
    gate = NetworkGate("net", 10)
    gate.check(np.random.default_rng(0).uniform(0, 1, (20, 10)))
    assert gate.note is not None
    assert not gate.is_decided
    gate.check(np.arange(10, dtype=np.float64)[None] - 2)
    assert gate.note is None


def test_the_base_of_logarithms() -> None:
    """Two classes with half each: base 10 gives -0.30103, and 2 exp(-0.30103 t) = 1 for t = ln 10 = 2.302585."""
    assert exponents(np.array([[-0.30103, -0.30103], [-1.0, -1.0]])) == pytest.approx([2.302585, 0.693147], rel=1e-5)


def test_certain_answers_tell_no_base() -> None:
    """Every logarithm of a class of probability 1 is 0; the first row that is less certain decides."""
    certain = np.full((4, 20), -40.0)
    certain[:, 3] = 0.0
    doubtful = softmax(np.random.default_rng(0).normal(0, 1, (4, 20)))
    said: list[str] = []
    gate = NetworkGate("net", 20, notify=said.append)
    gate.check(certain)
    assert not gate.is_decided
    gate.check(np.log(doubtful))
    assert gate.is_decided
    assert len(said) == 1
    other = NetworkGate("net", 20, notify=said.append)
    other.check(certain)
    with pytest.raises(NetworkError, match="to the base 10;"):
        other.check(np.log10(doubtful))
    assert len(said) == 1
