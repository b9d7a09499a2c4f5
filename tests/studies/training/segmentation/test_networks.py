"""Each of the seven networks of EX3, small, runs forward and backward; what cannot be built says so in one line."""

from typing import Any

import pytest
import torch
from torch import nn

from cleanset.errors import CleansetError
from cleanset.studies.training.segmentation.networks import (
    DECODERS,
    PUBLISHED,
    MatrixAveragePool,
    SegmentationNetwork,
    VitPyramid,
    segmentation_network,
)

pytestmark = pytest.mark.slow

SMALL_RESNET = "resnet10t"
NARROW_RESNET: dict[str, Any] = {"channels": (8, 8, 16, 16), "stem_width": 8}
SWIN = "swin_tiny_patch4_window7_224"
SMALL: dict[str, tuple[str, dict[str, Any]]] = {
    "deeplabv3plus_r50-d8": (SMALL_RESNET, {**NARROW_RESNET, "decoder_channels": 16}),
    "dpt_vit-b16": ("test_vit", {"decoder_intermediate_channels": (8, 8, 8, 8), "decoder_fusion_channels": 16}),
    "upernet_swin": (
        SWIN,
        {"embed_dim": 8, "depths": (1, 1, 1, 1), "num_heads": (1, 1, 1, 1), "decoder_channels": 16},
    ),
    "upernet_vit-b16_ln_mln": ("test_vit", {"decoder_channels": 16}),
    "pspnet_r50-d8": (SMALL_RESNET, {**NARROW_RESNET, "psp_out_channels": 16}),
    "fpn_r50": (SMALL_RESNET, {**NARROW_RESNET, "decoder_pyramid_channels": 32, "decoder_segmentation_channels": 32}),
    "upernet_r50": (SMALL_RESNET, {**NARROW_RESNET, "decoder_channels": 16}),
}
"""The published networks over small encoders of the same family, with narrow decoders."""


def small(name: str, labels: int = 5) -> SegmentationNetwork:
    torch.manual_seed(0)
    encoder, options = SMALL[name]
    return segmentation_network(name, encoder, labels, **options)


@pytest.mark.parametrize("name", PUBLISHED)
def test_each_published_network_runs_forward_and_backward(name: str) -> None:
    network = small(name)
    logits = network(torch.rand(2, 3, 64, 64))
    assert logits.shape == (2, 5, 64, 64)
    logits.square().mean().backward()
    assert [name for name, weight in network.named_parameters() if weight.grad is None] == []
    # tested at original size: of any sides
    network.eval()
    with torch.inference_mode():
        assert network(torch.rand(1, 3, 50, 75)).shape == (1, 5, 50, 75)


@pytest.mark.parametrize(
    ("name", "of_encoder", "of_all"),
    [
        # ResNet-50, ViT-B/16 and Swin-T without their classifiers; LN-MLN adds to a ViT 4 convolutions of 1 x 1 and of
        # 3 x 3, of 768 channels each
        ("deeplabv3plus_r50-d8", 23_508_032, 26_680_669),
        ("dpt_vit-b16", 85_797_120, 121_010_701),
        ("upernet_swin", 27_517_818, 36_746_183),
        ("upernet_vit-b16_ln_mln", 85_798_656 + 4 * (768 * 768 + 768) + 4 * (9 * 768 * 768 + 768), 119_047_181),
        ("pspnet_r50-d8", 23_508_032, 29_864_013),
        ("fpn_r50", 23_508_032, 26_117_581),
        ("upernet_r50", 23_508_032, 37_287_757),
    ],
)
def test_the_parameters_of_each_published_network(
    name: str, of_encoder: int, of_all: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For the twelve classes of XIMAGENET-12 and the background: the widths of encoders and decoders."""
    for drawing in ("normal_", "uniform_", "erfinv_", "clamp_", "mul_"):
        # numbers of parameters do not depend on their values, which take seconds to draw
        monkeypatch.setattr(torch.Tensor, drawing, lambda self, *_, **__: self)
    network = segmentation_network(name, None, 13)
    assert sum(each.numel() for each in network.get_submodule("inner.encoder").parameters()) == of_encoder
    assert sum(each.numel() for each in network.parameters()) == of_all


def test_the_counted_networks_are_all() -> None:
    assert len(PUBLISHED) == 7


def test_the_names_are_those_of_table_6_with_the_baseline_first() -> None:
    assert next(iter(PUBLISHED)) == "deeplabv3plus_r50-d8"
    assert {decoder for decoder, _ in PUBLISHED.values()} == set(DECODERS)


def test_dilated_encoders_keep_an_eighth_of_the_sides() -> None:
    for name in ("deeplabv3plus_r50-d8", "pspnet_r50-d8"):
        encoder = small(name).inner.get_submodule("encoder")
        sizes = [each.shape[-1] for each in encoder(torch.rand(1, 3, 64, 64))]
        assert sizes[-1] == 8, name


def test_the_neck_gives_four_sizes_of_features() -> None:
    pyramid = VitPyramid("test_vit")
    features = pyramid(torch.rand(1, 3, 64, 96))
    assert [tuple(each.shape[-2:]) for each in features] == [(16, 24), (8, 12), (4, 6), (2, 3)]
    # test_vit has six blocks; a ViT-B has twelve; 2, 5, 8 and 11 are taken
    assert pyramid.blocks == [0, 2, 3, 5]


@pytest.mark.parametrize("size", [(9, 13), (6, 6), (2, 5), (1, 1)])
@pytest.mark.parametrize("parts", [1, 2, 3, 6])
def test_pools_by_matrices_are_adaptive_pools(size: tuple[int, int], parts: int) -> None:
    features = torch.rand(2, 3, *size)
    expected = nn.AdaptiveAvgPool2d(parts)(features)
    torch.testing.assert_close(MatrixAveragePool(parts, parts)(features), expected)


def test_no_adaptive_pool_is_left() -> None:
    for name in ("pspnet_r50-d8", "upernet_r50", "deeplabv3plus_r50-d8"):
        modules = list(small(name).modules())
        assert any(isinstance(each, MatrixAveragePool) for each in modules), name
        assert not any(isinstance(each, nn.AdaptiveAvgPool2d) for each in modules), name


def test_the_edge_that_is_added_to_an_image_is_cut_off_again() -> None:
    network = SegmentationNetwork(nn.Identity(), (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    images = torch.rand(1, 3, 33, 40)
    assert torch.equal(network(images), images)


@pytest.mark.parametrize(
    ("name", "encoder", "message"),
    [
        ("unet", None, "unknown segmentation network 'unet'; expected one of deeplabv3plus_r50-d8, "),
        ("fpn", None, "network fpn: no encoder; expected timm's name of one"),
        ("fpn", "resnet51", "network fpn: unknown encoder 'resnet51'; expected timm's name"),
        ("upernet", "test_vit", "network upernet: test_vit cannot be its encoder"),
        ("upernet_ln_mln", "resnet10t", "network upernet_ln_mln: resnet10t cannot be its encoder"),
        ("upernet_ln_mln", "vit_tiny_r_s16_p8_224", "vit_tiny_r_s16_p8_224 cannot be its encoder"),
    ],
)
def test_what_cannot_be_built_is_refused(name: str, encoder: str | None, message: str) -> None:
    with pytest.raises(CleansetError) as caught:
        segmentation_network(name, encoder, 5)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
