"""The process: composition, routing, delivery, schedules, command line."""
