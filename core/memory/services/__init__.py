"""Memory services of one's choice: one provider a module, found by the name of its file."""
