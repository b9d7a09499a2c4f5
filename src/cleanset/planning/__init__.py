"""The price of a long computation before it starts: its work, its measured seconds, its hours."""
