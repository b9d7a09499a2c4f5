"""The program `cleanset`, and `python -m cleanset`, where that is not on the PATH."""

import cleanset.plumbing.safe_imports  # noqa: F401 - worker processes import the main module first
from cleanset.plumbing.interpreter import begin_anew


def main() -> None:
    """Run the command line in a Python that imports nothing of the current folder."""
    begin_anew()
    # only now, since it takes a fifth of a second
    from cleanset.cli import main as run

    run()


if __name__ == "__main__":
    main()
