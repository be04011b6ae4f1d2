"""Creates and connects the parts that handle a message. These modules are the composition root."""
