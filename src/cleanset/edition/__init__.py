"""What an edition is: its params, its paths, the models it names; making a new one."""
