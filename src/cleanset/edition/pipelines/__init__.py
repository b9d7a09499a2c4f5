"""The code that the stages of dvc.yaml files depend on: derived from imports, and entered into locks."""
