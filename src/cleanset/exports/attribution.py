"""The licences and terms of a set, and what to cite: the same wherever a set is described."""

from collections.abc import Iterable

TERMS_URL = "https://www.image-net.org/download.php"
IMAGENET_URL = "https://www.image-net.org/challenges/LSVRC/2012/"

LICENCE_URL = "https://creativecommons.org/licenses/by/4.0/"

TERMS = (
    "The images are ImageNet's and not ours to license: its terms of access apply, which allow research and "
    "education, nothing commercial, to people who have accepted them themselves."
)

LICENCES = (
    "The manifest, what is made from it, and the human reviews behind it: CC BY 4.0. The code that made the set: MIT."
)

CITATION = """\
@misc{cleanset,
  title  = {cleanset: a clean, human-verified subset of ImageNet's validation images},
  author = {{The cleanset authors}}
}
@article{imagenet,
  title   = {ImageNet Large Scale Visual Recognition Challenge},
  author  = {Russakovsky, Olga and Deng, Jia and Su, Hao and Krause, Jonathan and Satheesh, Sanjeev and Ma, Sean and \
Huang, Zhiheng and Karpathy, Andrej and Khosla, Aditya and Bernstein, Michael and Berg, Alexander C. and Fei-Fei, Li},
  journal = {International Journal of Computer Vision},
  volume  = {115},
  number  = {3},
  pages   = {211--252},
  year    = {2015},
  doi     = {10.1007/s11263-015-0816-y}
}
@misc{reassessed,
  title  = {Are we done with ImageNet?},
  author = {Beyer, Lucas and H{\\'e}naff, Olivier J. and Kolesnikov, Alexander and Zhai, Xiaohua and \
van den Oord, A{\\"a}ron},
  year   = {2020},
  eprint = {2006.07159},
  archivePrefix = {arXiv}
}"""
"""BibTeX: this project, the images, the labels."""

SCOOTER = "scooter"
"""The reviewer whose verdicts are those of the authors of SCOOTER (imagenet/reviews/README.md)."""

SCOOTER_LICENCE = "The reviews of `scooter` are the work of the authors of SCOOTER, and under their licence, MIT."

_SCOOTER_CITATION = """\
@misc{scooter,
  title  = {SCOOTER: A Human Evaluation Framework for Unrestricted Adversarial Examples},
  author = {Fazlija, Dren and Z{\\"u}hlke, Monty-Maximilian and Schrader, Johanna and Orlov, Arkadij and Stein, Clara \
and Olatunji, Iyiola E. and Kudenko, Daniel},
  year   = {2025},
  eprint = {2507.07776},
  archivePrefix = {arXiv}
}"""


def citation(reviewers: Iterable[str]) -> str:
    """BibTeX of what a set with these reviewers is made from."""
    return f"{CITATION}\n{_SCOOTER_CITATION}" if SCOOTER in reviewers else CITATION


def licences(reviewers: Iterable[str]) -> str:
    """LICENCES of a set with these reviewers."""
    return f"{LICENCES} {SCOOTER_LICENCE}" if SCOOTER in reviewers else LICENCES


def licence_text(reviewers: Iterable[str]) -> str:
    """The file LICENSE of a set with these reviewers."""
    return (
        f"{licences(reviewers)}\nCC BY 4.0: {LICENCE_URL}\n\n"
        f"{TERMS}\nThe terms: {TERMS_URL}\n\nWho uses the set cites\n\n{citation(reviewers)}\n"
    )


def name_of(model: str) -> str:
    """The name of a model's set."""
    return f"cleanset-{model}"
