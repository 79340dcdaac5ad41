"""One agent or a population: acting, learning from it, and evolving."""
