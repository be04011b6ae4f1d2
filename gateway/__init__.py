"""The running program: it connects the parts, admits events, runs turns, delivers answers, keeps
schedules and provides the command line."""
