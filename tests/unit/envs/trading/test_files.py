"""Files that can be read, and others."""

import sys

import numpy as np
import pandas as pd
import pytest
from price_files import GOOD

from ppo_jax.envs.trading import PriceError, PriceFile


def refused(path, said):
    with pytest.raises(PriceError, match=said):
        PriceFile(str(path))


def test_what_is_no_file_of_prices_is_told(tmp_path):
    refused(tmp_path / "no.csv", r"no\.csv: no such file in ")
    refused(tmp_path / "no.xlsx", r"no\.xlsx: expected a file \.csv or \.parquet")
    (tmp_path / "folder.csv").mkdir()
    refused(tmp_path / "folder.csv", r"folder\.csv: is a folder; expected a file of")
    (tmp_path / "bytes.csv").write_bytes(b"date,close\n\xff\xfe,1\n")
    refused(tmp_path / "bytes.csv", r"bytes\.csv: cannot be read: 'utf-8' codec can't")
    (tmp_path / "quote.csv").write_text('date,close\n2000-01-03,"1')
    refused(tmp_path / "quote.csv", r"quote\.csv: cannot be read: unexpected end")


def test_a_mark_at_the_beginning_is_no_part_of_a_name(tmp_path):
    (tmp_path / "good.csv").write_text(GOOD)
    (tmp_path / "marked.csv").write_text("\ufeff" + GOOD, encoding="utf-8")
    good, marked = (PriceFile(str(tmp_path / f"{x}.csv")) for x in ("good", "marked"))
    np.testing.assert_array_equal(good.bars.close, marked.bars.close)


def test_parquet_is_read_as_csv_is(tmp_path):
    """With a column of times, or an index of them."""
    pytest.importorskip("pyarrow")
    (tmp_path / "prices.csv").write_text(GOOD)
    frame = pd.read_csv(tmp_path / "prices.csv", parse_dates=["date"])
    for written in (frame, frame.set_index("date")):
        written.to_parquet(tmp_path / "prices.parquet")
        ours = PriceFile(str(tmp_path / "prices.parquet"))
        assert ours == PriceFile(str(tmp_path / "prices.csv"))
    frame.loc[7, "close"] = np.nan
    frame.to_parquet(tmp_path / "hole.parquet")
    refused(tmp_path / "hole.parquet", r"row 8, column 'close': a price is missing")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    refused(tmp_path / "broken.parquet", r"broken\.parquet: cannot be read")


def test_parquet_needs_a_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    (tmp_path / "prices.parquet").write_bytes(b"PAR1")
    refused(tmp_path / "prices.parquet", r"pip install 'ppo_jax\[market\]'; or write a")
