"""The files of a run on disk, each of them there whole or not at all."""
