"""Models, their weights and scores; the gate that all answers pass; long computations on any devices and machines."""
