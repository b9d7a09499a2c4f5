"""torchvision's classifiers against torchvision itself: transforms, networks, weights of any layout."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision import models

from cleanset.edition.models import model_from_text
from cleanset.edition.params import Model
from cleanset.errors import CleansetError
from cleanset.scoring.downloads import Web
from cleanset.scoring.models import (
    LoadedModel,
    _origin,
    load_model,
    network_of,
    normalisation_of,
    preprocessing_of,
    weights_path,
)
from cleanset.sets.arrays import inputs_of
from cleanset.stages.report import network
from tests.scoring.networks import saved

pytestmark = pytest.mark.slow

SMALL = "squeezenet1_1.IMAGENET1K_V1"


def image(width: int, height: int) -> Image.Image:
    return Image.fromarray(np.random.default_rng(width).integers(0, 256, (height, width, 3), np.uint8))


def params(content: dict[str, torch.Tensor], folder: Path, name: str) -> Model:
    """A model with weights in a file."""
    return Model(source="torchvision", name=name, **saved(folder / "weights.pth", content))


def logits(loaded: LoadedModel, of: Image.Image) -> torch.Tensor:
    return loaded.network(torch.from_numpy(loaded.preprocessing(of))[None].float() / 255)  # type: ignore[no-any-return]


@pytest.mark.parametrize("size", [(500, 375), (301, 640), (224, 224), (97, 61)])
@pytest.mark.parametrize(
    ("name", "preprocessing"),
    [
        ("alexnet.IMAGENET1K_V1", "torchvision-bilinear-256-224"),
        ("resnet50.IMAGENET1K_V2", "torchvision-bilinear-232-224"),
        ("efficientnet_b0.IMAGENET1K_V1", "torchvision-bicubic-256-224"),
        ("inception_v3.IMAGENET1K_V1", "torchvision-bilinear-342-299"),
        ("vit_b_16.IMAGENET1K_SWAG_E2E_V1", "torchvision-bicubic-384-384"),
        ("efficientnet_v2_l.IMAGENET1K_V1", "torchvision-bicubic-480-480"),
    ],
)
def test_transforms_are_the_published_ones(name: str, preprocessing: str, size: tuple[int, int]) -> None:
    model = Model(source="torchvision", name=name)
    ours = preprocessing_of(model)
    assert ours.name == preprocessing
    expected = models.get_weight(f"{type_of(name)}.{name.partition('.')[2]}").transforms()(image(*size))
    mean, std = (np.array(each)[:, None, None] for each in normalisation_of(model))
    np.testing.assert_allclose((ours(image(*size)) / 255 - mean) / std, expected.numpy(), atol=3e-6 / std.min())


def type_of(name: str) -> str:
    """The name of torchvision's class of an architecture's weights."""
    return str(models.get_model_weights(name.partition(".")[0]).__name__)


def test_a_network_with_weights(tmp_path: Path) -> None:
    torch.manual_seed(0)
    own = models.squeezenet1_1(weights=None).eval()
    loaded = load_model(params(own.state_dict(), tmp_path, SMALL), tmp_path)
    transforms = models.SqueezeNet1_1_Weights.IMAGENET1K_V1.transforms()
    found, expected = logits(loaded, image(320, 280)), own(transforms(image(320, 280))[None])
    assert found.shape == (1, 1000)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def test_weights_of_another_network(tmp_path: Path) -> None:
    model = params(models.squeezenet1_0(weights=None).state_dict(), tmp_path, SMALL)
    with pytest.raises(CleansetError, match="does not fit the model"):
        load_model(model, tmp_path)


def test_a_densenet_as_published(tmp_path: Path) -> None:
    """Its keys are those of an older torch: denselayer1.norm.1.weight."""
    torch.manual_seed(0)
    own = models.densenet121(weights=None).eval()
    old = {
        re.sub(r"(denselayer\d+\.(?:norm|conv))([12])", r"\1.\2", key): each for key, each in own.state_dict().items()
    }
    assert "features.denseblock1.denselayer1.norm.1.weight" in old
    model = params(old, tmp_path, "densenet121.IMAGENET1K_V1")
    found = load_model(model, tmp_path).network.state_dict()
    assert all(torch.equal(found[f"1.{key}"], each) for key, each in own.state_dict().items())


def test_networks_are_built_as_for_published_weights() -> None:
    """As their builders do when they load weights: another input, another size of image."""
    with torch.device("meta"):
        assert network_of("googlenet.IMAGENET1K_V1").transform_input
        assert network_of("vit_b_16.IMAGENET1K_SWAG_E2E_V1").image_size == 384
        assert network_of("vit_b_16.IMAGENET1K_V1").image_size == 224


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("alexnet", "'alexnet': no classifier's weights .*expected one of alexnet.IMAGENET1K_V1"),
        ("alexnet.DEFAULT", "expected one of alexnet.IMAGENET1K_V1"),
        ("vgg16.IMAGENET1K_FEATURES", "expected one of vgg16.IMAGENET1K_V1$"),
        ("alexnet2.IMAGENET1K_V1", "'alexnet2.IMAGENET1K_V1': no classifier of torchvision .* of alexnet,"),
        ("raft_large.C_T_V1", "no classifier of torchvision"),
    ],
)
def test_what_torchvision_does_not_have(name: str, message: str) -> None:
    with pytest.raises(CleansetError, match=message):
        preprocessing_of(Model(source="torchvision", name=name))


def test_where_it_is_downloaded_from() -> None:
    model = Model(source="torchvision", name="alexnet.IMAGENET1K_V1")
    assert _origin(model) == Web("https://download.pytorch.org/models/alexnet-owt-7be5be79.pth", "7be5be79")
    assert weights_path(model, Path("a")) == Path("a/data/weights/torchvision/alexnet.IMAGENET1K_V1.pth")


def test_it_is_named_everywhere() -> None:
    role, model = model_from_text("mine=torchvision:alexnet.IMAGENET1K_V1")
    assert (role, model.source, model.name) == ("mine", "torchvision", "alexnet.IMAGENET1K_V1")
    assert network(model) == "torchvision alexnet.IMAGENET1K_V1"
    assert inputs_of(model).mean == (0.485, 0.456, 0.406)
    with pytest.raises(
        ValueError, match="threat_model with source torchvision, but only robustbench has it: remove it"
    ):
        Model(source="torchvision", name="a", threat_model="Linf")
