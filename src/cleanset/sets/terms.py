"""What is said of a set wherever it is described: its terms, and what to cite."""

TERMS_URL = "https://www.image-net.org/download.php"
IMAGENET_URL = "https://www.image-net.org/challenges/LSVRC/2012/"

TERMS = (
    "Pictures of ImageNet are not ours to license. Its terms of access hold: for research and education, nothing "
    "commercial, by people who have accepted these terms themselves."
)

CITATION = """\
@misc{cleanset,
  title  = {cleanset: a clean, human-verified subset of ImageNet's validation pictures},
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
"""BibTeX, in the order of what is ours, the pictures, the labels."""


def name_of(model: str) -> str:
    """The name of a model's set."""
    return f"cleanset-{model}"
