"""The measures of corruptions, perturbations and scenarios, and their intervals: arrays in, numbers and tables out.

Errors, accuracies, CE and mCE are shares, not percent: an mCE of 0.76 is as many errors as 76 % of the reference's.
A measure that is not defined is NaN.
"""
