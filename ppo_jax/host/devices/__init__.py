"""Members over devices and processes, and simulators beside them."""
