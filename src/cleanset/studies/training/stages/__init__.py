"""The stages of studies/training/dvc.yaml, one module each."""
