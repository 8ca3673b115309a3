"""How it is measured: optimal strategies of the matrix mechanism, as exact integer rows."""
