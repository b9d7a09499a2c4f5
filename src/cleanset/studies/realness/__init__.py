"""The realness study: lists of images for people to rate, the page that they rate them on, and the analysis of
ratings."""
