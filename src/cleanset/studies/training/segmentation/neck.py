"""Features of a ViT in four sizes, for a decoder that expects those of a convolutional network.

As in mmsegmentation's upernet_vit-b16_ln_mln: the outputs of four blocks, which all have a sixteenth of the image's
sides, go through the layer norm (LN) and a multi-level neck (MLN): a 1 x 1 convolution, bilinear scaling to a quarter,
an eighth, a sixteenth and a thirty-second of the image, and a 3 x 3 convolution. There the layer norm is that of the
last block only; here all four go through it.
"""

from typing import Any, Final

import timm
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor, nn
from torch.nn import functional

FRACTIONS: Final = (4, 8, 16, 32)
"""The image's sides by those of each size of features."""


class VitPyramid(nn.Module):
    """A ViT of timm and its neck; `channels` are those of each size of features, `options` go to timm.

    Raises ValueError for another network, one of fewer than four blocks, and patches of other than 16 x 16 pixels.
    """

    def __init__(self, name: str, **options: Any) -> None:
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
