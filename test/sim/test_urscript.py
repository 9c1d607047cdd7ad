from __future__ import annotations

import math

import numpy as np
import pytest
from cells import TUCK, kinds, logged, moved, run_for, run_program

from iter_runner.sim.controller import SafetyMode
from iter_runner.sim.poses import Pose, matrix_of, pose_of
from iter_runner.sim.urscript import CompileError, compile_script, servo_target
from iter_runner.sim.workcell import Workcell


def texts(cell: Workcell) -> list:
    return logged(cell.controller).split("\n")


# The fast path.


@pytest.mark.parametrize(
    "text",
    [
        "servoj([0, 1, -2.5, 3e-1, .5, 6.], 0, 0, 0.008, 0.1, 300)",
        "servoj([0,1,-2.5,3E-1,.5,6.],0,0,0.008,0.1,300)\n",
        "  servoj( [0, 1, -2.5, 0.3, 0.5, 6], a=0, v=0, t=0.008, lookahead_time=0.1, gain=300)  ",
        "servoj([0, 1, -2.5, 0.3, 0.5, 6], 0, 0, 0.008)",
        "def f():\n  servoj([0, 1, -2.5, 0.3, 0.5, 6], 0, 0, 0.008, 0.1)\nend\n",
    ],
)
def test_a_plain_servoj_is_read_without_the_parser(text: str) -> None:
    target = servo_target(text.replace("( [", "(["))
    assert target is not None
    assert target.joints == [0, 1, -2.5, 0.3, 0.5, 6]
    assert target[1:] == (0.008, 0.1, 300)


@pytest.mark.parametrize(
    "text",
    [
        "servoj([0, 1, 2], 0, 0, 0.008)",
        "servoj([0, 1, 2, 3, 4, 5], 0.1)",
        "servoj([0, 1, 2, 3, 4, x], 0, 0, 0.008)",
        "servoj([0, 1, 2, 3, 4, 5], 0, 0, 0.008)\nservoj([0, 1, 2, 3, 4, 5], 0, 0, 0.008)",
        "movej([0, 1, 2, 3, 4, 5])",
    ],
)
def test_anything_else_goes_through_the_parser(text: str) -> None:
    assert servo_target(text) is None


def test_floats_survive_to_the_last_bit() -> None:
    q = [math.pi / 3, -math.e, 1e-17, 123456.789012345, -0.1, 2.0 / 3.0]
    target = servo_target(f"servoj({q!r}, 0, 0, 0.008, 0.1, 300)")
    assert target is not None
    assert target.joints == q


def test_lookahead_and_gain_keep_to_their_ranges() -> None:
    target = servo_target("servoj([0, 0, 0, 0, 0, 0], 0, 0, 0.008, 0.001, 9999)")
    assert target is not None
    assert target[2:] == (0.03, 2000)


def test_both_ways_of_reading_a_servoj_move_the_arm_alike(make_cell) -> None:  # type: ignore[no-untyped-def]
    ends = []
    for text in ("servoj({}, 0, 0, 0.2, 0.1, 300)", "servoj({}, t=0.2, gain=300)"):
        cell = make_cell()
        run_program(cell, text.format(moved(TUCK, 0.1)))
        ends.append(cell.controller.q)
    assert ends[0] == ends[1]


# Compiling.


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("foo(1)", "line 1: the function 'foo' is not defined"),
        ("def f():\n  x = 1\n  moveq([0])\nend", "line 3: the function 'moveq' is not defined"),
        ("movej()", "movej: missing a required argument: 'q'"),
        ("movej([0], b=2)", "unexpected keyword argument 'b'"),
        ("movej([1, 2", "syntax error in line 1"),
        ("def f():\n x = 1\n", "an 'end' is missing"),
        ("def f():\n if True\n x = 1\n end\nend", "syntax error in line 2"),
        ("1 = 2", "only a variable"),
        ("", "empty"),
        ("# nothing\n", "empty"),
        ("def f(x):\nend", "no parameters"),
        ("def f(x):\nend\nf()", "f(x) does not take these arguments"),
        ("sec f():\n movej([0])\nend", "movej takes time"),
        ("thread f():\nend", "syntax error in line 1"),
        ("x" * 100_001, "takes 100000 at most"),
        ('textmsg("open', "syntax error in line 1"),
    ],
)
def test_what_is_no_program_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(CompileError) as caught:
        compile_script(text)
    assert message in str(caught.value)


