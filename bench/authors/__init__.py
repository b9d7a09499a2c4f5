"""Comparisons with the programs of the authors: a module for each family, with `rows(programs, photographs)`."""
