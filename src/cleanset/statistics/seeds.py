"""Seeds derived by SHA-256 from names alone, independent of order, worker, batch and device."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256

import numpy as np

# `numpy.random.seed`, which imagecorruptions draws from, takes 32 bits
SEED_BYTES = 4


def image_seed(seed: int, image_id: str) -> int:
    """The seed of everything that is done to one image, 0 to 2**256 - 1; `seed` is the one in the params."""
    return int.from_bytes(names_digest(seed, image_id))


def change_seed(seed: int, kind: str, name: str, step: int) -> int:
    """The seed of one change of an image, 0 to 2**32 - 1.

    `seed` is the image's (`image_seed`), `kind` corruption, perturbation or scenario, `name` the change's, and `step`
    its severity or frame.
    """
    return int.from_bytes(names_digest(seed, kind, name, step)[:SEED_BYTES])


def names_digest(*names: str | int) -> bytes:
    """SHA-256 of the names as a JSON list, which separates ["a", "bc"] from ["ab", "c"] and "1" from 1."""
    return sha256(json.dumps(names).encode()).digest()


@contextmanager
def numpy_seeded(seed: int) -> Iterator[None]:
    """Seed numpy's global generator for a library that draws from it, and put its state back at the end.

    The generator belongs to the process: to be used in worker processes, never in threads.
    """
    state = np.random.get_state()
    np.random.seed(seed)
    try:
        yield
    finally:
        np.random.set_state(state)
