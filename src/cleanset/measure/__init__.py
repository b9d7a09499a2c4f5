"""The accuracy of any model on any finished set; the model does not join an ensemble."""
