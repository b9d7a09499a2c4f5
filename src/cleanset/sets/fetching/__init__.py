"""Published sets, from a git repository and its DVC remote or from a release: downloaded, checked, kept."""
