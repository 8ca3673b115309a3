"""Who keeps the record: in memory, in SQLite, in PostgreSQL; one transaction a statement."""
