"""Pages that open without a server: the report of an edition, `look` at a finished set, `hints` at any images."""
