"""The pages "People" and "Settings", which only the owner can see."""
