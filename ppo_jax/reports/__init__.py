"""Pages about runs: one file each, which a browser shows without anything else."""
