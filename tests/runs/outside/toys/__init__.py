"""A package of a user: a part of every kind."""
