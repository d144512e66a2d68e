import csv
import hashlib
import json
import os
import re
import shutil
import signal
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from app.formats.score_table import ERROR_COLUMNS, KNOWN, SCORE_COLUMNS
from app.formats.table_files import read_table
from app.schemas.fields import leaves, spec
from app.schemas.requests import ScoreRequest
from app.services.score_file import parts, run
from app.services.score_file.run import Counter
from app.settings import Settings
from tests.cli.running import READING, Done, Normalcy
from tests.cli.test_audit import audit_blocked
from tests.web.serving import records, serving

HEADER = (
    "id,site,age_years,sex,height_cm,weight_kg,diameter_mm,thresholds,convention.edge,measurement_sd_mm,model_version"
)
GOOD = "a,SoV,55,male,176,84,41,2;3,leading,0.5,"
BAD = {
    "b,SoV,30,female,1.65,60,30,,,,": "given_in_m",
    "c,SoV,forty,female,165,60,30,,,,": "wrong_type",
    "d,ZZ,30,female,165,60,30,,,,": "unknown_site",
    "e,SoV,30,female,165,60,30,,,,9.0.0": "unknown_version",
    "f,SoV,30": "ragged_row",
    "g,SoV,30,female,165,60,30,,upper,,": "not_a_choice",
    "h,,30,female,165,60,,,,,": "missing",
    "i,SoV,30,female,165,60,nan,,,,": "wrong_type",
    "j,SoV,30,female,165,60,30,2;x,,,": "wrong_type",
}
CANARY = "Mrs Example"


def write(path: Path, *rows: str, header: str = HEADER) -> Path:
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def arrow(values: list[Any], kind: str) -> Any:
    import pyarrow as pa

    if kind == "dictionary":
        return pa.array([str(value) for value in values]).dictionary_encode()
    if kind == "large_string":
        return pa.array([str(value) for value in values], pa.large_string())
    if kind.startswith("decimal"):
        return pa.array([None if value is None else Decimal(value) for value in values], pa.decimal128(38, 0))
    return pa.array(values, pa.type_for_alias(kind))


