"""Checkpoints as really published: loaded as their authors' own code loads them, or refused."""

import argparse
import copy
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import timm
import torch
from PIL import Image
from safetensors.torch import save_file
from timm.models import swin_transformer
from torch import Tensor, nn
from torchvision.models import resnet18, resnet50

from cleanset.edition.params import Model
from cleanset.errors import CleansetError
from cleanset.images.preprocessing import ROBUSTBENCH, ResizeAndCrop
from cleanset.plumbing.files import sha256
from cleanset.scoring.checkpoints import read_tensors
from cleanset.scoring.models import _network, _origin, load_model, preprocessing_of, served_models, weights_path
from cleanset.scoring.record import ScoreRecord, read_record, write_record
from tests.scoring.networks import saved, settle

pytestmark = pytest.mark.slow

Tensors = dict[str, Tensor]
R18 = {"source": "robustbench", "name": "Salman2020Do_R18", "threat_model": "Linf"}
SALMAN = {"source": "robustbench", "name": "Salman2020Do_R50", "threat_model": "Linf"}
NOISYMIX = {"source": "robustbench", "name": "Erichson2022NoisyMix_new", "threat_model": "corruptions"}
MEANS, STDS = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
MEAN, STD = torch.tensor(MEANS), torch.tensor(STDS)  # as RobustBench has them, in float32
CONSTANTS = {"normalize.mean": MEAN.view(1, 3, 1, 1), "normalize.std": STD.view(1, 3, 1, 1)}


def prefixed(prefix: str, tensors: Tensors) -> Tensors:
    return {prefix + key: value for key, value in tensors.items()}


def without_counters(tensors: Tensors) -> Tensors:
    return {key: value for key, value in tensors.items() if not key.endswith("num_batches_tracked")}


def training(tensors: Tensors, key: str = "state_dict") -> dict[str, Any]:
    """What training programs keep with the weights."""
    optimizer = {"state": {0: {"momentum_buffer": torch.zeros(3)}}, "param_groups": [{"lr": 0.1, "params": [0]}]}
    return {"epoch": 90, "arch": "resnet", "best_prec1": torch.tensor(64.02), key: tensors, "optimizer": optimizer}


def madrylab(tensors: Tensors) -> dict[str, Any]:
    """As MadryLab's robustness saves: the network twice, the normalisation under other names."""
    model = OrderedDict(
        prefixed("module.model.", tensors)
        | {"module.normalizer.new_mean": MEAN.view(3, 1, 1), "module.normalizer.new_std": STD.view(3, 1, 1)}
        | {"module.attacker.normalize.new_mean": MEAN.view(3, 1, 1)}
        | {"module.attacker.normalize.new_std": STD.view(3, 1, 1)}
        | prefixed("module.attacker.model.", tensors)
    )
    return training(model, "model") | {"schedule": None, "amp": None}


SHAPES: dict[str, Callable[[Tensors], Any]] = {
    "flat": lambda tensors: tensors,
    "data parallel": lambda tensors: prefixed("module.", tensors),
    "lightning": lambda tensors: prefixed("model.", tensors),
    "compiled": lambda tensors: prefixed("_orig_mod.", tensors),
    "compiled, data parallel": lambda tensors: prefixed("module._orig_mod.", tensors),
    "both": lambda tensors: prefixed("module.model.", tensors),
    "nested": lambda tensors: {"state_dict": tensors},
    "noisymix": lambda tensors: training(OrderedDict(prefixed("module.", tensors))),
    "robustbench": lambda tensors: CONSTANTS | prefixed("model.", tensors),
    "robustbench, data parallel": lambda tensors: prefixed("module.", CONSTANTS | prefixed("model.", tensors)),
    "old torch": lambda tensors: {"state_dict": prefixed("module.", without_counters(tensors))},
}


@pytest.fixture(scope="module")
def small() -> nn.Module:
    return settle(resnet18(), 1)


def params(path: Path, content: Any, **model: Any) -> Model:
    """Save a checkpoint; the model that loads it."""
    return Model.model_validate(saved(path, content) | model)


def placed(model: Model, content: Any, folder: Path) -> Path:
    """Save weights at the path to which they would be downloaded."""
    path = weights_path(model, folder)
    path.parent.mkdir(parents=True)
    torch.save(content, path)
    return path


