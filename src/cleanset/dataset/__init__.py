"""Images with their labels: ILSVRC2012's, your own; further studies of labels; duplicates."""
