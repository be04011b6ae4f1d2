"""Memory services that the owner may use. Each module defines one provider with its own name."""
