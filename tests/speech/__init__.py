"""Speech with real programs: espeak-ng speaks, and pocketsphinx listens. `make speech` installs them."""
