"""An edition: its params, paths, models and pipeline; making one, repairing one, and what DVC and git keep of it."""
