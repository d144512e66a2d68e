import hashlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.errors import InvalidTable
from app.training.cohort import simulate_cohort, to_csv
from app.training.table import Table, read_table, training_ranges
from app.training.table_checks import Findings, accepted_table, check_table

Rows = list[list[str]]
AGE, SEX, HEIGHT, WEIGHT, DIAMETER = range(5)
SOUND: Rows = [line.split(",")[:5] for line in to_csv(simulate_cohort(300, seed=4)).splitlines()]


def written(folder: Path, rows: Rows) -> Path:
    path = folder / "people.csv"
    path.write_text("\n".join(",".join(row) for row in rows) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def checked(tmp_path: Path) -> Callable[[Rows], Findings]:
    return lambda rows: check_table(read_table(written(tmp_path, rows), "SoV_mm"))


def changed(column: int, cells: dict[int, str]) -> Rows:
    """The sound table with other cells in one column; keys are rows as in the file."""
    rows = [list(row) for row in SOUND]
    for row, cell in cells.items():
        rows[row - 1][column] = cell
    return rows


def scaled(column: int, factor: float) -> Rows:
    return changed(column, {k: f"{factor * float(SOUND[k - 1][column]):.4f}" for k in range(2, len(SOUND) + 1)})


def problems_of(path: Path, column: str = "SoV_mm") -> tuple[str, ...]:
    with pytest.raises(InvalidTable) as error:
        read_table(path, column)
    return error.value.problems


def test_a_sound_table_is_accepted_without_a_word(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text(to_csv(simulate_cohort(300, seed=4)), encoding="utf-8")
    table, warnings = accepted_table(path, "AA_mm")
    people = simulate_cohort(300, seed=4)
    assert warnings == ()
    np.testing.assert_array_equal(table.diameter_mm, people.sites["AA"].diameter_mm)
    np.testing.assert_array_equal(table.age_years, people.age_years)
    np.testing.assert_array_equal(table.male, people.male)
    np.testing.assert_array_equal(table.height_cm, people.height_cm)
    np.testing.assert_array_equal(table.weight_kg, people.weight_kg)
    assert table.rows.tolist() == list(range(2, 302))
    assert table.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_line_ends_byte_order_mark_and_blank_lines_do_not_matter(tmp_path: Path) -> None:
    plain = read_table(written(tmp_path, SOUND), "SoV_mm")
    lines = [",".join(row) for row in SOUND]
    lines.insert(5, "")
    lines += [",,,,", ""]
    (tmp_path / "excel.csv").write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    excel = read_table(tmp_path / "excel.csv", "SoV_mm")
    np.testing.assert_array_equal(excel.diameter_mm, plain.diameter_mm)
    assert excel.rows[3:5].tolist() == [5, 7]  # the blank line is row 6
    assert check_table(excel) == Findings((), ())


def test_columns_that_training_does_not_use_stay_unchanged(tmp_path: Path) -> None:
    rows = [[*row, f" note {k} "] for k, row in enumerate(SOUND)]
    rows[0][-1] = "note"
    table = read_table(written(tmp_path, rows), "SoV_mm")
    assert table.cells["note"][:2] == ("note 1", "note 2")


# What is no table at all


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert problems_of(tmp_path / "nowhere.csv") == ("nowhere.csv cannot be read: No such file or directory.",)


@pytest.mark.parametrize("content", [b"", b"\n", b"\xef\xbb\xbf", b",,,,\n"])
def test_an_empty_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "empty.csv").write_bytes(content)
    (problem,) = problems_of(tmp_path / "empty.csv")
    assert "no header row" in problem
    assert "age_years, sex, height_cm, weight_kg, SoV_mm" in problem


@pytest.mark.parametrize(("separator", "word"), [(";", "semicolons"), ("\t", "tabs")])
def test_another_separator_is_recognised(tmp_path: Path, separator: str, word: str) -> None:
    (tmp_path / "people.csv").write_text("\n".join(separator.join(row) for row in SOUND), encoding="utf-8")
    (problem,) = problems_of(tmp_path / "people.csv")
    assert f"separated by {word}" in problem


def test_every_missing_and_repeated_column_is_named(tmp_path: Path) -> None:
    rows = [["age_years", "sex", "height", "weight_kg", "weight_kg"], *SOUND[1:]]
    problems = problems_of(written(tmp_path, rows))
    assert [problem.split(";")[0] for problem in problems] == [
        "Columns height_cm, SoV_mm are missing",
        "Column weight_kg appears more than once in row 1.",
    ]


def test_a_parquet_file_is_rejected_with_a_hint(tmp_path: Path) -> None:
    (tmp_path / "people.parquet").write_bytes(b"PAR1\x15\x00\x15\x04PAR1")
    (problem,) = problems_of(tmp_path / "people.parquet")
    assert problem == "people.parquet is a Parquet file: training takes CSV, UTF-8 with commas and a header."


def test_a_context_column_cannot_be_the_diameter(tmp_path: Path) -> None:
    assert any("cannot be the diameter" in problem for problem in problems_of(written(tmp_path, SOUND), "height_cm"))


def test_text_that_is_not_utf8_is_refused_with_its_row(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_bytes(b"age_years,sex\n40,male\n50,m\xe4nnlich\n")
    (problem,) = problems_of(tmp_path / "people.csv")
    assert "not UTF-8" in problem
    assert "row 3" in problem


def test_an_open_quotation_mark_is_refused_with_its_row(tmp_path: Path) -> None:
    path = written(tmp_path, changed(SEX, {7: '"male'}))
    (problem,) = problems_of(path)
    assert problem.startswith("Row 7 is not valid CSV")


# What its cells hold


def test_ragged_rows_are_named(checked: Callable[[Rows], Findings]) -> None:
    rows = changed(DIAMETER, {3: "33,5"})
    rows[8] = rows[8][:4]
    assert checked(rows).problems == ("The number of cells differs from the header: rows 3 and 9 (a decimal comma?).",)


@pytest.mark.parametrize(
    "cell", ["about 170", "nan", "inf", "-inf", "1e999", "1_70", "１７０", "0x10", "170 cm", "n/a"]
)
def test_what_is_no_finite_number_is_named(checked: Callable[[Rows], Findings], cell: str) -> None:
    assert checked(changed(HEIGHT, {12: cell})).problems == ("Column height_cm is not a number: row 12.",)


def test_empty_cells_and_decimal_commas_are_distinguished(checked: Callable[[Rows], Findings]) -> None:
    problems = checked(changed(DIAMETER, {4: "", 9: " ", 11: '"33,5"'})).problems
    assert problems == (
        "Column SoV_mm is empty: rows 4 and 9.",
        "Column SoV_mm has a decimal comma instead of a point: row 11.",
    )


def test_a_missing_sex_is_called_missing(checked: Callable[[Rows], Findings]) -> None:
    problems = checked(changed(SEX, {5: "", 6: " ", 9: "M"})).problems
    assert problems == (
        "Column sex is empty: rows 5 and 6.",
        "Column sex must be exactly male or female: row 9.",
    )


@pytest.mark.parametrize("cell", ["M", "m", "Male", "FEMALE", "f", "1", "other"])
def test_another_spelling_of_sex_is_a_problem_that_says_what_is_expected(
    checked: Callable[[Rows], Findings], cell: str
) -> None:
    expected = "Column sex must be exactly male or female: row 5."
    assert checked(changed(SEX, {5: cell})).problems == (expected,)


def test_many_rows_are_cut_after_five(checked: Callable[[Rows], Findings]) -> None:
    (problem,) = checked(changed(WEIGHT, dict.fromkeys(range(10, 27), ""))).problems
    assert problem == "Column weight_kg is empty: rows 10, 11, 12, 13, 14 and 12 more."


@pytest.mark.parametrize(
    ("column", "cell", "sentence"),
    [
        (AGE, "-1", "Column age_years must be between 0 and 120 years: row 8."),
        (AGE, "432", "Column age_years must be between 0 and 120 years: row 8 (given in months?)."),
        (HEIGHT, "1.76", "Column height_cm must be between 40 and 250 cm: row 8 (given in m?)."),
        (
            HEIGHT,
            "17.6",
            "Column height_cm must be between 40 and 250 cm: row 8 (a decimal point in the wrong place?).",
        ),
        (HEIGHT, "1760", "Column height_cm must be between 40 and 250 cm: row 8 (given in mm?)."),
        (HEIGHT, "0", "Column height_cm must be between 40 and 250 cm: row 8."),
        (WEIGHT, "76000", "Column weight_kg must be between 1.5 and 350 kg: row 8 (given in g?)."),
        (
            WEIGHT,
            "760",
            "Column weight_kg must be between 1.5 and 350 kg: row 8 (a decimal point in the wrong place?).",
        ),
        (DIAMETER, "2.9", "Column SoV_mm must be between 3 and 120 mm: row 8 (given in cm?)."),
        (DIAMETER, "335", "Column SoV_mm must be between 3 and 120 mm: row 8 (a decimal point in the wrong place?)."),
        (DIAMETER, "3.4", "Column SoV_mm must be at least 10 mm from the age of 5 years: row 8 (given in cm?)."),
    ],
)
def test_a_mistake_in_one_cell_is_named_with_its_likely_unit(
    checked: Callable[[Rows], Findings], column: int, cell: str, sentence: str
) -> None:
    assert checked(changed(column, {8: cell})).problems == (sentence,)


def test_a_small_aorta_is_allowed_before_school_age(checked: Callable[[Rows], Findings]) -> None:
    rows = changed(AGE, {8: "1.5"})
    rows[7][HEIGHT:] = ["80", "11", "9.5"]
    assert checked(rows).problems == ()


@pytest.mark.parametrize(
    ("height", "weight", "question"),
    [
        ("69", "80", " (height given in inches?)"),
        ("69", "185", " (height and weight given in inches and pounds?)"),
        ("80", "176", " (height and weight exchanged?)"),
        ("100", "110", " (weight given in pounds?)"),
        ("176", "12", ""),
    ],
)
def test_an_impossible_body_is_named_with_its_likely_mistake(
    checked: Callable[[Rows], Findings], height: str, weight: str, question: str
) -> None:
    rows = changed(HEIGHT, {8: height})
    rows[7][WEIGHT] = weight
    expected = f"Columns height_cm and weight_kg must give a body mass index between 8 and 100 kg/m²: row 8{question}."
    assert checked(rows).problems == (expected,)


@pytest.mark.parametrize(
    ("column", "factor", "clue"),
    [
        (HEIGHT, 0.01, "(given in m?)"),
        (HEIGHT, 1 / 2.54, "in inches?"),
        (WEIGHT, 2.2046, "is column weight_kg given in pounds"),
        (DIAMETER, 0.1, "(given in cm?)"),
        (AGE, 12.0, "(given in months?)"),
    ],
)
@pytest.mark.req("REQ-060")
def test_a_column_in_another_unit_is_recognised(
    checked: Callable[[Rows], Findings], column: int, factor: float, clue: str
) -> None:
    problems = checked(scaled(column, factor)).problems
    assert any(clue in problem for problem in problems), problems


def test_one_heavy_adult_is_a_warning_only(checked: Callable[[Rows], Findings]) -> None:
    adult = next(k for k, row in enumerate(SOUND[1:], start=2) if float(row[AGE]) >= 18.0)
    findings = checked(changed(WEIGHT, {adult: f"{52.0 * (float(SOUND[adult - 1][HEIGHT]) / 100) ** 2:.1f}"}))
    expected = f"Adults with a body mass index above 50 kg/m²: row {adult} (weight given in pounds?)."
    assert findings == Findings((), (expected,))


# What the people are together


def test_a_constant_column_is_a_problem(checked: Callable[[Rows], Findings]) -> None:
    problems = checked(changed(DIAMETER, dict.fromkeys(range(2, 302), "30"))).problems
    assert problems == ("Column SoV_mm has the same value in every row.",)


def test_fewer_than_a_hundred_people_are_refused(checked: Callable[[Rows], Findings]) -> None:
    assert checked(SOUND[:100]).problems == ("The table has 99 people; at least 100 are needed.",)
    assert checked(SOUND[:101]).problems == ()


def test_a_table_without_people_is_refused(checked: Callable[[Rows], Findings]) -> None:
    assert "The table has 0 people; at least 100 are needed." in checked(SOUND[:1]).problems


def test_fewer_than_twenty_of_a_sex_are_refused(checked: Callable[[Rows], Findings]) -> None:
    men = [row for row in SOUND[1:] if row[SEX] == "male"]
    women = [row for row in SOUND[1:] if row[SEX] == "female"]
    assert checked([SOUND[0], *men, *women[:19]]).problems == ("The table has 19 women; at least 20 are needed.",)
    assert checked([SOUND[0], *women, *men[:20]]).problems == ()


def test_few_people_of_a_sex_and_age_band_are_a_warning(checked: Callable[[Rows], Findings]) -> None:
    old_women = [row for row in SOUND[1:] if row[SEX] == "female" and float(row[AGE]) >= 60.0]
    rows = [row for row in SOUND if row not in old_women[3:]]
    expected = "Only 3 women in the age group 60 years and more: scores there will rest on few people."
    assert checked(rows) == Findings((), (expected,))


def test_an_age_band_beyond_the_ages_of_the_table_is_no_warning(checked: Callable[[Rows], Findings]) -> None:
    adults = [row for row in SOUND[1:] if float(row[AGE]) >= 18.0]
    assert checked([SOUND[0], *adults]) == Findings((), ())


def test_a_gap_between_the_ages_of_the_table_is_a_warning(checked: Callable[[Rows], Findings]) -> None:
    rows = [row for row in SOUND[1:] if not 40.0 <= float(row[AGE]) < 60.0]
    assert checked([SOUND[0], *rows]).warnings == (
        "Only 0 men in the age group 40 to 59 years: scores there will rest on few people.",
        "Only 0 women in the age group 40 to 59 years: scores there will rest on few people.",
    )


def test_a_few_copies_are_a_warning_and_many_a_problem(checked: Callable[[Rows], Findings]) -> None:
    few = checked([*SOUND, *SOUND[1:6]])
    assert few == Findings(
        (), ("An exact copy of an earlier row: rows 302, 303, 304, 305 and 306. Is it the same person?",)
    )
    many = checked([*SOUND, *SOUND[1:16]])
    assert many.problems == ("15 rows are exact copies of an earlier one: rows 302, 303, 304, 305, 306 and 10 more.",)


def test_a_copy_written_with_other_digits_is_a_copy(checked: Callable[[Rows], Findings]) -> None:
    again = [*SOUND[1][:DIAMETER], SOUND[1][DIAMETER] + "0"]
    assert "row 302" in checked([*SOUND, again]).warnings[0]


def test_a_person_measured_twice_is_a_warning(checked: Callable[[Rows], Findings]) -> None:
    again = [*SOUND[1][:DIAMETER], "31.99"]
    (warning,) = checked([*SOUND, again]).warnings
    assert warning.startswith(
        "The same age, sex, height and weight as an earlier row, but a different diameter: row 302."
    )


def test_every_problem_comes_at_once_and_no_value_is_repeated(tmp_path: Path) -> None:
    rows = changed(HEIGHT, {3: "9999.125"})
    rows[5][SEX] = "unheard-of"
    rows[6][DIAMETER] = "thirty-three"
    with pytest.raises(InvalidTable) as error:
        accepted_table(written(tmp_path, rows), "SoV_mm")
    assert len(error.value.problems) == 3
    for value in ("9999.125", "unheard-of", "thirty-three"):
        assert value not in str(error.value)


NASTY = st.sampled_from(["", " ", "0", "-0", "-5", "1e-300", "1e300", "nan", "33,5", "69", "1.76", "male", "\x00", "£"])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(NASTY, NASTY, NASTY, NASTY, NASTY), max_size=12))
def test_whatever_the_cells_hold_the_check_ends_in_sentences(people: list[tuple[str, ...]]) -> None:
    with TemporaryDirectory() as folder:
        rows = [SOUND[0], *([f'"{cell}"' for cell in person] for person in people)]
        findings = check_table(read_table(written(Path(folder), rows), "SoV_mm"))
    assert findings.problems
    assert all(sentence.endswith((".", "?")) for sentence in (*findings.problems, *findings.warnings))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60))
