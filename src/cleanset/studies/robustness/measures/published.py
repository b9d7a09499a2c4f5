"""Accuracy and mCE of published models on the official images of ImageNet-C, in percent.

RobustBench, model_info/imagenet/corruptions/unaggregated_results.csv: 5,000 images, all corruptions and severities;
mCE against AlexNet's errors in the same file. Recomputed from its accuracies.
"""

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
"""By RobustBench's name of the model: mean accuracy and mCE, the best mCE first."""
