"""Training for robustness, on an edition's scenarios too: runs, their weights, histories and records."""
