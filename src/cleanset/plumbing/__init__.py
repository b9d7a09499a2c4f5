"""What reads, writes and reports, whatever it is about: files and their locks, CSV, JSON, YAML, caches, progress."""
