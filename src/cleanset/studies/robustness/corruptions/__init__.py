"""The corruptions of ImageNet-C, ImageNet-C-bar and ImageNet-3DCC."""
