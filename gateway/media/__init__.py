"""What people send and get besides text: reactions, voice replies, descriptions of pictures."""
