"""The studies: measurements on finished sets. The core never imports them."""
