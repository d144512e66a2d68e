"""One file per subject. An endpoint takes a call, parses it with `formats`, asks a service, and answers."""
