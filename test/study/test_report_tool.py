from __future__ import annotations

from pathlib import Path

import pytest

from iter_runner.study.report_tool import main


def test_a_figure_needs_a_file_name_that_says_its_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in (tmp_path, tmp_path / "run"):  # matplotlib would add an ending, and write beside the folder
        with pytest.raises(SystemExit):
            main(["--figure", str(name)])
        assert "expected a picture's file" in capsys.readouterr().err
