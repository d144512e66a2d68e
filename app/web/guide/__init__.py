"""The guide: chapters in Markdown, with tables that are filled from the code's own.

    *.md          one chapter per reader's question
    assemble.py   their order, and the filling of `{{ placeholders }}`
    tables.py     one table per placeholder

Code blocks marked `sh` are run by `tests/test_document_examples.py`, so they must work as they stand. To add a
chapter, write it and name it in `assemble.CHAPTERS`; `tests/test_documents.py` says what the chapters must name.
"""