def test_a_program_that_is_refused_leaves_what_runs_alone(cell: Workcell) -> None:
    with pytest.raises(CompileError):
        cell.run_script("nonsense(")
    assert cell.controller.external_control
    assert cell.controller.happenings == []


def test_the_last_definition_is_the_program() -> None:
    script = compile_script("def a():\n x = 1\nend\ndef b():\n a()\nend\n")
    assert script.name == "b"
    assert not script.secondary


# Running.


def test_statements_variables_and_branches(cell: Workcell) -> None:
    run_program(
        cell,
        """
def program():  # a comment
  total = 0
  i = 0
  while True:
    i = i + 1
    if i == 3:
      continue
    elif i > 5:
      break
    else:
      total = total + i   # 1 + 2 + 4 + 5
    end
  end
  textmsg("total ", total)
  values = [1, 2.5, True]
  values[1] = -values[0] * 2
  copy = values
  copy[0] = 9
  textmsg(values)
  home = p[0.1, 0.2, 0.3, 0, 0, 0]
  home[2] = 0.5
  textmsg(home)
  def double(x, y=1):
    local z = x * 2
    return z + y
  end
  textmsg("double ", double(4) + double(1, y=3))
  if not (1 > 2 or False) and (True xor False):
    textmsg("logic")
  end
  textmsg(7 % 4 + 6 / 4 - 2 * (3 - 1))
end
""",
    )
    assert texts(cell) == [
        "total 12",
        "[1, -2, True]",
        "p[0.1, 0.2, 0.5, 0, 0, 0]",
        "double 14",
        "logic",
        "0.5",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = y + 1", "line 1: the variable 'y' is not defined"),
        ("x = 1\ny = x / 0", "line 2: division by zero"),
        ("x = [1]\ny = x[3]", "line 2: list index out of range"),
        ("x = [1]\ny = x[-1]", "line 2: index -1"),
        ('x = "a" + 1', "numbers expected around '+'"),
        ("if 1:\nend", "True or False expected"),
        ("movej([0, 0, 0])", "six joint values"),
        ("movej([0, 0, 0, 0, 0, 1e999])", "a number expected, inf found"),
        ("movej([0, 0, 0, 0, 0, 0], a=0)", "movej: a: above 0 expected"),
        ("movel(p[9, 0, 0, 0, 0, 0])", "no inverse kinematics"),
        ("x = get_inverse_kin(p[9, 0, 0, 0, 0, 0])", "no inverse kinematics"),
        ("set_digital_out(40, True)", "digital output 40"),
        ("def f():\n f()\nend", "nested too deeply"),
        pytest.param("x = " + "[" * 3000 + "]" * 3000, "nested too deeply", id="deep"),
        ("break", "outside a loop"),
        ("x = p[1, 2]", "six numbers"),
        ("x = sqrt(-1)", "math domain error"),
        ('s = "ab"\nwhile True:\n s = str_cat(s, s)\nend', "at most 1023"),
    ],
)
def test_an_error_while_running_ends_the_program(cell: Workcell, text: str, message: str) -> None:
    run_program(cell, text)
    assert message in logged(cell.controller)
    assert "Program stopped" in logged(cell.controller)
    assert cell.controller.safety_mode == SafetyMode.NORMAL
    assert cell.controller.q == TUCK


def test_numbers_do_not_grow_without_end(cell: Workcell) -> None:
    run_program(cell, "x = 3\nwhile True:\n x = x * x\nend")
    assert "Program stopped" in logged(cell.controller)


def test_a_loop_that_never_waits_does_not_hang_the_controller(cell: Workcell) -> None:
    cell.run_script("while True:\n x = 1\nend")
    run_for(cell, 0.05)
    assert cell.controller.program is not None
    run_program(cell, "stopj(2)")


def test_moves_take_the_manuals_defaults(cell: Workcell) -> None:
    target = moved(TUCK, 1.0)
    seconds = run_program(cell, f"movej({target})")
    assert cell.controller.q == target
    assert seconds == pytest.approx(1.0 / 1.05 + 1.05 / 1.4, abs=0.03)


def test_movej_takes_a_pose_and_movel_takes_joints(cell: Workcell) -> None:
    target = moved(TUCK, 0.2, 0.1)
    pose = pose_of(cell.controller.forward(target))
    run_program(cell, f"movej({pose!r})")
    assert pose_of(cell.controller.forward(cell.controller.q)) == pytest.approx(pose, abs=1e-5)
    run_program(cell, f"movel({target}, a=0.5, v=0.1)")
    assert cell.controller.q == pytest.approx(target, abs=1e-6)


