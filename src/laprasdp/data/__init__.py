"""Where the private rows are: a table read once, and exact counts from that one reading."""
