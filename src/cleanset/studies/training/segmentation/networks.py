"""Segmentation networks: the seven of EX3, and the same decoders over other encoders of timm.

Decoders come from segmentation-models-pytorch with its own widths, encoders from timm. `-d8` in a name is a ResNet
whose last two stages are dilated, so that features keep an eighth of the image's sides.

LN-MLN is the one neck that the library does not build: `VitPyramid` makes features of four sizes from a ViT for the
UPerNet decoder, as in mmsegmentation's upernet_vit-b16_ln_mln. The outputs of four blocks, which all have a sixteenth
of the image's sides, go through the layer norm (LN) and a multi-level neck (MLN): a 1 x 1 convolution, bilinear scaling
to a quarter, an eighth, a sixteenth and a thirty-second of the image, and a 3 x 3 convolution. There the layer norm is
the last block's only; here all four go through it.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import segmentation_models_pytorch as smp
import timm
import torch
from segmentation_models_pytorch.base import SegmentationHead
from segmentation_models_pytorch.decoders.upernet.decoder import UPerNetDecoder
from timm.data import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor, nn
from torch.nn import functional

from cleanset.errors import CleansetError, reason
from cleanset.plumbing.validation import check_known, shown

FRACTIONS: Final = (4, 8, 16, 32)
"""The ratio of the image's sides to each size of features."""


