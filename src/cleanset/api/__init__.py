"""The functions that `cleanset` offers to Python, one for each command or change of images; nothing else calls them."""
