"""The running program.

It connects the adapters to the core, admits events, runs turns, delivers answers, runs scheduled
jobs and provides the command line.
"""
