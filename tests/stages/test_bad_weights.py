"""Wrong weights, and models that there are not, are one line, and no code in a file of weights is run."""

import hashlib
import json
import os
from types import SimpleNamespace
from typing import Any

import pytest
import timm
import torch

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.stages.score_crops import check_weights
from tests.stages.inputs import NETWORK, SCORE, with_model, with_weights
from tests.ten_images import SCORED, Made, write

pytestmark = pytest.mark.slow


class TestWeights:
    def test_missing(self, scorable: Made) -> None:
        with_model(scorable, name=NETWORK, weights="w.pt", sha256="0" * 64)
        scorable.fails(f"w.pt: missing; expected the weights of {NETWORK} (params.yaml)", *SCORE)

    def test_other_bytes(self, scorable: Made, tensors: dict[str, torch.Tensor]) -> None:
        with_weights(scorable, tensors)
        found = hashlib.sha256((scorable.folder / "w.pt").read_bytes()).hexdigest()
        with_model(scorable, name=NETWORK, weights="w.pt", sha256="0" * 64)
        scorable.fails(
            f"w.pt: SHA-256 {found}, expected {'0' * 64} as in params.yaml: fetch the weights again, "
            "or correct params.yaml if these are meant",
            *SCORE,
        )

    @pytest.mark.parametrize("name", ["w.pt", "w.safetensors"])
    def test_web_page(self, scorable: Made, name: str) -> None:
        with_weights(scorable, b"<!DOCTYPE html><html>Quota exceeded</html>", name)
        scorable.fails(f"{name}: a web page, not weights: remove it; expected the weights of {NETWORK}", *SCORE)

    def test_pickled_object_is_not_run(self, scorable: Made) -> None:
        with_weights(scorable, {"state_dict": Loud()})
        scorable.fails("w.pt: not plain tensors (*); expected * load it where you trust it, and save *", *SCORE)
        assert not (scorable.folder / "pickled-code-ran").exists()

    def test_model_with_another_number_of_classes(self, scorable: Made) -> None:
        with_model(scorable, name="vit_tiny_patch16_224.augreg_in21k")
        scorable.fails("vit_tiny_patch16_224.augreg_in21k: 21843 classes; expected 1000, as in ImageNet-1k", *SCORE)

    @pytest.mark.parametrize("name", ["resnet5", "resnet50.a9", "hf-hub:somebody/something"])
    def test_unknown_model(self, scorable: Made, name: str) -> None:
        with_model(scorable, name=name)
        scorable.fails(f"params.yaml: '{name}'*; expected a model name of timm {timm.__version__}", *SCORE)

    def test_unknown_model_of_robustbench(self, scorable: Made) -> None:
        with_model(scorable, source="robustbench", name="Salman2020", threat_model="Linf")
        scorable.fails(
            "params.yaml: 'Salman2020' is not in RobustBench's ImageNet zoo for Linf; "
            "expected one of Salman2020Do_R50, *, *, *, *: cleanset models --robustbench lists all",
            *SCORE,
        )

    def test_unknown_role(self, scorable: Made) -> None:
        with_model(scorable, name=NETWORK)
        for stage in ("score", "export"):
            scorable.fails("params.yaml: no model 'robust'; expected one of standard", stage, "--model", "robust")

    def test_unpinned_weights_of_any_model(self, scorable: Made) -> None:
        with_model(scorable, name=NETWORK)
        scorable.others["models"] |= {
            "a": {"source": "timm", "name": NETWORK},
            "b": {"source": "timm", "name": NETWORK},
        }
        scorable.params()
        scorable.fails(
            "params.yaml: no sha256 of the weights of a, b: run cleanset models --pin first, which downloads them "
            "and writes it",
            *SCORE,
        )

    def test_crops_are_scored_with_the_weights_of_their_images(self, made: Made) -> None:
        edition = Edition(made.folder)
        write(edition.scored_with("standard"), json.dumps(SCORED).encode())
        same, other = (SimpleNamespace(weights_sha256=digit * 64) for digit in "56")
        check_weights(edition, "standard", same)  # type: ignore[arg-type]
        with pytest.raises(CleansetError, match=f"^standard: weights with SHA-256 {'6' * 64}, but .* has {'5' * 64};"):
            check_weights(edition, "standard", other)  # type: ignore[arg-type]

    def test_no_such_gpu(self, scorable: Made) -> None:
        with_model(scorable, name=NETWORK)
        scorable.others["score"] = {"device": "cuda:99"}
        scorable.params()
        scorable.fails("device cuda:99: * CUDA devices found; expected it among them: set auto or cpu", *SCORE)


class Loud:
    """Leaves a trace when it is unpickled."""

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, ("pickled-code-ran",)
