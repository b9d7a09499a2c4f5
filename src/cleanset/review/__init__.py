"""Human verdicts: their files, the decisions that follow, what is still to be reviewed, agreement of reviewers."""
