"""What one running process holds and keeps up to date: settings, database, loaded models, API keys, audit writer.

Use cases (`app.services`) take a `Runtime` and never build one.
"""
