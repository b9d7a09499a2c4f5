"""The published set of source 000's authors: their lists, and the replay of their procedure on them."""
