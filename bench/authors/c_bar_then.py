"""Images by the program of ImageNet-C-bar's authors: started by c_bar.py, with a numpy of its time on the path.

    python c_bar_then.py PROGRAM NAME IN.npz OUT.npy

IN.npz has `images`, uint8 of shape (images, 224, 224, 3), and of each image to be made the number of its image, its
amount and its seed: `numbers`, `amounts` and `seeds`. OUT.npy has the images in this order.
"""

import sys
from pathlib import Path

import numpy as np


def main(program: Path, name: str, source: Path, target: Path) -> None:
    sys.path.insert(0, str(program))
    from transform_finder import build_transform  # type: ignore[import-not-found]

    with np.load(source) as given:
        images = given["images"]
        jobs = zip(given["numbers"], given["amounts"].tolist(), given["seeds"], strict=True)
        found = []
        for number, amount, seed in jobs:
            transform = build_transform(name=name, severity=amount, dataset_type="imagenet")
            np.random.seed(seed)
            found.append(transform(images[number]))
    np.save(target, np.stack(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))
