"""`python -m cleanset`: the command line, where the program `cleanset` is not on the PATH."""

from cleanset.cli import main

main()
