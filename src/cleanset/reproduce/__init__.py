"""The printed numbers of papers, each next to the number that today's code gives from what was published with it."""
