"""The work of a long computation before it starts: what it computes, what is left of it, its hours."""
