"""Human verdicts: their files, the decisions that follow, the queue, agreement of reviewers."""
