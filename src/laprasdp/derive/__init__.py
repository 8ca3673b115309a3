"""What follows from estimates: sums with their exact law, consistent counts; the table is not asked again."""
