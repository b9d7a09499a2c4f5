"""Finished sets that a git repository publishes through DVC: found with git, downloaded file by file, checked, kept."""
