"""The corruptions of ImageNet-C."""
