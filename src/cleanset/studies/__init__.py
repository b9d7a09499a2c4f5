"""The studies: measurements on finished sets. The core imports none of them."""
