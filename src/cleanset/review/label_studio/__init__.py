"""Reviewing in Label Studio: its formats, export of tasks, import of annotations."""
