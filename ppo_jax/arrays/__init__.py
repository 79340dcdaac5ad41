"""Tools that hold, count and draw arrays, and share them between devices."""
