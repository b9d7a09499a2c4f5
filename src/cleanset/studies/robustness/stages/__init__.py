"""The stages of a robustness study, in studies/robustness of an edition."""
