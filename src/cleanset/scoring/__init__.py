"""Models, their weights, and their scores of images."""
