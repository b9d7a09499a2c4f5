"""Results of models side by side; differences between two score tables, two exports or two releases."""
