"""The rules: candidates of each class, the choice among them, and the metrics of both."""
