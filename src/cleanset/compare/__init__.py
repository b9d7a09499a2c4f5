"""What two score tables or two exports disagree on."""
