"""The words of the clinic as frozen values: patient, measurement, convention, card, score.

Nothing here reads a file, a clock or a socket, and nothing knows HTTP or SQL. To add a notion, add a
frozen dataclass to the file of its subject; give every physical quantity its unit in its name.
"""
