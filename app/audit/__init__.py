"""The record of every answer: what it says, how records are chained, written, verified and looked up.

    records.py     a record as canonical JSON bytes            chain.py       how a row is bound to the one before
    writer.py      one task per process, group commit          queue.py       who waits, for how long, in which order
    verify.py      is every chain what was written?            damage.py      is this one record what was written?
    checkpoint.py  what to keep outside the database
    lookup.py      by request, by time and site                subject.py     the keyed hash of a patient reference
    changes.py     keys and activations with their records     tables.py      are those tables as on record?

Not here: SQL (`database`), what a score is (`domain`), HTTP. To record a new kind of event, add its name to `Kind`
and let the service build a `NewRecord`; chains, verification and look-up need no change.
"""
