"""Each measure beside its authors' program: what was compared, on how many values, and the largest difference.

    python bench/beside_authors.py PROGRAMS [FAMILY …]

PROGRAMS is a folder with the programs, each under the name that --list prints with its address. None of them is part
of this project. Needs the real photographs (CLEANSET_REAL, else ../shared/real), and for some rows ImageMagick and
ffmpeg.
"""

import argparse
from importlib import import_module
from pathlib import Path

from authors.rows import Row
from measuring import REAL, print_machine, print_table

FAMILIES = (
    "corruptions",
    "c_bar",
    "perturbations",
    "scenarios",
    "watermarks",
    "factors",
    "attacks",
    "balls",
    "training",
)
PROGRAMS = {
    "hendrycks-robustness": "git clone https://github.com/hendrycks/robustness, commit 8190fe3",
    "augmentation-corruption": "git clone https://github.com/facebookresearch/augmentation-corruption, commit ba4d5a5",
    "numpy-1.26.4": "pip download --no-deps numpy==1.26.4, and unzip",
    "augmix": "git clone https://github.com/google-research/augmix, commit 9b9824c",
    "XIMAGENET-12": "git clone https://github.com/XImageNet-12/XIMAGENET-12, commit 7641730",
    "unrestricted-adversarial-examples": (
        "git clone https://github.com/openphilanthropy/unrestricted-adversarial-examples, commit 7285875"
    ),
    "madrylab-robustness": "git clone https://github.com/MadryLab/robustness, commit a954124",
    "fast_adversarial": "git clone https://github.com/locuslab/fast_adversarial, commit 54f7287",
    "torchvision-0.2.1": "pip download --no-deps torchvision==0.2.1, and unzip",
    "cleverhans-2.1.0": "pip download --no-deps cleverhans==2.1.0, and unzip",
    "foolbox-1.5.0": "pip download --no-deps foolbox==1.5.0, and unpack",
    "imagenet-w-1.0.0": "pip download --no-deps imagenet-w==1.0.0, and unzip",
    "imagenetx": "git clone https://github.com/facebookresearch/imagenetx, commit 6403d41",
    "auto-attack": "git clone https://github.com/fra31/auto-attack, commit a392200",
    "torchattacks-3.5.1": "pip download --no-deps torchattacks==3.5.1, and unzip",
}
PHOTOGRAPHS = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=Path, nargs="?")
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=", ".join(FAMILIES))
    parser.add_argument("--list", action="store_true", help="print the programs and where they are from")
    arguments = parser.parse_args()
    if arguments.list or arguments.programs is None:
        print_table("Programs", ("folder", "from"), list(PROGRAMS.items()))
        return
    print_machine("torch", "scipy", "numba")
    photographs = sorted((REAL / "photos").glob("*.JPEG"))[:PHOTOGRAPHS]
    for family in arguments.families or FAMILIES:
        rows = import_module(f"authors.{family}").rows(arguments.programs, photographs)
        print_table(
            family, ("measure", "beside", "on", "values", "differing", "largest", "moves"), [shown(row) for row in rows]
        )


def shown(row: Row) -> tuple[str, ...]:
    return row.measure, row.beside, row.on, f"{row.values:,}", f"{row.differing:,}", f"{row.largest:.3g}", row.moves


if __name__ == "__main__":
    main()
