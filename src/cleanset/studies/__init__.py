"""What is measured on finished sets. The core imports none of it."""
