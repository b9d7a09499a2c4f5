"""Signs that an image may have a flaw, such as an added text or a border. They hint; people decide."""