class VitPyramid(nn.Module):
    """A ViT of timm and its neck; `channels`, an attribute: those of each size of features. `options` go to timm.

    Raises ValueError for another network, one of fewer than four blocks, and patches of other than 16 x 16 pixels.
    """

    def __init__(self, name: str, **options: object) -> None:
        super().__init__()
        # images may be of another size than the network was made for
        vit = timm.create_model(name, num_classes=0, dynamic_img_size=True, **options)
        if not isinstance(vit, VisionTransformer):
            raise ValueError(f"a {type(vit).__name__}, and LN-MLN needs a ViT")
        if vit.patch_embed.patch_size != (16, 16):
            raise ValueError(f"patches of {vit.patch_embed.patch_size} pixels, and LN-MLN needs 16 x 16")
        if len(vit.blocks) < len(FRACTIONS):
            raise ValueError(f"{len(vit.blocks)} blocks, and LN-MLN needs {len(FRACTIONS)}")
        self.vit = vit
        self.channels = [int(vit.embed_dim)] * len(FRACTIONS)
        # the last of each quarter: 2, 5, 8 and 11 of the twelve of a ViT-B
        self.blocks = [len(vit.blocks) * part // len(FRACTIONS) - 1 for part in range(1, len(FRACTIONS) + 1)]
        self.lateral = nn.ModuleList(nn.Conv2d(each, each, 1) for each in self.channels)
        self.smooth = nn.ModuleList(nn.Conv2d(each, each, 3, padding=1) for each in self.channels)

    def forward(self, images: Tensor) -> list[Tensor]:
        """The features, largest first, each of shape (N, channels, height / fraction, width / fraction)."""
        height, width = images.shape[-2:]
        features = self.vit.forward_intermediates(images, indices=self.blocks, norm=True, intermediates_only=True)
        found = []
        for each, fraction, lateral, smooth in zip(features, FRACTIONS, self.lateral, self.smooth, strict=True):
            size = (height // fraction, width // fraction)
            scaled = functional.interpolate(lateral(each), size=size, mode="bilinear", align_corners=False)
            found.append(smooth(scaled))
        return found


STRIDE: Final = 32
"""Images are given sides that are multiples of this, since encoders halve them up to five times."""


PUBLISHED: Final[Mapping[str, tuple[str, str]]] = {
    "deeplabv3plus_r50-d8": ("deeplabv3plus", "resnet50"),
    "dpt_vit-b16": ("dpt", "vit_base_patch16_224"),
    "upernet_swin": ("upernet", "swin_tiny_patch4_window7_224"),
    "upernet_vit-b16_ln_mln": ("upernet_ln_mln", "vit_base_patch16_224"),
    "pspnet_r50-d8": ("pspnet", "resnet50"),
    "fpn_r50": ("fpn", "resnet50"),
    "upernet_r50": ("upernet", "resnet50"),
}
"""The seven networks by their names in table 6, in its order, the baseline first.

By name: the decoder in DECODERS, and timm's name of the encoder.
"""


class SegmentationNetwork(nn.Module):
    """A network from images of any size, with values 0 to 1, to logits of the same size for each label.

    Images are normalised inside, and extended at their right and lower edge to multiples of STRIDE.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, inner: nn.Module, mean: tuple[float, ...], std: tuple[float, ...]) -> None:
        super().__init__()
        self.inner = inner
        # not in the state dict: they follow from the encoder's name
        self.register_buffer("mean", torch.tensor(mean).view(3, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(std).view(3, 1, 1), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        """Logits, float of shape (N, labels, height, width), for images of shape (N, 3, height, width)."""
        height, width = images.shape[-2:]
        below = -height % STRIDE
        right = -width % STRIDE
        if below or right:
            images = functional.pad(images, (0, right, 0, below), mode="replicate")
        logits: Tensor = self.inner((images - self.mean) / self.std)
        return logits[..., :height, :width]


class MatrixAveragePool(nn.Module):
    """`nn.AdaptiveAvgPool2d` as two products of matrices, since its own gradient on a GPU is not deterministic."""

    def __init__(self, rows: int, columns: int) -> None:
        super().__init__()
        self.size = rows, columns

    def forward(self, features: Tensor) -> Tensor:
        """Means over parts of the features, of shape (N, channels, rows, columns)."""
        height, width = features.shape[-2:]
        down = _averaging(self.size[0], height).to(features)
        across = _averaging(self.size[1], width).to(features)
        return down @ features @ across.T


def _averaging(parts: int, length: int) -> Tensor:
    """The matrix from `length` values to the means of parts, which may overlap, as adaptive pooling takes them."""
    matrix = torch.zeros(parts, length)
    for part in range(parts):
        start = part * length // parts
        end = -(-(part + 1) * length // parts)
        matrix[part, start:end] = 1 / (end - start)
    return matrix


class UPerNetOverVit(nn.Module):
    """UPerNet over four sizes of features of a ViT, in mmsegmentation's words LN-MLN; `options` go to the ViT."""

    def __init__(self, encoder: str, labels: int, decoder_channels: int = 256, **options: object) -> None:
        super().__init__()
        self.encoder = VitPyramid(encoder, **options)
        # the decoder takes features of the whole and half the image, too, and passes over them
        channels = [3, 0, *self.encoder.channels]
        self.decoder = UPerNetDecoder(channels, encoder_depth=5, decoder_channels=decoder_channels)
        self.segmentation_head = SegmentationHead(decoder_channels, labels, kernel_size=1, upsampling=4)

    def forward(self, images: Tensor) -> Tensor:
        """Logits, float of shape (N, labels, height, width)."""
        features = self.encoder(images)
        logits: Tensor = self.segmentation_head(self.decoder([images, images[:, :0], *features]))
        return logits


def _dpt(encoder: str, labels: int, **options: object) -> nn.Module:
    """DPT over a ViT without the last norm and the classifier, which it does not use."""
    network = _from_library(smp.DPT, dynamic_img_size=True, num_classes=0)(encoder, labels, **options)
    network.get_submodule("encoder.model").norm = nn.Identity()
    return network


def _from_library(kind: Callable[..., nn.Module], **fixed: object) -> Callable[..., nn.Module]:
    def build(encoder: str, labels: int, *, pretrained: bool = False, **options: object) -> nn.Module:
        if encoder.startswith("swin"):
            # else the size of images is fixed
            options = {"strict_img_size": False, **options}
        # the library asks for None if weights are new
        weights = True if pretrained else None
        return kind(f"tu-{encoder}", encoder_weights=weights, classes=labels, **fixed, **options)

    return build


DECODERS: Final[Mapping[str, Callable[..., nn.Module]]] = {
    "deeplabv3plus": _from_library(smp.DeepLabV3Plus, encoder_output_stride=8),
    "dpt": _dpt,
    "fpn": _from_library(smp.FPN),
    "pspnet": _from_library(smp.PSPNet, encoder_depth=5, output_stride=8),
    "upernet": _from_library(smp.UPerNet),
    "upernet_ln_mln": UPerNetOverVit,
}
"""Builders by name; each takes timm's name of the encoder, the number of labels, and options."""


def segmentation_network(
    name: str, encoder: str | None, labels: int, *, weights: Path | None = None, **options: object
) -> SegmentationNetwork:
    """The network of that name for `labels` labels, background included.

    `name` is one of PUBLISHED, or one of DECODERS with timm's name of an `encoder`; `weights`: a file with published
    weights of the encoder, None for new ones, drawn from torch's generator; `options` go to the library. Raises
    CleansetError for an unknown network or encoder, and one that the decoder cannot use.
    """
    decoder, encoder = decoder_and_encoder(name, encoder)
    if weights is not None:
        options = {"pretrained": True, "pretrained_cfg_overlay": {"file": str(weights)}, **options}
    try:
        inner = DECODERS[decoder](encoder, labels, **options)
    except (ValueError, RuntimeError, TypeError, AttributeError, AssertionError) as error:
        # what the two libraries raise for encoders of another kind
        raise CleansetError(
            f"network {name}: {encoder} cannot be its encoder ({reason(error)}); expected another one: see the "
            "encoders of segmentation-models-pytorch"
        ) from None
    _replace_pools(inner)
    config = timm.get_pretrained_cfg(encoder, allow_unregistered=True)
    mean, std = (IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD) if config is None else (config.mean, config.std)
    return SegmentationNetwork(inner, tuple(mean), tuple(std))


def decoder_and_encoder(name: str, encoder: str | None) -> tuple[str, str]:
    """The decoder in DECODERS and timm's name of the encoder, of a network in params.yaml.

    Raises CleansetError for an unknown network or encoder, and a decoder without an encoder.
    """
    check_known("segmentation network", name, (*PUBLISHED, *DECODERS))
    if name in PUBLISHED:
        decoder, default = PUBLISHED[name]
        encoder = encoder or default
    elif encoder is None:
        raise CleansetError(f"network {name}: no encoder; expected timm's name of one, such as resnet50: set encoder")
    else:
        decoder = name
    if not timm.is_model(encoder):
        raise CleansetError(f"network {name}: unknown encoder {shown(encoder)}; expected timm's name of a network")
    return decoder, encoder


def _replace_pools(network: nn.Module) -> None:
    """Put a MatrixAveragePool in the place of every adaptive average pool."""
    for module in list(network.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.AdaptiveAvgPool2d):
                size = child.output_size
                # the decoders give one number, or a pair of numbers
                rows, columns = size if isinstance(size, tuple) else (size, size)
                if rows is None or columns is None:
                    raise ValueError(f"pools to {size}; expected two numbers")
                setattr(module, name, MatrixAveragePool(rows, columns))
