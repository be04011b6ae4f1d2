"""Adapters for platforms. An adapter converts events to `Inbound`, and answers with a `Reply`."""
