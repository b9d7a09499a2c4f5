"""The watermark of ImageNet-W: its params, how it is drawn, and its measures."""