def test_whatever_the_bytes_a_file_is_read_or_refused(content: bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "people.csv"
        path.write_bytes(b"age_years,sex,height_cm,weight_kg,SoV_mm\n" + content)
        with suppress(InvalidTable):
            assert read_table(path, "SoV_mm").sha256


# The ranges of its people


def test_ranges_are_those_of_the_people_by_sex(tmp_path: Path) -> None:
    table: Table = read_table(written(tmp_path, SOUND), "SoV_mm")
    ranges = training_ranges(table)
    men = [row for row in SOUND[1:] if row[SEX] == "male"]
    women = [row for row in SOUND[1:] if row[SEX] == "female"]
    ages = sorted(float(row[AGE]) for row in SOUND[1:])
    assert (ranges.age_years.low, ranges.age_years.high) == (ages[0], ages[-1])
    assert ages[2] <= ranges.age_years_middle_98.low <= ages[3]
    assert ages[-4] <= ranges.age_years_middle_98.high <= ages[-3]
    assert ranges.height_cm["male"].high == max(float(row[HEIGHT]) for row in men)
    assert ranges.height_cm["female"].high == max(float(row[HEIGHT]) for row in women)
    assert ranges.weight_kg["female"].low == min(float(row[WEIGHT]) for row in women)
    bmi = [float(row[WEIGHT]) / (float(row[HEIGHT]) / 100) ** 2 for row in SOUND[1:]]
    assert [ranges.bmi_kg_m2.low, ranges.bmi_kg_m2.high] == pytest.approx([min(bmi), max(bmi)])
