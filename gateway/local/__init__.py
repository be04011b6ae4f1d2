"""Programs of the same home talk to the running gateway: `mneme chat`, `status` and `check`."""
