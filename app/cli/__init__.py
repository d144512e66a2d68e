"""The `normalcy` command. One file per command group; each imports what it needs when it runs.

Late imports keep `normalcy models list` quick and let a serving installation, which has no TensorFlow, run
every command that does not train. To add a command, write a function with typed options in the file of its
group and register it in `main.py`.
"""
