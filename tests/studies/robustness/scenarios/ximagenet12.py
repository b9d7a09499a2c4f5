"""The tables of the XIMAGENET-12 paper that the tests reproduce."""

from dataclasses import dataclass

COLUMNS = (
    "blur_background", "blur_object", "image_g", "image_b", "image_grey", "image_r", "random_background",
    "segmented_image",
)  # fmt: skip

EXTERNAL = {
    "ResNet50": (0.18, 0.50, 1.17, 0.68, 0.10, 0.38, 53.04, 7.12),
    "DenseNet121": (0.13, 0.72, 1.00, 1.01, 0.17, 0.84, 50.39, 7.69),
    "VGG-16": (0.15, 0.15, 2.30, 5.45, 1.52, 1.72, 47.93, 19.53),
    "ViT": (0.25, 0.07, 7.60, 9.38, 5.18, 7.24, 58.11, 19.74),
}
"""Table 3, squared deviations in percent, by COLUMNS."""

INTERNAL = {
    "ResNet50": (0.10, 0.00, 0.11, 0.17, 0.20, 0.00, 6.96, 0.30),
    "DenseNet121": (0.21, 0.00, 0.07, 0.14, 0.18, 0.01, 2.77, 0.29),
    "VGG-16": (0.33, 0.06, 0.26, 0.51, 0.72, 0.01, 0.01, 0.17),
    "ViT": (0.51, 0.72, 0.15, 0.07, 0.08, 0.57, 16.54, 0.00),
}
"""Table 3, of models trained on each scenario."""

PUBLISHED_SCORES = {"ResNet50": 0.8985, "DenseNet121": 0.9062, "VGG-16": 0.8845, "ViT": 0.8196}
PUBLISHED_VARIANCES = {
    "ResNet50": (0.0902, 0.0112),
    "DenseNet121": (0.0885, 0.0052),
    "VGG-16": (0.1125, 0.0029),
    "ViT": (0.1536, 0.0266),
}
WRITTEN_SCORES = {"ResNet50": 0.6200, "DenseNet121": 0.6540, "VGG-16": 0.6354, "ViT": 0.4807}
"""What the text's formula gives for the same cells."""

ACCURACIES = {
    "ResNet50": (90.97, 88.17, 84.42, 86.98, 92.13, 89.03, 22.41, 68.55),
    "DenseNet121": (93.77, 88.92, 87.39, 87.33, 93.23, 88.21, 26.41, 69.67),
    "VGG-16": (89.92, 89.91, 78.64, 70.46, 81.48, 80.68, 24.58, 49.62),
    "ViT": (88.44, 90.77, 65.87, 62.82, 70.69, 66.53, 17.21, 49.01),
}
"""Table 2, in percent."""

IMPLIED_MU = {"ResNet50": 95.24, "DenseNet121": 97.40, "VGG-16": 93.81, "ViT": 93.44}
"""The accuracy on the original images that table 3 follows from; the paper does not give it."""

DENSENET_BY_CLASS = {
    "blur_background": (95, 97, 89, 93, 93, 96, 89, 91, 98, 93, 99, 92),
    "blur_object": (74, 91, 72, 91, 93, 94, 73, 95, 94, 96, 98, 97),
    "image_g": (81, 93, 75, 68, 89, 94, 90, 92, 90, 98, 98, 80),
    "image_b": (71, 77, 75, 82, 96, 97, 93, 89, 96, 89, 96, 87),
    "image_grey": (94, 93, 83, 81, 98, 97, 95, 98, 90, 98, 97, 95),
    "image_r": (87, 87, 82, 92, 97, 96, 94, 85, 92, 89, 97, 57),
    "random_background": (30, 32, 20, 39, 16, 32, 9, 7, 14, 46, 63, 7),
    "segmented_image": (63, 85, 67, 51, 91, 83, 73, 62, 75, 69, 95, 16),
    "unchanged": (96, 97, 93, 97, 98, 98, 97, 99, 99, 98, 98, 99),
}
"""Table 5, in percent."""


