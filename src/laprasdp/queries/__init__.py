"""What is asked: attributes, domains, and queries as weights over classes of cells."""
