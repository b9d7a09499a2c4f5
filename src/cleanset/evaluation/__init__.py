"""What is asked of an evaluation: images, models, changes; the one opener of models."""
