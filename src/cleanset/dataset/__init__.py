"""Images with their labels, as they are read: ILSVRC2012's, your own; further studies of labels; duplicates."""
