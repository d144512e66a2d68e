"""The `normalcy` command: one module per command or group of commands, registered in `main`.

Each command imports what it needs when it runs. That keeps `normalcy --help` fast and lets an installation without
TensorFlow run every command that does not train.
"""
