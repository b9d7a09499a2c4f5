"""Recipes: what a classifier learns from a batch, besides or instead of the images as they are."""
