"""The audit: what a record says, how records are chained, written, verified and found again.

    records.py     a record as canonical JSON bytes
    chain.py       how rows are chained by hashes, and whether a row is what was hashed
    writer.py      one task per process that commits records in groups; requests wait for it
    refusals.py    refused requests, aggregated so that they cannot fill the disk
    changes.py     changes of keys and activations, each with its record
    verify.py      are the chains, and the tables of keys and activations, what was written?
    checkpoint.py  the ends of all chains, to be stored outside the database
    lookup.py      records by request, time and site
    subject.py     the keyed hash of a patient reference

SQL is in `app.database`, what a score is in `app.domain`. To record a new kind of event, add its name to `Kind` and
let the service build a `NewRecord`; chains, verification and look-up need no change.
"""
