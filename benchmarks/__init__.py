"""How fast the library is and learns, next to others.

`run` and what it imports are modules; everything else is a script, which runs as a file
in the interpreter of the library that it measures.
"""
