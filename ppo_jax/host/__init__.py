"""What the computer around a run does: files, devices, messages, and the loop."""
