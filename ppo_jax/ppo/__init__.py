"""An agent or a population: acting, learning, and evolving."""
