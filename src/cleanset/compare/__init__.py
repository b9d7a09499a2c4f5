"""What two score tables, two exports, or a score table and a published list disagree on."""
