"""What heads do, and what they matter."""
