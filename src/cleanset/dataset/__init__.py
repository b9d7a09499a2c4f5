"""ILSVRC2012: its names and numbers, labels, archives, and reading its images."""
