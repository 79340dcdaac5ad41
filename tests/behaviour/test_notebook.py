"""The notebook does what it says, from the first cell to the last."""

import ast
from pathlib import Path

import pytest

PATH = Path(__file__).parents[2] / "experiments" / "notebook.ipynb"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Of Jupyter's own.
def test_the_agent_of_the_notebook_balances_in_gymnasium():
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    notebook = nbformat.read(PATH, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300).execute()
    *_, returns = (cell.outputs for cell in notebook.cells if cell.cell_type == "code")
    played = ast.literal_eval(returns[-1].data["text/plain"])
    assert len(played) == 10 and min(played) >= 475
