"""An edition: its params, paths and models; making a new one, and repairing one."""
