"""Any model on any finished set: its measures, their tables and comparisons; studies of labels. No ensemble changes."""
