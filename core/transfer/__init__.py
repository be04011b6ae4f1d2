"""What people bring along from elsewhere: one file for each format, each turning it into lines of a chronicle."""
