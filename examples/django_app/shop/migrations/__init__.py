"""What the database went through."""
