"""What the service says over HTTP and on its pages: a face on sessions and ledgers."""
