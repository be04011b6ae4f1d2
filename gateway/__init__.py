"""The process: composition, admission, turns, delivery, schedules and the command line."""
