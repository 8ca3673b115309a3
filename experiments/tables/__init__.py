"""One experiment a file; each is one table or figure, and what it asks."""
