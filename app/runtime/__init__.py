"""What one process holds, opens, refreshes and closes: database, loaded models, API keys, audit writer, checkpoints.

- `runtime`: `Runtime` and `open_runtime`, for the service
- `command`: the same for commands (`command_runtime`, `command_database`, ...)
- `models`: `LoadedModels`; `poller`: `DatabasePoller`
- `credentials`: API keys, callers, the database login
- `checkpoints`: the service's own checkpoints

Use cases (`app.services`) receive a `Runtime`, or settings if they are for commands.
"""
