"""EX3 of XIMAGENET-12: segmentation networks trained on original images and tested in every scenario."""
