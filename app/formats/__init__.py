"""Pure formats: values in, text, bytes or plots out. No file, no socket, no clock.

`digits` rounds what leaves, `card_markdown` writes a model card for people, `figures` draws. To add a format,
add a file of its name with one function from domain values to text or bytes.
"""
