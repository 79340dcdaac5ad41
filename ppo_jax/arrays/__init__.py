"""How arrays are held, counted, drawn at random, and shared by devices."""
