"""The tools the model may call, one file each."""
