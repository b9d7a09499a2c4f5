"""People's verdicts: files, decisions, queue, agreement, audits, gold items, wrong labels; the page, and its hints."""
