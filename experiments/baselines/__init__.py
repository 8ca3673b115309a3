"""What LAPRAS is compared with and the product does not offer: other systems, the paper's arithmetic."""
