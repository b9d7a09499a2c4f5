"""A process that measures pictures for `signs`: JPEGs in, measures out, until the other end is closed."""

import os
import pickle
import sys
from contextlib import suppress

from cleanset.images import decode
from cleanset.review.hint_measures import measure


def main() -> None:
    """Answer each pickled JPEG on standard input with its pickled measures, None for one that is none."""
    os.nice(10)  # who turns the page comes first
    with suppress(EOFError, BrokenPipeError, KeyboardInterrupt):
        while True:
            data = pickle.load(sys.stdin.buffer)
            try:
                answer = measure(decode(data))
            except ValueError:
                answer = None
            pickle.dump(answer, sys.stdout.buffer)
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