def logits(network: nn.Module, size: int = 32) -> Tensor:
    pixels = torch.rand(2, 3, size, size, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    with torch.inference_mode():
        result: Tensor = network.double().eval()(pixels)
    assert result.std() > 1e-6
    return result


def same(first: nn.Module, second: nn.Module) -> bool:
    """Whether two networks hold the same tensors; the names of wrappers do not count."""
    tensors = first.state_dict().values(), second.state_dict().values()
    return len(tensors[0]) == len(tensors[1]) and all(map(torch.equal, *tensors))


def inner(network: nn.Module) -> nn.Module:
    """The network behind its normalisation."""
    found = list(network.children())
    assert len(found) == 2
    return found[1]


def theirs(model: Model, folder: Path) -> nn.Module:
    """RobustBench's own loader, on the file in the place where it looks."""
    preprocessing_of(model)  # makes robustbench importable
    from robustbench.utils import load_model

    loaded: nn.Module = load_model(model.name, folder / "data" / "weights", "imagenet", model.threat_model)
    return loaded


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class Shift(nn.Module):
    """Normalisation, written out."""

    def __init__(self, mean: Tensor, std: Tensor) -> None:
        super().__init__()
        self.mean, self.std = mean, std

    def forward(self, pixels: Tensor) -> Tensor:
        return (pixels - self.mean) / self.std


class NarrowSwin(swin_transformer.SwinTransformer):  # type: ignore[misc]
    """A Swin transformer with a quarter of the channels."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options | {"embed_dim": options["embed_dim"] // 4})


class TestRobustbench:
    @pytest.mark.parametrize("shape", SHAPES)
    def test_the_tensors_are_those_of_its_own_loader(self, tmp_path: Path, small: nn.Module, shape: str) -> None:
        model = Model.model_validate(R18)
        path = placed(model, SHAPES[shape](dict(small.state_dict())), tmp_path)
        assert path == tmp_path / "data" / "weights" / "imagenet" / "Linf" / "Salman2020Do_R18.pt"
        ours = load_model(model, tmp_path)
        assert ours.weights_sha256 == sha256(path.read_bytes())
        assert same(inner(ours.network), small)
        # its own loader knows neither what its own state_dict is called nor compiled networks
        if "robustbench" not in shape and "compiled" not in shape:
            assert same(ours.network, theirs(model, tmp_path))

    @pytest.mark.long
    @pytest.mark.parametrize("role", [SALMAN, NOISYMIX], ids=["salman", "noisymix"])
    def test_the_two_of_scooter(self, tmp_path: Path, role: dict[str, Any]) -> None:
        model = Model.model_validate(role)
        network = settle(resnet50(), 2)
        path = placed(model, SHAPES["noisymix"](dict(network.state_dict())), tmp_path)
        ours = load_model(model, tmp_path)
        assert len(ours.network.state_dict()) == 322
        assert torch.equal(logits(ours.network), logits(theirs(model, tmp_path)))
        assert ours.preprocessing == ResizeAndCrop("Res256Crop224", 256, 224, "bilinear")
        assert ours.weights_sha256 == sha256(path.read_bytes())

    def test_it_normalises_once(self, tmp_path: Path, small: nn.Module) -> None:
        model = params(tmp_path / "w.pt", dict(small.state_dict()), **R18)
        found = logits(load_model(model, tmp_path).network)
        small = copy.deepcopy(small).double()
        mean, std = (value.double().view(1, 3, 1, 1) for value in (MEAN, STD))
        whole = nn.Sequential(Shift(mean, std), small)
        assert torch.equal(found, logits(whole))

    def test_other_files(self, tmp_path: Path, small: nn.Module) -> None:
        """MadryLab's own, and safetensors."""
        tensors = dict(small.state_dict())
        files = {"resnet18_linf_eps4.0.ckpt": madrylab(tensors), "w.safetensors": prefixed("module.", tensors)}
        for name, content in files.items():
            model = params(tmp_path / name, content, **R18)
            assert same(inner(load_model(model, tmp_path).network), small)

    def test_constants_of_the_file_count(self, tmp_path: Path, small: nn.Module) -> None:
        other = CONSTANTS | {"normalize.mean": torch.zeros(1, 3, 1, 1), "normalize.std": torch.ones(1, 3, 1, 1)}
        content = other | prefixed("model.", dict(small.state_dict()))
        model = params(tmp_path / "w.pt", content, **R18)
        loaded = load_model(model, tmp_path).network
        assert torch.equal(logits(loaded), logits(copy.deepcopy(small)))

    def test_missing_keys_that_its_own_loader_lets_pass(self, tmp_path: Path, small: nn.Module) -> None:
        tensors = dict(small.state_dict())
        kept = {key: value for key, value in tensors.items() if not key.startswith("layer4.1.conv2")}
        model = params(tmp_path / "w.pt", kept | {"fc.scale": torch.ones(1)}, **R18)
        wanted = "missing keys ['layer4.1.conv2.weight'], unexpected keys ['fc.scale'], shape mismatch none"
        with pytest.raises(CleansetError, match=re.escape(wanted)):
            load_model(model, tmp_path)

    def test_another_architecture(self, tmp_path: Path, small: nn.Module) -> None:
        model = params(tmp_path / "w.pt", dict(small.state_dict()), **SALMAN)
        message = r"missing keys \['layer1.0.bn3.bias', .* more, unexpected keys none, shape mismatch \[.* more, type"
        with pytest.raises(CleansetError, match=message):
            load_model(model, tmp_path)

    @pytest.mark.long
    def test_every_entry_but_one_is_accepted(self, tmp_path: Path) -> None:
        """With the preprocessing of RobustBench, pixel by pixel, and an address for the weights."""
        preprocessing_of(Model.model_validate(R18))  # makes robustbench importable
        from robustbench.data import get_preprocessing
        from robustbench.model_zoo.enums import BenchmarkDataset
        from robustbench.model_zoo.imagenet import imagenet_models

        noise = np.random.default_rng(0).integers(0, 256, (2, 700, 700, 3), np.uint8)
        images = [Image.fromarray(noise[0][:h, :w]) for w, h in [(500, 375), (288, 301), (287, 97), (285, 640)]]
        found: dict[str, list[str]] = {}
        for threat_model, zoo in imagenet_models.items():
            for name, entry in zoo.items():
                if isinstance(entry["gdrive_id"], list):
                    continue
                model = Model(source="robustbench", name=name, threat_model=threat_model.value)
                ours, theirs = (
                    preprocessing_of(model), get_preprocessing(BenchmarkDataset.imagenet, threat_model, name, None)
                )  # fmt: skip
                found.setdefault(ours.name, []).append(name)
                for image in images if len(found[ours.name]) == 1 else images[:1]:
                    assert np.array_equal(ours(image), (theirs(image) * 255).round().numpy().astype(np.uint8)), name
                assert _origin(model)
        assert {name: len(names) for name, names in found.items()} == {
            "Crop288": 1, "Res256Crop224": 16, "BicubicRes256Crop224": 16, "Res224": 2, "timm-bicubic-224-224": 3,
            "timm-bilinear-224-224": 1, "timm-bicubic-248-224": 2,
        }  # fmt: skip

    @pytest.mark.parametrize("preprocessing", ROBUSTBENCH.values(), ids=ROBUSTBENCH)
    def test_a_record_of_scores_keeps_the_preprocessing(self, tmp_path: Path, preprocessing: ResizeAndCrop) -> None:
        record = ScoreRecord(
            role="robust", source="robustbench", name="Mo2022When_Swin-B", threat_model="Linf",
            preprocessing=preprocessing, weights_sha256="0" * 64, precision="float64", images=1, against_float64=None,
            versions={}, code="1",
        )  # fmt: skip
        write_record(tmp_path / "robust.json", record)
        assert read_record(tmp_path / "robust.json") == record

    @pytest.mark.long
    @pytest.mark.parametrize("name", ["Singh2023Revisiting_ViT-S-ConvStem", "Mo2022When_Swin-B"])
    def test_networks_of_other_architectures(self, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """One of RobustBench's own, and a Swin transformer, here narrow, saved in the layout of timm before 1.0."""
        monkeypatch.setattr(swin_transformer, "SwinTransformer", NarrowSwin)
        model = Model(source="robustbench", name=name, threat_model="Linf")
        network = settle(_network(model), 3)
        tensors = inner(network).state_dict()
        if "Swin" in name:
            tensors = {
                re.sub(
                    "^head.fc", "head", re.sub(r"layers.(\d).down", lambda m: f"layers.{int(m[1]) - 1}.down", key)
                ): each
                for key, each in tensors.items()
            } | {"layers.0.blocks.1.attn_mask": torch.zeros(64, 49, 49)}
        placed(model, {"state_dict": prefixed("module.", dict(tensors))}, tmp_path)
        ours = load_model(model, tmp_path).network
        assert same(ours, network)
        assert same(ours, theirs(model, tmp_path))

    @pytest.mark.long
    def test_one_that_is_registered_with_timm(self, tmp_path: Path) -> None:
        model = Model(source="robustbench", name="Tian2022Deeper_DeiT-S", threat_model="corruptions")
        network = settle(_network(model), 3)
        placed(model, {"model": inner(network).state_dict()}, tmp_path)
        assert same(load_model(model, tmp_path).network, network)

    @pytest.mark.parametrize(
        ("threat_model", "name", "message"),
        [
            ("Linf", "Bai2024MixedNUTS", "RobustBench mixes two networks, whose weights are in two files; expected"),
            ("Linf", "Salman2020Do_R5", "expected one of Salman2020Do_R50, Salman2020Do_R18, Salman2020Do_50_2, "),
            ("corruptions", "Salman2020Do_R50", "is not in RobustBench's ImageNet zoo for corruptions; expected one"),
            ("L2", "Salman2020Do_R50", "is not in RobustBench's ImageNet zoo for L2; expected one of another threat"),
        ],
    )
    def test_what_cannot_be_served(self, threat_model: str, name: str, message: str) -> None:
        with pytest.raises(CleansetError, match=re.escape(message)):
            preprocessing_of(Model(source="robustbench", name=name, threat_model=threat_model))  # type: ignore[arg-type]

    def test_the_list_of_those_that_can_be_named(self) -> None:
        every, linf = served_models(None), served_models("Linf")
        assert "robustbench:Linf/Salman2020Do_R50" in linf
        assert "robustbench:Linf/Bai2024MixedNUTS" not in every
        assert set(linf) < set(every)
        assert {each.partition("/")[0] for each in every} >= {"robustbench:Linf", "robustbench:corruptions"}
        with pytest.raises(CleansetError, match="unknown threat model 'Linf8'; expected one of "):
            served_models("Linf8")


class TestTimm:
    @pytest.mark.parametrize("shape", SHAPES)
    def test_the_same_shapes(self, tmp_path: Path, shape: str) -> None:
        network = settle(timm.create_model("test_byobnet", pretrained=False), 3)
        content = SHAPES[shape](dict(network.state_dict()))
        model = params(tmp_path / "w.pt", content, source="timm", name="test_byobnet.r160_in1k")
        loaded = load_model(model, tmp_path).network
        assert same(inner(loaded), network)
        mean, std = (torch.tensor(value, dtype=torch.float64).view(1, 3, 1, 1) for value in (MEANS, STDS))
        assert torch.equal(logits(loaded), logits(nn.Sequential(Shift(mean, std), network.double())))

    def test_another_normalisation_is_refused(self, tmp_path: Path) -> None:
        network = timm.create_model("resnet18", pretrained=False)
        content = CONSTANTS | {"normalize.mean": torch.full((1, 3, 1, 1), 0.5)}
        content |= prefixed("model.", dict(network.state_dict()))
        model = params(tmp_path / "w.pt", content, source="timm", name="resnet18.tv_in1k")
        with pytest.raises(
            CleansetError, match=r"trained with normalisation \[\[0\.5, 0\.5, 0\.5\], .*, the model's is"
        ):
            load_model(model, tmp_path)

    def test_an_older_layout_that_timm_renames(self, tmp_path: Path) -> None:
        """The patch embedding of a vision transformer as a matrix: timm's own filter reshapes it."""
        network = settle(timm.create_model("test_vit", pretrained=False), 4)
        tensors = dict(network.state_dict())
        old = tensors | {"patch_embed.proj.weight": tensors["patch_embed.proj.weight"].flatten(1)}
        found = []
        for content in (tensors, old):
            model = params(tmp_path / "w.pt", {"model": content}, source="timm", name="test_vit.r160_in1k")
            found.append(logits(load_model(model, tmp_path).network, 160))
        assert torch.equal(*found)

    def test_preprocessing_is_that_of_the_tag(self) -> None:
        def named(name: str) -> str:
            return preprocessing_of(Model(source="timm", name=name)).name

        assert named("resnet50.a1_in1k") == "timm-bicubic-235-224"  # 224 / 0.95
        assert named("resnet50.tv_in1k") == "timm-bilinear-256-224"
        assert named("resnet50") == named("resnet50.a1_in1k")

    def test_half_precision(self, tmp_path: Path) -> None:
        network = settle(timm.create_model("test_byobnet", pretrained=False), 6).half()
        model = params(tmp_path / "w.pt", dict(network.state_dict()), source="timm", name="test_byobnet")
        loaded = load_model(model, tmp_path).network
        assert torch.equal(loaded[1].state_dict()["head.fc.weight"], network.state_dict()["head.fc.weight"].float())  # type: ignore[index]


class TestRefused:
    @pytest.mark.parametrize(
        ("entry", "name"),
        [
            (argparse.Namespace(lr=0.1), r"argparse\.Namespace"),
            (np.float64(76.9), r"numpy\.\S*scalar"),
            (resnet18, r"torchvision\.models\.resnet\.resnet18"),
            (resnet18(), r"torchvision\.models\.resnet\.ResNet"),
            (Path("x"), r"pathlib\.PosixPath"),
        ],
    )
    def test_objects_next_to_the_weights(self, tmp_path: Path, entry: object, name: str) -> None:
        model = params(tmp_path / "w.pt", {"state_dict": {"a": torch.ones(1)}, "args": entry}, **R18)
        message = rf"w\.pt: not plain tensors \(it holds {name}\); expected safetensors, .*save_file$"
        with pytest.raises(CleansetError, match=message):
            load_model(model, tmp_path)

    def test_two_tables(self, tmp_path: Path, small: nn.Module) -> None:
        tensors = dict(small.state_dict())
        model = params(tmp_path / "w.pt", {"state_dict": tensors, "state_dict_ema": tensors}, **R18)
        with pytest.raises(CleansetError, match="tensors under state_dict and state_dict_ema; expected one: save the"):
            load_model(model, tmp_path)

    def test_the_way_out_works(self, tmp_path: Path, small: nn.Module, repository: Path) -> None:
        """The line of docs/models.md turns a checkpoint with objects into one without."""
        (line,) = re.findall(r"^python -c '(.*)'$", (repository / "docs" / "models.md").read_text(), re.MULTILINE)
        torch.save(training(dict(small.state_dict())) | {"args": argparse.Namespace()}, tmp_path / "mine.pt")
        code = line.replace("mine.", f"{tmp_path}/mine.")
        exec(code, {})
        data = (tmp_path / "mine.safetensors").read_bytes()
        model = Model.model_validate(R18 | {"weights": "mine.safetensors", "sha256": sha256(data)})
        assert same(inner(load_model(model, tmp_path).network), small)


TIMM = {"source": "timm", "name": "test_byobnet"}
KERNEL = "stem.conv.weight"


def byobnet() -> Tensors:
    return dict(settle(timm.create_model("test_byobnet", pretrained=False), 3).state_dict())


def refusal(folder: Path, content: Any, file: str = "w.pt", **model: str) -> str:
    """The one line with which a weight file is refused, without its path."""
    with pytest.raises(CleansetError) as error:
        load_model(params(folder / file, content, **(TIMM | model)), folder)
    text = str(error.value)
    assert text.startswith(f"{folder / file}: ")
    assert text.isprintable()
    assert not re.search(r"characters\)$", text)  # nothing is cut out of the message
    return text.removeprefix(f"{folder / file}: ")


class TestTruncated:
    """At whatever byte a file ends, the answer is the same."""

    @pytest.mark.parametrize("kind", ["w.safetensors", "w.pt", "legacy.pt"])
    def test_at_any_byte(self, tmp_path: Path, kind: str) -> None:
        path = tmp_path / kind
        tensors = {"a.weight": torch.ones(3, 4), "b": torch.arange(5.0)}
        if kind == "w.safetensors":
            save_file(tensors, path)
        else:
            torch.save(tensors, path, _use_new_zipfile_serialization=kind == "w.pt")
        data = path.read_bytes()
        assert read_tensors(path).keys() == tensors.keys()
        for size in range(16, len(data), 1 if len(data) < 1000 else 13):
            path.write_bytes(data[:size])
            with pytest.raises(CleansetError, match=r"not plain tensors .*: fetch it again if it is inc"):
                read_tensors(path)

    @pytest.mark.parametrize(("name", "data"), [("w.safetensors", b"text " * 99), ("w.pt", b"text " * 99)])
    def test_another_file(self, tmp_path: Path, name: str, data: bytes) -> None:
        (tmp_path / name).write_bytes(data)
        with pytest.raises(CleansetError, match="not plain tensors"):
            read_tensors(tmp_path / name)


class TestNoOrdinaryTensors:
    @pytest.mark.parametrize(("content", "file"), [({}, "w.safetensors"), ([1, 2], "w.pt"), ({"a": 1}, "w.pt")])
    def test_no_table(self, tmp_path: Path, content: Any, file: str) -> None:
        assert refusal(tmp_path, content, file) == "no table of tensors; expected a state_dict"

    @pytest.mark.parametrize("key", [1, None, ("a", "b"), b"a"])
    def test_keys_that_are_not_text(self, tmp_path: Path, key: Any) -> None:
        found = refusal(tmp_path, byobnet() | {key: torch.ones(1)})
        assert found == f"a tensor under the key {key!r}; expected keys that are text"

    @pytest.mark.parametrize(
        ("tensor", "kind"),
        [
            (torch.eye(3).to_sparse(), "a sparse tensor"),
            (torch.eye(3).to_sparse_csr(), "a sparse tensor"),
            (torch.empty(3, device="meta"), "a meta tensor, which has no values"),
            (torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8), "a quantized tensor"),
            (torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), "a nested tensor"),
            (torch.ones(1).expand(10**12), "a tensor of 1,000,000,000,000 values in a file of "),
        ],
    )
    def test_tensors_of_another_kind(self, tmp_path: Path, tensor: Tensor, kind: str) -> None:
        found = refusal(tmp_path, byobnet() | {KERNEL: tensor})
        assert found.startswith(f"'{KERNEL}' is {kind}")
        assert found.endswith("; expected dense tensors: save them as such")

    @pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.bool, torch.complex64])
    def test_numbers_of_another_type(self, tmp_path: Path, dtype: torch.dtype) -> None:
        tensors = byobnet()
        found = refusal(tmp_path, tensors | {KERNEL: tensors[KERNEL].to(dtype)})
        assert f"shape mismatch none, type mismatch ['{KERNEL}']; expected the weights of exactly this" in found

    @pytest.mark.parametrize("dtype", [torch.int32, torch.float32])
    def test_counters_may_be_of_any_type(self, tmp_path: Path, dtype: torch.dtype) -> None:
        tensors = {k: v.to(dtype) if k.endswith("tracked") else v for k, v in byobnet().items()}
        assert any(key.endswith("num_batches_tracked") for key in tensors)
        load_model(params(tmp_path / "w.pt", tensors, **TIMM), tmp_path)
        complex_ones = {k: v.to(torch.complex64) if k.endswith("tracked") else v for k, v in tensors.items()}
        assert "tracked'" in refusal(tmp_path, complex_ones).partition("type mismatch ")[2]

    @pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf, 1e300])
    def test_values_that_are_not_finite(self, tmp_path: Path, value: float) -> None:
        """1e300 fits into a float64 of the file, but not into the network's float32."""
        tensors = byobnet()
        tensors[KERNEL] = tensors[KERNEL].double()
        tensors[KERNEL][0, 0, 0, 0] = value
        message = f"'{KERNEL}' holds NaN or infinity; expected finite weights: fetch them again"
        assert refusal(tmp_path, tensors) == message

    def test_a_long_key_is_shortened(self, tmp_path: Path) -> None:
        assert "unexpected keys ['xxxxxxxx" in refusal(tmp_path, byobnet() | {"x" * 10**6: torch.ones(1)})


