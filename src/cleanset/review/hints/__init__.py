"""Signs that an image may have been modified. They hint; people decide."""
