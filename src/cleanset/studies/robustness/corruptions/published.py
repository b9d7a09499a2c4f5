"""Published numbers on ImageNet-C: AlexNet's errors, by which CE is normalised, and the mCE of other models.

AlexNet: top-1 errors on all 50,000 validation images in the published JPEG files. Source: the table in the README of
the benchmark's repository (hendrycks/robustness) at commit 76d9393; its later versions link a spreadsheet. The
values are by name because lists of corruptions come in several orders. Not every row increases with severity.

Models: RobustBench, model_info/imagenet/corruptions/unaggregated_results.csv, accuracy and mCE in percent on the
official images (5,000 of them, all corruptions and severities); mCE against AlexNet's errors in the same file,
recomputed from its accuracies.
"""

ALEXNET_ERRORS: dict[str, tuple[float, ...]] = {
    "gaussian_noise": (0.69528, 0.82542, 0.93554, 0.98138, 0.99452),
    "shot_noise": (0.71224, 0.85108, 0.93574, 0.98182, 0.99146),
    "impulse_noise": (0.78374, 0.89808, 0.94870, 0.98720, 0.99548),
    "defocus_blur": (0.65624, 0.73202, 0.85036, 0.91364, 0.94714),
    "glass_blur": (0.64308, 0.75054, 0.88806, 0.91622, 0.93344),
    "motion_blur": (0.58430, 0.70048, 0.82108, 0.89750, 0.92638),
    "zoom_blur": (0.70008, 0.76992, 0.80784, 0.84198, 0.87198),
    "snow": (0.71726, 0.88392, 0.86468, 0.91870, 0.94952),
    "frost": (0.61390, 0.79734, 0.88790, 0.89942, 0.93430),
    "fog": (0.67474, 0.76050, 0.84378, 0.87260, 0.94500),
    "brightness": (0.45140, 0.48502, 0.54048, 0.62166, 0.72440),
    "contrast": (0.64548, 0.76150, 0.88874, 0.97760, 0.99270),
    "elastic_transform": (0.52596, 0.70116, 0.55686, 0.64076, 0.80554),
    "pixelate": (0.52218, 0.54620, 0.73728, 0.87092, 0.91262),
    "jpeg_compression": (0.51002, 0.54718, 0.57294, 0.65458, 0.74778),
    "speckle_noise": (0.66192, 0.74440, 0.90246, 0.94548, 0.97268),
    "gaussian_blur": (0.54732, 0.70444, 0.82574, 0.89864, 0.95940),
    "spatter": (0.47196, 0.62194, 0.75052, 0.84132, 0.90182),
    "saturate": (0.59342, 0.65514, 0.51174, 0.70834, 0.82260),
}
"""AlexNet's errors at severities 1 to 5, by corruption."""

ALEXNET_CLEAN_ERROR = 0.43478
"""AlexNet's error on the unchanged validation images: torchvision's weights, top-1 accuracy 56.522 %."""

PUBLISHED_MODELS: dict[str, tuple[float, float]] = {
    "Tian2022Deeper_DeiT-B": (67.5544, 41.6951),
    "Tian2022Deeper_DeiT-S": (62.9051, 47.6145),
    "Erichson2022NoisyMix_new": (53.2840, 59.4280),
    "Hendrycks2020Many": (52.9048, 60.0374),
    "Erichson2022NoisyMix": (52.4696, 60.4575),
    "Hendrycks2020AugMix": (49.3285, 64.1742),
    "Geirhos2018_SIN_IN": (45.7584, 68.6734),
    "Geirhos2018_SIN_IN_IN": (42.0035, 73.1860),
    "Standard_R50": (39.4829, 76.3774),
    "Geirhos2018_SIN": (39.9248, 76.6713),
    "Salman2020Do_50_2_Linf": (36.0925, 80.0039),
    "AlexNet": (21.1181, 100.0),
}
"""Mean accuracy and mCE by RobustBench's name of the model, the best mCE first."""
