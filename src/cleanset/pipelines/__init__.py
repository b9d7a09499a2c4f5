"""What dvc.yaml files depend on: derived from the code, and entered into locks."""
