import random

import numpy as np
import pytest

from cleanset.statistics.seeds import change_seed, image_seed, numpy_seeded


def test_seeds_are_sha256_of_the_names() -> None:
    # printf '[7, "ILSVRC2012_val_00000001"]' | sha256sum; printf '[IMAGE_SEED, "corruption", "fog", 3]' | sha256sum
    image = image_seed(7, "ILSVRC2012_val_00000001")
    assert f"{image:064x}" == "0835b5f9db1a8e03c007cc2e449c1872ba615dc1a7a37ea10bf5f28cd7983ecb"
    assert change_seed(image, "corruption", "fog", 3) == 0x25B981CE
    assert change_seed(5, "perturbation", "snow", 0) == 0xAA58EE98


def test_each_name_decides_the_seed() -> None:
    seeds = [
        change_seed(image_seed(seed, image_id), kind, name, step)
        for seed in (0, 1)
        for image_id in ("a", "b", "1")
        for kind in ("corruption", "perturbation")
        for name in ("fog", "snow")
        for step in (1, 2, 12)
    ]
    assert len(set(seeds)) == len(seeds) == 72
    assert all(0 <= seed < 2**32 for seed in seeds)


def test_the_global_generator_is_put_back() -> None:
    np.random.seed(3)
    expected = np.random.random(2).tolist()
    np.random.seed(3)
    first = np.random.random()
    with numpy_seeded(9):
        inside = np.random.random()
    with pytest.raises(ValueError, match="low >= high"), numpy_seeded(9):
        np.random.randint(1, 0)
    assert [first, np.random.random()] == expected
    assert inside == np.random.RandomState(9).random_sample()


def test_nothing_depends_on_pythons_own_generator() -> None:
    random.seed(1)
    one = image_seed(0, "a")
    random.seed(2)
    assert image_seed(0, "a") == one
