"""The five UCI data sets by name. None of them is part of this repository."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DataSet:
    name: str
    file: str  # in a folder of data
    target: str  # the last column there; every other column is a context
    rows: int
    anomalies: int  # injected into the whole set
    uci_id: int
    digest: str  # SHA-256 of the numbers, see `data.content_digest`; the bytes of a file may differ


SETS = (
    DataSet(
        "Abalone",
        "abalone.csv",
        "Rings",
        4177,
        100,
        1,
        "aa46c13b648de082c05980253911947b4a824abe08a8adfff70a6e870c8b801c",
    ),
    DataSet(
        "Concrete",
        "Concrete.csv",
        "Strength",
        1030,
        50,
        165,
        "b3988db3b4ea301bc59ab427484ef18519ebb6ed89e0975f2d86cb4ca8be6d9d",
    ),
    DataSet(
        "SynMachine",
        "synchronousMachine.csv",
        "If",
        557,
        50,
        607,
        "b1c2591f65e34116c2d65ea95f924d407ffe72f97eb2d37dbfbeac03a2192427",
    ),
    DataSet(
        "Toxicity",
        "toxicity.csv",
        "LC50",
        908,
        50,
        504,
        "9ae48e7bf95db115ada59231eb1356360c78313b6154dfc05d0184c325b3a76d",
    ),
    DataSet(
        "Yacht",
        "yachtHydrodynamics.csv",
        "resistance",
        308,
        30,
        243,
        "9094835a50254fe3c7a325f1c3dee71dbda663bbd36f7015789a24b753147de2",
    ),
)
BY_NAME = {one.name: one for one in SETS}
