"""What LAPRAS is compared with and the product does not offer: other systems, and the paper's own arithmetic."""
