"""Human verdicts: their files, how they become decisions, what is still to be asked, how far reviewers agree."""
