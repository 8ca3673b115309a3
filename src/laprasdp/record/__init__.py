"""What happened: entries, estimates and settings as frozen data, with the law of their form."""
