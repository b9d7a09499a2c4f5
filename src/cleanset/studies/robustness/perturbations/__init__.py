"""The perturbations of ImageNet-P."""
