"""What the assistant knows beyond the conversation in front of it."""
