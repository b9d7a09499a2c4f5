"""The printed numbers of papers, each beside the number that today's code gives from what was published with it."""
