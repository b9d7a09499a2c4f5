"""The licences and terms of a set, and what to cite: the same wherever a set is described."""

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


def name_of(model: str) -> str:
    """The name of a model's set."""
    return f"cleanset-{model}"