def test_poses_are_in_the_controllers_own_base(cell: Workcell) -> None:
    run_program(cell, "textmsg(get_actual_tcp_pose())")
    flange = cell.flange()  # in base_link
    inside = cell.controller.forward(cell.controller.q)
    assert inside[:3, 3] == pytest.approx(flange[:3, 3] * [-1, -1, 1])


def test_set_tcp_moves_the_point_that_poses_are_of(cell: Workcell) -> None:
    run_program(
        cell, "set_tcp(p[0, 0, 0.1675, 0, 0, 0])\nmovel(pose_trans(get_actual_tcp_pose(), p[0, 0, 0, 0, 0, 0.5]))"
    )
    tip = np.array([0, 0, 0.1675, 1])
    from iter_runner.sim.controller import Controller

    before = Controller(cell.controller.model, TUCK).forward(TUCK) @ tip
    cell.controller.tool_offset = np.eye(4)
    assert cell.controller.forward(cell.controller.q) @ tip == pytest.approx(before, abs=1e-9)


def test_kinematics_of_programs_agree_with_themselves(cell: Workcell) -> None:
    run_program(
        cell,
        """
def f():
  q = get_actual_joint_positions()
  x = get_forward_kin(q)
  back = get_inverse_kin(x, q)
  textmsg(norm([back[0] - q[0], back[1] - q[1], back[2] - q[2]]) < 0.000001)
  textmsg(point_dist(x, get_actual_tcp_pose()))
  one = pose_trans(x, pose_inv(x))
  textmsg(norm([one[0], one[1], one[2], one[3], one[4], one[5]]) < 0.000001)
  sum = pose_add(p[1, 0, 0, 0, 0, 0], p[0, 2, 0, 0, 0, 1])
  textmsg(sum)
end
""",
    )
    assert texts(cell) == ["True", "0", "True", "p[1, 2, 0, 0, 0, 1]"]


@pytest.mark.parametrize(
    "vector", [(0, 0, 0), (0.3, -0.2, 0.1), (math.pi, 0, 0), (0, 3.1, 0.5), (1e-9, 0, 0), (-2.0, 2.0, -1.0)]
)
def test_poses_go_to_matrices_and_back(vector: tuple) -> None:
    pose = Pose((0.1, -0.2, 0.3, *vector))
    matrix = matrix_of(pose)
    assert matrix[:3, :3] @ matrix[:3, :3].T == pytest.approx(np.eye(3), abs=1e-12)
    assert matrix_of(pose_of(matrix)) == pytest.approx(matrix, abs=1e-9)


def test_outputs_messages_and_time(cell: Workcell) -> None:
    seconds = run_program(
        cell,
        'set_digital_out(2, True)\nset_tool_digital_out(0, True)\nsleep(0.5)\npopup("hello", title="Study")\nsync()\n'
        "textmsg(get_steptime())\ntextmsg(is_steady())\nset_payload(1.2)\nsleep(0)",
    )
    assert seconds == pytest.approx(0.5 + 3 * 0.008, abs=0.02)
    assert cell.controller.outputs[2]
    assert cell.controller.outputs[16]
    assert kinds(cell.controller).count("output") == 2
    assert [item.value for item in cell.controller.happenings if item.kind == "popup"] == ["Study: hello"]
    assert texts(cell) == ["0.008", "True"]


def test_a_blocking_popup_holds_the_program(cell: Workcell) -> None:
    cell.run_script('popup("wait", blocking=True)\ntextmsg("on")')
    run_for(cell, 1.0)
    assert logged(cell.controller) == ""
    cell.controller.popup = None
    run_for(cell, 0.1)
    assert logged(cell.controller) == "on"


def test_halt_ends_a_program(cell: Workcell) -> None:
    run_program(cell, 'halt()\ntextmsg("never")')
    assert logged(cell.controller) == ""


def test_a_secondary_program_leaves_external_control_running(cell: Workcell) -> None:
    cell.run_script("sec out():\n set_digital_out(1, True)\nend\n")
    run_for(cell, 0.1)
    assert cell.controller.outputs[1]
    assert cell.controller.external_control


def test_each_script_replaces_the_one_before(cell: Workcell) -> None:
    cell.run_script('def long():\n sleep(5)\n textmsg("too late")\nend\n')
    run_for(cell, 0.1)
    assert run_program(cell, 'textmsg("now")') < 0.1
    run_for(cell, 6.0)
    assert texts(cell) == ["now"]