class TestAnotherVisionTransformer:
    """timm resamples tensors of another size; the result is not the published model."""

    def tensors(self, **options: Any) -> Tensors:
        return dict(settle(timm.create_model("test_vit", pretrained=False, **options), 4).state_dict())

    @pytest.mark.parametrize("prefix", ["", "module.", "visual.trunk."])
    @pytest.mark.parametrize(
        ("options", "key"),
        [({"img_size": 224}, "pos_embed"), ({"patch_size": 8, "img_size": 80}, "patch_embed.proj.weight")],
    )
    def test_it_is_refused(self, tmp_path: Path, options: dict[str, int], key: str, prefix: str) -> None:
        found = refusal(tmp_path, prefixed(prefix, self.tensors(**options)), name="test_vit")
        assert found.startswith("does not fit the model: missing keys ")
        only_a_shape = f"missing keys none, unexpected keys none, shape mismatch ['{key}']"
        assert prefix == "visual.trunk." or only_a_shape in found

    def test_timms_own_renaming_stays(self, tmp_path: Path) -> None:
        tensors = self.tensors()
        model = params(tmp_path / "w.pt", prefixed("visual.trunk.", tensors), source="timm", name="test_vit")
        found = inner(load_model(model, tmp_path).network).state_dict()
        assert all(torch.equal(found[key], value) for key, value in tensors.items())
