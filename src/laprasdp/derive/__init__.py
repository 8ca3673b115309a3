"""What follows from estimates: sums with their exact law; the table is not asked again."""
