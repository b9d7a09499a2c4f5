"""Read and hash all files in a folder, one process per core: what verify.py measures against; imports no more."""

import hashlib
import os
import sys
from multiprocessing import Pool


def main() -> None:
    names = [os.path.join(path, name) for path, _, files in os.walk(sys.argv[1]) for name in files]  # noqa: PTH118
    with Pool(len(os.sched_getaffinity(0))) as pool:
        print(len(pool.map(digest_of, names)))


def digest_of(name: str) -> str:
    with open(name, "rb") as file:  # noqa: PTH123
        return hashlib.sha256(file.read()).hexdigest()


if __name__ == "__main__":
    main()
