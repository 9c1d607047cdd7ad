"""How a node starts, and how it ends when it is told to meanwhile."""

from __future__ import annotations

import pytest
import rospy
from rospy.exceptions import ROSInitException

from iter_runner.nodes.start import start_node
from iter_runner.package import package_folder


@pytest.mark.parametrize(("told_to_end", "raised"), [(True, SystemExit), (False, ROSInitException)])
def test_only_whoever_is_told_to_end_ends_quietly(
    monkeypatch: pytest.MonkeyPatch, told_to_end: bool, raised: type
) -> None:
    def interrupted(name: str) -> None:
        raise ROSInitException(f"{name} interrupted before it could complete")

    monkeypatch.setattr(rospy, "init_node", interrupted)
    monkeypatch.setattr(rospy, "is_shutdown", lambda: told_to_end)
    with pytest.raises(raised) as caught:
        start_node("runner")
    if told_to_end:
        assert caught.value.code == 0


def test_no_node_shows_a_traceback_for_a_ctrl_c_while_it_is_loaded() -> None:
    for script in sorted((package_folder() / "scripts").iterdir()):
        text = script.read_text(encoding="utf-8")
        if "from iter_runner.nodes." in text:
            assert text.index("signal.SIG_DFL") < text.index("from iter_runner"), script.name
