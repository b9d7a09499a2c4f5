"""One module per stage of dvc.yaml, of the stage's name. Each reads, computes and writes."""
