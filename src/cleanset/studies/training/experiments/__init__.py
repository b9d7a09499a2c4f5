"""The experiments of XIMAGENET-12: training on originals and on each scenario, compared."""
