"""Define memory providers, and the manager that calls them around each turn."""
