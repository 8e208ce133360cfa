"""The command lines of `./run`: one tree of parsers, which imports nothing but Python's own library.

So `./run --help` and `./run COMMAND --help` need no package, and answer on a machine where nothing is installed yet.
"""
