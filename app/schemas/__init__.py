"""What the OpenAPI pages say of requests and answers. Nothing here runs while a request is answered.

Requests are read by `formats`, answers are written by it; tests hold these descriptions against both.
"""
