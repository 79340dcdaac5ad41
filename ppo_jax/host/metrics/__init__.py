"""What a run says of itself, and what is a sign of trouble in it."""
