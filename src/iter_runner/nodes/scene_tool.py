"""The tool ``scene``: what the arm keeps clear of, on the command line."""

from __future__ import annotations

import argparse
import sys
from typing import Any, List, Optional, Sequence

import numpy as np
import rosgraph
import rospy
from geometry_msgs.msg import Pose
from rich.console import Console
from rich.table import Table
from shape_msgs.msg import SolidPrimitive
from std_msgs.msg import ColorRGBA

from iter_runner.kinematics.rotations import matrix_to_rpy, pose, rpy_to_matrix
from iter_runner.msg import SceneObject as SceneObjectMessage
from iter_runner.nodes.scene_message import PRIMITIVES, matrix_of, pose_message
from iter_runner.srv import SceneAdd, SceneList, SceneMove, SceneRemove

PATIENCE = 5.0
"""s of wall time that the runner gets to come up."""


class Failure(Exception):
    """Why the tool could not do it, and what to do."""


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line; exits with 2 where it can't be understood."""
    parser = argparse.ArgumentParser(
        prog="rosrun iter_runner scene",
        description="What the arm keeps clear of: the plan's objects, the workcell's, and those added here, which stay "
        "until they are removed. A run's next move is planned with the change. Lengths in m, angles in rad.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="list|add|move|remove")
    commands.add_parser("list", help="show all objects")
    add = commands.add_parser("add", help="add an object", description="Adds an object.")
    add.add_argument("name")
    shape = add.add_mutually_exclusive_group(required=True)
    shape.add_argument("--box", nargs=3, type=float, metavar=("X", "Y", "Z"), help="its sides")
    shape.add_argument("--sphere", nargs=1, type=float, metavar="RADIUS")
    shape.add_argument("--cylinder", nargs=2, type=float, metavar=("RADIUS", "LENGTH"), help="its axis is z")
    add.add_argument("--graspable", action="store_true", help="a part that the hand may take: no obstacle")
    add.add_argument("--color", nargs=3, type=float, metavar=("R", "G", "B"), default=(0.6, 0.6, 0.6), help="0 to 1")
    move = commands.add_parser("move", help="put an object elsewhere", description="Puts an object elsewhere.")
    move.add_argument("name")
    kept = "without it and --frame the object keeps its own"
    for command, unsaid in ((add, "none without it"), (move, kept)):
        command.add_argument("--at", nargs=3, type=float, required=True, metavar=("X", "Y", "Z"), help="its centre")
        command.add_argument(
            "--rpy", nargs=3, type=float, metavar=("R", "P", "Y"), help=f"turn about x, y, z; {unsaid}"
        )
        command.add_argument("--frame", default="", help="of the position: a fixed frame of the robot (its base)")
    remove = commands.add_parser("remove", help="take objects away", description="Takes objects away.")
    remove.add_argument("names", nargs="+", metavar="name")
    return parser.parse_args(_numbers_last(arguments))


def _numbers_last(arguments: Sequence[str]) -> List[str]:
    """argparse takes negative numbers like -1e-3 for options."""
    tidy: List[str] = []
    for word in arguments:
        try:
            tidy.append(f"{float(word):.17f}" if word.startswith("-") else word)
        except ValueError:
            tidy.append(word)
    return tidy


def message_to_add(options: argparse.Namespace) -> SceneObjectMessage:
    """The object of the command line."""
    shape = next(name for name in PRIMITIVES if getattr(options, name) is not None)
    sides = list(getattr(options, shape))
    return SceneObjectMessage(
        name=options.name,
        frame_id=options.frame,
        shape=SolidPrimitive(type=PRIMITIVES[shape], dimensions=sides[::-1] if shape == "cylinder" else sides),
        pose=_pose(options),
        graspable=options.graspable,
        color=ColorRGBA(*options.color, 1.0),
    )


def _pose(options: argparse.Namespace) -> Pose:
    place = pose(options.at)
    place[:3, :3] = rpy_to_matrix(options.rpy or (0.0, 0.0, 0.0))
    return pose_message(place)


def moved_pose(options: argparse.Namespace) -> Pose:
    """Where ``move`` puts the object; turned as it is now where the command line says neither a turn nor a frame."""
    moved = _pose(options)
    if options.rpy is None and not options.frame:
        objects = _call("/runner/scene/list", SceneList).objects
        moved.orientation = next(
            (item.pose.orientation for item in objects if item.name == options.name), moved.orientation
        )
    return moved


def table_of(response: Any) -> Table:
    """What ``list`` shows."""
    table = Table(box=None, header_style="bold")
    for title in ("name", "shape", "size (m)", "centre (m)", "roll pitch yaw", "from", ""):
        table.add_column(title)
    for item, origin, held in zip(response.objects, response.origins, response.held):
        matrix = matrix_of(item.pose)
        shape = next((name for name, number in PRIMITIVES.items() if number == item.shape.type), "?")
        sides = item.shape.dimensions[::-1] if shape == "cylinder" else item.shape.dimensions
        what = "in the hand" if held else "part" if item.graspable else "obstacle"
        table.add_row(
            item.name,
            shape,
            " ".join(f"{side:.3f}" for side in sides),
            " ".join(f"{value:.3f}" for value in matrix[:3, 3]),
            " ".join(f"{value + 0.0:.2f}" for value in np.round(matrix_to_rpy(matrix[:3, :3]), 2)),
            origin,
            what,
        )
    return table


def _call(address: str, service: Any, **fields: Any) -> Any:
    try:
        rospy.wait_for_service(address, PATIENCE)
        return rospy.ServiceProxy(address, service)(**fields)
    except (rospy.ROSException, rospy.ServiceException) as error:
        raise Failure(f"no answer from {address} ({error}): is the runner running?") from error


def run(options: argparse.Namespace, console: Console) -> None:
    """Does what the command line asks for.

    Raises:
        Failure: it could not be done.
    """
    if not rosgraph.is_master_online():
        raise Failure(
            f"no ROS master at {rosgraph.get_master_uri()}; start everything with `roslaunch iter_runner main.launch`"
        )
    answers = []
    if options.command == "list":
        response = _call("/runner/scene/list", SceneList)
        console.print(table_of(response) if response.objects else "there is nothing in the scene")
    elif options.command == "add":
        answers = [_call("/runner/scene/add", SceneAdd, object=message_to_add(options))]
    elif options.command == "move":
        fields = {"name": options.name, "frame_id": options.frame, "pose": moved_pose(options)}
        answers = [_call("/runner/scene/move", SceneMove, **fields)]
    else:
        answers = [_call("/runner/scene/remove", SceneRemove, name=name) for name in options.names]
    for answer in answers:
        if answer.success:
            console.print(answer.message, highlight=False, markup=False, soft_wrap=True)
    refusals = [answer.message for answer in answers if not answer.success]
    if refusals:
        raise Failure("; ".join(refusals))


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Runs the tool; returns its exit code."""
    options = parse_arguments(rospy.myargv()[1:] if arguments is None else arguments)
    width = None if sys.stdout.isatty() else 200
    try:
        run(options, Console(width=width))
    except Failure as failure:
        Console(stderr=True).print(f"scene: {failure}", highlight=False, markup=False, soft_wrap=True)
        return 1
    return 0