def measurements_of(folder: Path, **columns: Any) -> Path:
    """As Parquet: three measurements that differ in nothing but these columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    shared = {"site": "SoV", "age_years": 55, "sex": "male", "height_cm": 176, "weight_kg": 84, "diameter_mm": 41.0}
    pq.write_table(pa.table({name: [value] * 3 for name, value in shared.items()} | columns), folder / "in.parquet")
    return folder / "in.parquet"


def found_ids(path: Path) -> list[str | None]:
    import pyarrow.parquet as pq

    if path.suffix == ".csv":
        return [row["id"] or None for row in table(path)]
    return pq.read_table(path)["id"].to_pylist()  # type: ignore[no-any-return]


def one(normalcy: Normalcy, *more: str) -> Done:
    return normalcy("score", "--site", "SoV", *READING, *more)


class TestOneReading:
    def test_the_answer_is_on_record_before_it_is_shown(self, normalcy: Normalcy, settings: Settings) -> None:
        done = one(normalcy, "--threshold", "2", "--threshold", "3", "--subject", CANARY, "--json")
        assert done.code == 0
        record = next(record for record in records(settings) if record.kind == "score")
        assert (record.request_id, record.route) == (done.json["request_id"], "normalcy score")
        assert record.output["score"] == done.json["score"]
        assert [entry["threshold"] for entry in done.json["score"]["exceedance"]] == [2.0, 3.0]
        assert CANARY not in done.out + json.dumps(vars(record))

    def test_a_decimal_comma_gets_a_hint(self, normalcy: Normalcy) -> None:
        done = one(normalcy, "--diameter-mm", "41,5")
        assert done.code == 2
        assert "Write a decimal point" in " ".join(done.err.replace("│", " ").split())

    def test_every_field_of_the_request_has_an_option(self, alone: Normalcy) -> None:
        done = alone("score", "--help")
        shown = set(re.findall(r"--[a-z-]+", done.out))
        fields = {path.rpartition(".")[2] for path, _ in leaves(spec(ScoreRequest).fields.values())}
        expected = {f"--{name.replace('_', '-')}" for name in fields - {"thresholds"}} | {"--threshold"}
        files = {"--in", "--out", "--workers", "--scheduler", "--part-rows", "--template"}
        assert shown == expected | files | {"--site", "--json", "--help"}
        assert "Height in cm; 40 to 250." in " ".join(done.out.replace("│", " ").split())

    def test_an_age_of_zero_is_given(self, alone: Normalcy) -> None:
        newborn = ("--age-years", "0", "--sex", "female", "--height-cm", "51", "--weight-kg", "3.5")
        done = alone("score", "--site", "SoV", *newborn, "--diameter-mm", "9.5", "--measurement-sd-mm", "0", "--json")
        assert (done.code, done.json["input"]["age_years"]) == (0, 0.0)

    def test_every_option_reaches_the_record(self, normalcy: Normalcy, settings: Settings) -> None:
        options = {
            "hdi-probability": "0.9",
            "measurement-sd-mm": "0.5",
            "edge": "inner",
            "phase": "mid-systole",
            "modality": "CT",
            "model-version": "1.0.0",
        }
        more = [word for name, value in options.items() for word in (f"--{name}", value)]
        assert one(normalcy, *more, "--threshold", "-2", "--threshold", "3", "--include-unreliable").code == 0
        record = next(record for record in records(settings) if record.kind == "score")
        assert record.input | {"subject": None} == {
            "age_years": 55.0,
            "sex": "male",
            "height_cm": 176.0,
            "weight_kg": 84.0,
            "diameter_mm": 41.0,
            "thresholds": [-2.0, 3.0],
            "hdi_probability": 0.9,
            "measurement_sd_mm": 0.5,
            "convention": {"edge": "inner", "phase": "mid-systole", "modality": "CT"},
            "model_version": "1.0.0",
            "include_unreliable": True,
            "subject": None,
        }

    def test_people_read_the_sentence_and_where_it_is_on_record(self, normalcy: Normalcy) -> None:
        done = one(normalcy, "--edge", "leading")
        assert done.out.startswith("Evaluation model, not for care")
        assert "SoV 1.1.0; recorded as request " in done.out

    def test_every_error_is_reported_at_once(self, alone: Normalcy, embedded: Settings) -> None:
        done = alone("score", "--site", "SoV", "--age-years", 200, "--sex", "man", "--height-cm", 1.76)
        assert (done.code, done.out) == (1, "")
        for words in (
            "age_years must",
            "choose the sex of the reference group",
            "given in m?",
            "weight_kg is required",
        ):
            assert words in done.err
        assert not embedded.data_dir.exists()

    @pytest.mark.parametrize(
        "words", [["--in", "x.csv"], ["--out", "y.csv"], ["--in", "x.csv", "--out", "y.csv", "--age-years", "5"], []]
    )
    def test_options_that_do_not_go_together_are_rejected(self, alone: Normalcy, words: list[str]) -> None:
        assert alone("score", *words).code == 2

    @pytest.mark.req("REQ-070")
    def test_no_record_no_score(self, normalcy: Normalcy, settings: Settings) -> None:
        with audit_blocked(settings):
            done = one(normalcy)
        assert (done.code, done.out) == (1, "")


class TestCurrent:
    def test_an_activation_decides_which_version_answers(self, normalcy: Normalcy, settings: Settings) -> None:
        def version() -> Any:
            return one(normalcy, "--json").json["provenance"]["model"]["version"]

        assert version() == "1.1.0"
        made = normalcy("models", "activate", "SoV", "1.0.0", "--json").json
        assert version() == "1.0.0"
        assert made["activated_by"].startswith("command-line:")
        [record] = [record for record in records(settings) if record.kind == "activation"]
        assert record.model == {name: made[name] for name in ("site", "version", "sha256")}

    def test_a_version_that_is_not_what_was_published_is_not_activated(
        self, normalcy: Normalcy, settings: Settings, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        damaged = tmp_path / "models"
        shutil.copytree(models, damaged)
        card = damaged / "SoV" / "1.0.0" / "card.json"
        card.chmod(0o600)
        card.write_bytes(card.read_bytes().replace(b"200", b"201", 1))
        monkeypatch.setenv("NORMALCY_MODELS_DIR", str(damaged))
        done = normalcy("models", "activate", "SoV", "1.0.0")
        assert done.code == 1
        assert "card.json: its bytes do not match" in done.err
        assert records(settings) == []
        assert one(normalcy, "--json").json["provenance"]["model"]["version"] == "1.1.0"


class TestFile:
    def test_a_bad_row_says_why_and_spoils_no_other(self, normalcy: Normalcy, tmp_path: Path) -> None:
        source = write(tmp_path / "in.csv", GOOD, *BAD, "", GOOD.replace("a,SoV", "z,AA"))
        done = normalcy("score", "--in", source, "--out", tmp_path / "out.csv", "--json")
        assert (done.code, done.json["succeeded"], done.json["failed"]) == (0, 2, len(BAD))
        scored, rejected = table(tmp_path / "out.csv"), table(tmp_path / "out.errors.csv")
        assert [(row["index"], row["id"]) for row in scored] == [("0", "a"), ("10", "z")]
        assert all(row["expected_ns"] for row in scored)
        assert [(row["index"], row["id"]) for row in rejected] == list(zip("123456789", "bcdefghij", strict=True))
        assert [row["error_codes"] for row in rejected] == [*BAD.values()]
        assert all(row["errors"] for row in rejected)

    def test_ids_are_copied_as_they_are_in_the_cell(self, normalcy: Normalcy, tmp_path: Path) -> None:
        ids = [" x ", "\u2003y", '"', "007", "1e5", "12345678901234567890"]
        lines = ['"{}",{}'.format(one.replace('"', '""'), GOOD.partition(",")[2]) for one in ids]
        source = write(tmp_path / "in.csv", *lines, ' ,  ,"",', f'"a,""b\n"{GOOD[1:]}')
        done = normalcy("score", "--in", source, "--out", tmp_path / "out.csv", "--json")
        assert (done.json["succeeded"], done.json["failed"]) == (len(ids), 1)
        assert [row["id"] for row in table(tmp_path / "out.csv")] == ids
        [rejected] = table(tmp_path / "out.errors.csv")
        assert (rejected["index"], rejected["id"], rejected["error_codes"]) == ("6", "", "control_character")

    def test_a_row_has_the_digits_of_the_single_answer(self, normalcy: Normalcy, tmp_path: Path) -> None:
        normalcy("score", "--in", write(tmp_path / "in.csv", GOOD), "--out", tmp_path / "out.csv")
        (row,) = table(tmp_path / "out.csv")
        more = ("--threshold", "2", "--threshold", "3", "--edge", "leading", "--measurement-sd-mm", "0.5")
        answer = one(normalcy, *more, "--json").json
        score, error_free, reference = (answer[n] for n in ("score", "score_with_measurement_error", "reference"))
        assert float(row["expected_ns"]) == score["expected_ns"]
        assert float(row["hdi_high"]) == score["hdi"]["high"]
        assert row["probability_above"] == ";".join(str(entry["probability"]) for entry in score["exceedance"])
        assert float(row["error_free_hdi_low"]) == error_free["hdi"]["low"]
        assert float(row["interval_low_mm"]) == reference["interval_mm"]["low"]
        assert float(row["altman_z"]) == answer["comparators"]["altman_z"]
        assert row["advisories"] == ";".join(advisory["code"] for advisory in answer["advisories"])
        assert (row["verdict"], row["cohort"]) == (answer["reliability"]["verdict"], "simulated")

    @pytest.mark.req("REQ-084")
    def test_a_run_leaves_one_record_with_digests_and_no_names(
        self, normalcy: Normalcy, settings: Settings, tmp_path: Path
    ) -> None:
        source, out = write(tmp_path / f"{CANARY}.csv", GOOD.replace("a,", f"{CANARY},", 1), *BAD), tmp_path / "out.csv"
        done = normalcy("score", "--in", source, "--out", out, "--json").json
        (record,) = [record for record in records(settings) if record.kind == "score"]
        assert record.request_id == done["request_id"]
        assert record.input == {"file_sha256": hashlib.sha256(source.read_bytes()).hexdigest(), "rows": 1 + len(BAD)}
        assert record.output["file_sha256"] == hashlib.sha256(out.read_bytes()).hexdigest()
        rejected = out.with_name("out.errors.csv")
        assert record.output["errors_sha256"] == hashlib.sha256(rejected.read_bytes()).hexdigest()
        assert (record.output["succeeded"], record.output["failed"]) == (1, len(BAD))
        assert [model["version"] for model in record.output["models"]] == ["1.1.0"]
        assert record.model["version"] == "1.1.0"
        assert CANARY not in json.dumps(vars(record))

    def test_the_same_measurements_give_the_same_file(self, normalcy: Normalcy, tmp_path: Path) -> None:
        source = write(tmp_path / "in.csv", GOOD, *BAD)
        digests = {
            normalcy("score", "--in", source, "--out", tmp_path / f"{k}.csv", "--json").json["output_sha256"]
            for k in range(2)
        }
        assert len(digests) == 1

    def test_an_interrupted_run_says_that_it_can_go_on(
        self, alone: Normalcy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupted(*arguments: Any) -> None:
            [counter] = [each for each in arguments if isinstance(each, Counter)]
            os.kill(os.getpid(), signal.SIGINT)
            assert counter.is_stopped.wait(60)

        source, out = write(tmp_path / "in.csv", GOOD), tmp_path / "out.csv"
        with monkeypatch.context() as patched:
            patched.setattr(run, "_score_and_assemble", interrupted)
            done = alone("score", "--in", str(source), "--out", str(out))
        assert (done.code, done.out) == (130, "")
        assert done.err == (
            "normalcy: Stopped. Parts that are finished are saved: run the same command again to go on from there.\n"
        )
        assert (tmp_path / "out.csv.parts").is_dir()
        assert alone("score", "--in", str(source), "--out", str(out)).code == 0
        assert len(table(out)) == 1

    def test_blocks_keep_the_order_and_lose_nothing(
        self, alone: Normalcy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lines = [f"{k},{'SoV' if k % 3 else 'AA'},{20 + k},male,176,84,{30 + k},,,," for k in range(10)]
        source = write(tmp_path / "in.csv", *lines)
        alone("score", "--in", source, "--out", tmp_path / "whole.csv")
        monkeypatch.setattr(parts, "BLOCK_ROWS", 3)
        alone("score", "--in", source, "--out", tmp_path / "blocks.csv")
        assert [row["id"] for row in table(tmp_path / "blocks.csv")] == [str(k) for k in range(10)]
        assert (tmp_path / "blocks.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()

    def test_a_site_for_all_rows_can_be_given(self, alone: Normalcy, tmp_path: Path) -> None:
        source = write(tmp_path / "in.csv", "55,male,176,84,41", header="age_years,sex,height_cm,weight_kg,diameter_mm")
        assert alone("score", "--in", source, "--out", tmp_path / "no.csv").code == 1
        assert alone("score", "--site", "AA", "--in", source, "--out", tmp_path / "out.csv").code == 0
        assert table(tmp_path / "out.csv")[0]["site"] == "AA"

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"", "Column age_years is missing"),
            (HEADER.replace(",", ";").encode() + b"\n1;SoV;55;male;176;84,5;41", "separated by semicolons"),
            ((HEADER.replace("id,", "name,") + "\n").encode(), "Column name is not known"),
            ((HEADER + ",id\n").encode(), "Column id appears twice"),
            ((HEADER + "\n\xe9").encode("latin-1"), "not UTF-8"),
            ((HEADER + '\n"a,SoV').encode(), "not valid CSV"),
        ],
    )
    def test_what_is_no_table_of_measurements_is_rejected_whole(
        self, alone: Normalcy, tmp_path: Path, content: bytes, words: str
    ) -> None:
        source, folder = tmp_path / "in.csv", tmp_path / "out"
        source.write_bytes(content)
        folder.mkdir()
        done = alone("score", "--in", source, "--out", folder / "out.csv")
        assert done.code == 1
        assert words in done.err
        assert list(folder.iterdir()) == []

    def test_a_file_is_never_overwritten_and_other_kinds_are_rejected(self, alone: Normalcy, tmp_path: Path) -> None:
        source, out = write(tmp_path / "in.csv", GOOD), tmp_path / "out.csv"
        out.write_text("mine")
        assert "not overwritten" in alone("score", "--in", source, "--out", out).err
        assert out.read_text() == "mine"
        assert ".csv or .parquet" in alone("score", "--in", source, "--out", tmp_path / "out.xlsx").err
        assert "cannot be read" in alone("score", "--in", tmp_path / "none.csv", "--out", tmp_path / "n.csv").err
        assert "cannot be written" in alone("score", "--in", source, "--out", tmp_path / "no" / "out.csv").err

    @pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="a file that opens and cannot be read")
    def test_a_file_that_fails_while_it_is_read_is_not_reported_as_one_that_cannot_be_written(
        self, alone: Normalcy, tmp_path: Path
    ) -> None:
        source, out = tmp_path / "in.csv", tmp_path / "out.csv"
        source.symlink_to("/proc/self/mem")  # opens, and fails at the first byte
        done = alone("score", "--in", source, "--out", out)
        assert done.code == 1
        assert "in.csv cannot be read: Input/output error." in done.err
        assert not out.exists()

    @pytest.mark.req("REQ-084")
    def test_no_file_appears_whose_run_cannot_be_recorded(
        self, normalcy: Normalcy, settings: Settings, tmp_path: Path
    ) -> None:
        folder = tmp_path / "out"
        folder.mkdir()
        source = write(tmp_path / "in.csv", GOOD)
        with audit_blocked(settings):
            done = normalcy("score", "--in", source, "--out", folder / "out.csv")
        assert done.code == 1
        assert list(folder.iterdir()) == []


class TestParquet:
    def test_parquet_and_csv_hold_the_same(self, alone: Normalcy, tmp_path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        measurements = {
            "id": ["a", "b"],
            "site": ["SoV", "SoV"],
            "age_years": [55, 30],
            "sex": ["male", "female"],
            "height_cm": [176.0, 165.0],
            "weight_kg": [84.0, None],
            "diameter_mm": [41.0, 30.0],
            "thresholds": [[2.0, 3.0], None],
            "include_unreliable": [True, False],
        }
        pq.write_table(pa.table(measurements), tmp_path / "in.parquet")
        done = alone("score", "--in", tmp_path / "in.parquet", "--out", tmp_path / "out.parquet", "--json")
        assert (done.json["succeeded"], done.json["failed"]) == (1, 1)
        alone("score", "--in", tmp_path / "in.parquet", "--out", tmp_path / "out.csv")
        rows = pq.read_table(tmp_path / "out.parquet").to_pylist()
        assert list(rows[0]) == [column.name for column in SCORE_COLUMNS]
        (rejected,) = pq.read_table(tmp_path / "out.errors.parquet").to_pylist()
        assert list(rejected) == [column.name for column in ERROR_COLUMNS]
        assert (rejected["index"], rejected["id"], rejected["error_codes"]) == (1, "b", "missing")
        as_text = [{name: "" if cell is None else str(cell) for name, cell in row.items()} for row in rows]
        assert as_text == table(tmp_path / "out.csv")

    @pytest.mark.parametrize("suffix", ["csv", "parquet"])
    @pytest.mark.parametrize("kind", ["int64", "uint64", "int32", "decimal128(38, 0)", "dictionary", "large_string"])
    def test_ids_of_different_patients_stay_different(
        self, alone: Normalcy, tmp_path: Path, kind: str, suffix: str
    ) -> None:
        ids = [1, None, 7] if kind == "int32" else [12345678901234567, 12345678901234568, 9007199254740993]
        if kind == "decimal128(38, 0)":
            ids = [10**37 + 1, 10**37 + 2, None]
        done = alone("score", "--in", measurements_of(tmp_path, id=arrow(ids, kind)), "--out", tmp_path / f"x.{suffix}")
        assert done.code == 0, done.err
        assert found_ids(tmp_path / f"x.{suffix}") == [None if one is None else str(one) for one in ids]

    @pytest.mark.parametrize("kind", ["float64", "date32", "bool", "binary", "timestamp[ns]"])
    def test_an_id_that_cannot_be_copied_exactly_is_rejected_with_its_column(
        self, alone: Normalcy, tmp_path: Path, kind: str
    ) -> None:
        values: dict[str, list[Any]] = {"float64": [1e16, None, 2.0], "bool": [True, False, None]}
        values |= {"date32": [1, 2, 3], "timestamp[ns]": [1, 2, 3], "binary": [b"a", b"b", None]}
        source = measurements_of(tmp_path, id=arrow(values[kind], kind))
        done = alone("score", "--in", source, "--out", tmp_path / "x.csv")
        assert (done.code, list(tmp_path.glob("x*"))) == (1, [])
        assert "Column id must contain text or whole numbers" in done.err

    def test_a_column_without_a_value_is_empty_whatever_its_type(self, alone: Normalcy, tmp_path: Path) -> None:
        empty = {name: arrow([None] * 3, kind) for name, kind in (("id", "float64"), ("subject", "date32"))}
        source = measurements_of(tmp_path, **empty)
        assert alone("score", "--in", source, "--out", tmp_path / "x.parquet").code == 0
        assert found_ids(tmp_path / "x.parquet") == [None] * 3

    def test_the_row_numbers_that_pandas_adds_are_ignored(self, alone: Normalcy, tmp_path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        measurement = {
            "site": "SoV",
            "age_years": 55,
            "sex": "male",
            "height_cm": 176,
            "weight_kg": 84,
            "diameter_mm": 41,
        }
        columns = {name: [value] for name, value in measurement.items()}
        pq.write_table(pa.table({**columns, "__index_level_0__": [7]}), tmp_path / "in.parquet")
        done = alone("score", "--in", tmp_path / "in.parquet", "--out", tmp_path / "out.csv", "--json")
        assert (done.code, done.json["succeeded"]) == (0, 1)

    def test_a_file_that_is_no_parquet_is_rejected(self, alone: Normalcy, tmp_path: Path) -> None:
        (tmp_path / "in.parquet").write_bytes(b"PAR1 not really")
        done = alone("score", "--in", tmp_path / "in.parquet", "--out", tmp_path / "out.csv")
        assert done.code == 1
        assert "not Parquet" in done.err

    def test_without_pyarrow_one_sentence_says_what_to_install(
        self, alone: Normalcy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        source = write(tmp_path / "in.csv", GOOD)
        done = alone("score", "--in", source, "--out", tmp_path / "out.parquet")
        assert (done.code, (tmp_path / "out.parquet").exists()) == (1, False)
        assert done.err.startswith("normalcy: This command needs pyarrow")


class TestTemplate:
    @pytest.mark.parametrize("suffix", ["csv", "parquet"])
    def test_the_example_has_every_column_and_every_row_gets_a_score(
        self, alone: Normalcy, tmp_path: Path, suffix: str
    ) -> None:
        example, out = tmp_path / f"example.{suffix}", tmp_path / "out.csv"
        done = alone("score", "--template", "--out", example)
        assert (done.code, done.out.splitlines()[0]) == (0, f"Wrote an example of 3 measurements to {example}.")
        with example.open("rb") as file:
            assert read_table(example, file).columns == list(KNOWN)
        scored = alone("score", "--in", example, "--out", out, "--json").json
        assert (scored["succeeded"], scored["failed"]) == (3, 0)
        assert not (tmp_path / "out.errors.csv").exists()
        assert table(out)[2]["thresholds"] == "2.0;3.0"

    def test_it_is_written_here_if_no_name_is_given_and_never_over_another(
        self, alone: Normalcy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        assert alone("score", "--template").code == 0
        before = (tmp_path / "measurements.csv").read_bytes()
        done = alone("score", "--template")
        assert (done.code, "not overwritten" in done.err) == (1, True)
        assert (tmp_path / "measurements.csv").read_bytes() == before


@pytest.mark.req("REQ-023")
def test_the_command_line_agrees_with_a_service_that_runs_beside_it(
    alone: Normalcy, embedded: Settings, models: Path
) -> None:
    with serving(embedded, models) as running:
        body = dict(zip([name.strip("-").replace("-", "_") for name in READING[::2]], READING[1::2], strict=True))
        asked = {name: value if name == "sex" else float(value) for name, value in body.items()}
        answer = running.score(asked).json()
        said = one(alone, "--json").json
    shared = ("site", "input", "score", "reference", "comparators", "reliability", "advisories", "summary")
    assert {name: said[name] for name in shared} == {name: answer[name] for name in shared}


def test_the_documents_explain_every_column() -> None:
    text = (Path(__file__).parents[2] / "docs" / "score-files.md").read_text()
    what_goes_in, _, _ = text.partition("| `index` |")
    for name in KNOWN:
        assert f"`{name}`" in what_goes_in
    for column in (*SCORE_COLUMNS, *ERROR_COLUMNS):
        assert f"| `{column.name}` | {column.kind} | {column.meaning} |" in text
