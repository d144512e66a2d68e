"""The five UCI data sets by name. None of them is part of this repository."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Archive:
    """How UCI hands a set out: as a table in a ZIP archive, each in a layout of its own.

    UCI also keeps many sets as a `data.csv` in one layout, but not all five, and Concrete only to two decimals.
    """

    path: str  # on UCI's site
    member: str  # the file inside that holds the table; old Excel if the name ends in .xls
    header: bool = False  # whether its first row names the columns
    separator: str | None = ","  # between the cells of a row; None is any white space
    decimal: str = "."


@dataclass(frozen=True, slots=True)
class DataSet:
    name: str
    file: str  # in a folder of data
    columns: tuple[str, ...]  # the last is the target, every other one a context
    rows: int
    anomalies: int  # injected into the whole set
    archive: Archive
    digest: str  # SHA-256 of the numbers, see `data.content_digest`; the bytes of a file may differ


SETS = (
    DataSet(
        "Abalone",
        "abalone.csv",
        (
            "Sex",
            "Length",
            "Diameter",
            "Height",
            "Whole weight",
            "Shucked weight",
            "Viscera weight",
            "Shell weight",
            "Rings",
        ),
        4177,
        100,
        Archive("1/abalone.zip", "abalone.data"),
        "aa46c13b648de082c05980253911947b4a824abe08a8adfff70a6e870c8b801c",
    ),
    DataSet(
        "Concrete",
        "Concrete.csv",
        ("C1", "C2", "C3", "C4", "C5", "C6", "C7", "Age", "Strength"),
        1030,
        50,
        Archive("165/concrete+compressive+strength.zip", "Concrete_Data.xls", header=True),
        "b3988db3b4ea301bc59ab427484ef18519ebb6ed89e0975f2d86cb4ca8be6d9d",
    ),
    DataSet(
        "SynMachine",
        "synchronousMachine.csv",
        ("Iy", "PF", "e", "dIf", "If"),
        557,
        50,
        Archive(
            "607/synchronous+machine+data+set.zip",
            "synchronous machine.csv",
            header=True,
            separator=";",
            decimal=",",
        ),
        "b1c2591f65e34116c2d65ea95f924d407ffe72f97eb2d37dbfbeac03a2192427",
    ),
    DataSet(
        "Toxicity",
        "toxicity.csv",
        ("CIC0", "SM1_Dz", "GATS1i", "NdsCH", "NdssC", "MLOGP", "LC50"),
        908,
        50,
        Archive("504/qsar+fish+toxicity.zip", "qsar_fish_toxicity.csv", separator=";"),
        "9ae48e7bf95db115ada59231eb1356360c78313b6154dfc05d0184c325b3a76d",
    ),
    DataSet(
        "Yacht",
        "yachtHydrodynamics.csv",
        (
            "Longitudinal_position",
            "Prismatic_coefficient",
            "Length_displacement_ratio",
            "Beam_draught_ratio",
            "Length_beam_ratio",
            "Froude_number",
            "resistance",
        ),
        308,
        30,
        Archive("243/yacht+hydrodynamics.zip", "yacht_hydrodynamics.data", separator=None),
        "9094835a50254fe3c7a325f1c3dee71dbda663bbd36f7015789a24b753147de2",
    ),
)
BY_NAME = {one.name: one for one in SETS}
