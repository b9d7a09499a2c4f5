"""Attacks on the models of an edition, on its finished sets: the attacks of source 004 and some stronger ones."""