@dataclass(frozen=True)
class Published:
    """A regression as published: the baseline of each factor is its first level.

    `coefficients`: the intercept, then by factor, level: estimate, low, high, p; None where p is below 0.0001.
    """

    models: tuple[str, ...]
    scenarios: tuple[str, ...]
    residual_ss: float
    coefficients: tuple[tuple[float, float, float, float | None], ...]
    f: tuple[float, float, float, float]
    """Degrees of freedom of the regression, models, scenarios and classes."""


EX1 = Published(
    ("ResNet50", "EfficientNetB0", "EfficientNetB3", "DenseNet121", "MobileNetV2"),
    ("Original", "blur_background", "blur_object", "image_g", "image_b", "image_grey", "image_r", "random", "seg"),
    5.815,
    (
        (0.8986, 0.8547, 0.9426, None),
        (-0.03444, -0.06282, -0.006065, 0.0175), (-0.04111, -0.06949, -0.01273, 0.0046),
        (0.01556, -0.01282, 0.04394, 0.2821), (0.005556, -0.02282, 0.03394, 0.7007),
        (-0.0425, -0.08058, -0.004424, 0.0288), (-0.07, -0.1081, -0.03192, 0.0003), (-0.1257, -0.1637, -0.08759, None),
        (-0.0985, -0.1366, -0.06042, None), (-0.06517, -0.1032, -0.02709, 0.0008), (-0.087, -0.1251, -0.04892, None),
        (-0.7078, -0.7459, -0.6698, None), (-0.3012, -0.3392, -0.2631, None),
        (0.134, 0.09003, 0.1780, None), (-0.04867, -0.09263, -0.004701, 0.0301), (0.04, -0.003966, 0.08397, 0.0745),
        (0.1004, 0.05648, 0.1444, None), (0.1333, 0.08937, 0.1773, None), (0.07667, 0.03270, 0.1206, 0.0007),
        (0.01044, -0.03352, 0.05441, 0.6409), (0.09067, 0.04670, 0.1346, None), (0.09933, 0.05537, 0.1433, None),
        (0.1651, 0.1211, 0.2091, None), (-0.02244, -0.06641, 0.02152, 0.3164),
    ),
    (99.40, 6.125, 257.2, 18.54),
)  # fmt: skip
"""Tables 1 and 4."""

EX3 = Published(
    ("deeplabv3plus_r50-d8", "dpt_vit-b16", "upernet_swin", "upernet_vit-b16_ln_mln", "pspnet", "fpn", "upernet_r50"),
    (
        "Original", "blur_background", "blur_object", "image_g", "image_b", "image_grey", "image_r", "segmented",
        "generated",
    ),
    12.16,
    (
        (0.6672, 0.6202, 0.7142, None),
        (-0.1999, -0.2344, -0.1654, None), (-0.2211, -0.2556, -0.1866, None), (-0.1695, -0.2040, -0.1351, None),
        (-0.045, -0.07948, -0.01052, 0.0106), (-0.2081, -0.2426, -0.1737, None), (-0.05796, -0.09245, -0.02348, 0.001),
        (0.01833, -0.02077, 0.05743, 0.3576), (-0.1571, -0.1962, -0.1180, None), (-0.07131, -0.1104, -0.03221, 0.0004),
        (-0.03952, -0.07862, -0.0004243, 0.0476), (-0.01929, -0.05839, 0.01981, 0.3332),
        (-0.07702, -0.1161, -0.03792, 0.0001), (-0.08143, -0.1205, -0.04233, None), (-0.1408, -0.1799, -0.1017, None),
        (0.07619, 0.03104, 0.1213, 0.001), (-0.06508, -0.1102, -0.01993, 0.0048), (0.05222, 0.007074, 0.09737, 0.0234),
        (0.08127, 0.03612, 0.1264, 0.0004), (0.2713, 0.2261, 0.3164, None), (0.3021, 0.2569, 0.3472, None),
        (0.1641, 0.1190, 0.2093, None), (0.1548, 0.1096, 0.1999, None), (0.2216, 0.1764, 0.2667, None),
        (0.2689, 0.2237, 0.3140, None), (0.04079, -0.004355, 0.08594, 0.0765),
    ),
    (41.95, 54.20, 18.01, 52.68),
)  # fmt: skip
"""Tables 6 and 4; table 6 has t in the p column of classes 7 to 11, for which this has the p that follows from it."""
