"""What may be asked: attributes, domains, and queries as weights over classes of cells."""
