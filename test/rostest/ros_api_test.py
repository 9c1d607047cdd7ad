#!/usr/bin/env python3
"""Compares docs/ros_api.md with the running graph, in both directions."""

import os
import re
import sys
import time
import unittest
from pathlib import Path

import rosgraph
import rospy
import rosservice
from iter_runner.msg import RunnerState

import rostest

ROOT = Path(__file__).resolve().parents[2]
NAME = "ros_api_test"
PATIENCE = 120.0  # s of real time for all nodes to be up
# What rospy and actionlib bring along.
OWN_TOPICS = {"/rosout", "/rosout_agg"}
OWN_PARAMETERS = re.compile(
    r"^/(?:use_sim_time|enable_statistics|tcp_keepalive|rosout_disable_topics_generation|run_id"
    r"|actionlib_\w+_queue_size|roslaunch/.*)$|/status_list_timeout$|/status_frequency$|/actionlib_status_frequency$"
)
GOALS = (("goal", "ActionGoal"), ("cancel", None))
ANSWERS = (("feedback", "ActionFeedback"), ("result", "ActionResult"), ("status", None))
ACTIONLIB = {"cancel": "actionlib_msgs/GoalID", "status": "actionlib_msgs/GoalStatusArray"}


def read_document():
    """Rows (kind, name, type) of every section with a table, by the section's title."""
    sections = {}
    title = ""
    for line in (ROOT / "docs" / "ros_api.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            title = line[3:].strip()
        cells = [cell.strip().strip("`") for cell in line.strip().strip("|").split(" | ")]
        if line.startswith("| ") and len(cells) >= 2 and cells[0] != "kind":
            cells = [cell.strip("| ") for cell in cells] + ["", ""]
            sections.setdefault(title, []).append((cells[0], cells[1], cells[2]))
    return sections


def topics_of_action(name, action, pairs):
    return {(f"{name}/{topic}", f"{action}{ending}" if ending else ACTIONLIB[topic]) for topic, ending in pairs}


def documented(rows, sections, topic_parameter):
    """What the page says that a node publishes, subscribes and serves: sets of (name, type)."""
    found = {"publishes": set(), "subscribes": set(), "service": set()}
    for kind, name, type_name in rows:
        if kind == "uses":
            for key, more in documented(sections["The arm"], sections, topic_parameter).items():
                found[key] |= more
        elif kind == "action":
            found["subscribes"] |= topics_of_action(name, type_name, GOALS)
            found["publishes"] |= topics_of_action(name, type_name, ANSWERS)
        elif kind == "calls action":
            found["publishes"] |= topics_of_action(name, type_name, GOALS)
            found["subscribes"] |= topics_of_action(name, type_name, ANSWERS)
        elif kind in found:
            found[kind].add((topic_parameter if name.startswith("~") else name, type_name))
    return found


class Graph:
    """Who publishes, subscribes and serves what."""

    def __init__(self):
        master = rosgraph.Master(f"/{NAME}")
        publishers, subscribers, services = master.getSystemState()
        self.types = dict(master.getTopicTypes())
        self.nodes = {}
        for kind, entries in (("publishes", publishers), ("subscribes", subscribers), ("service", services)):
            for name, nodes in entries:
                for node in nodes:
                    self.nodes.setdefault(node.strip("/"), {}).setdefault(kind, set()).add(name)

    def of(self, node, kind):
        names = self.nodes.get(node, {}).get(kind, set())
        if kind == "service":
            own = {name for name in names if name.endswith(("/get_loggers", "/set_logger_level"))}
            return {(name, rosservice.get_service_type(name)) for name in names - own}
        left_out = OWN_TOPICS | ({"/clock"} if kind == "subscribes" else set())
        return {(name, self.types.get(name, "any")) for name in names - left_out}


class RosApiTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.sections = read_document()
        cls.documents = {title: rows for title, rows in cls.sections.items() if title != "The arm"}
        deadline = time.monotonic() + PATIENCE
        # The run waits for its press: everything that a run brings up is up.
        while rospy.wait_for_message("/runner/state", RunnerState, PATIENCE).state != RunnerState.WAITING_FOR_HUMAN:
            if time.monotonic() > deadline:
                raise AssertionError(f"no plan waits for a press after {PATIENCE:g} s")
        while True:
            cls.graph = Graph()
            missing = [node for node in cls.documents if cls.differences(node)]
            if not missing or time.monotonic() > deadline - PATIENCE / 2:
                break
            rospy.rostime.wallsleep(0.5)

    @classmethod
    def differences(cls, node):
        expected = documented(cls.documents[node], cls.sections, "/pedal")
        at_first = any(kind == "uses at first" for kind, _, _ in cls.documents[node])
        transient = documented(cls.sections["The arm"] if at_first else [], cls.sections, "")
        lines = []
        for kind, rows in expected.items():
            # A topic that nobody publishes has no type yet.
            running = cls.graph.of(node, kind) - transient[kind]
            untyped = {name for name, known in running if known in ("any", "*")}
            rows = {(name, "any" if name in untyped else type_name) for name, type_name in rows}
            running = {(name, "any" if name in untyped else known) for name, known in running}
            lines += [f"{node} {kind} {name} ({known}), which docs/ros_api.md lacks" for name, known in running - rows]
            lines += [f"{node}: docs/ros_api.md has: {kind} {name} ({known})" for name, known in rows - running]
        return sorted(lines)

    def test_topics_services_and_actions(self):
        self.assertEqual([line for node in self.documents for line in self.differences(node)], [])

    def test_every_node_is_described(self):
        self.assertEqual(sorted(set(self.graph.nodes) - set(self.documents) - {NAME, "rosout"}), [])

    def test_called_services_exist(self):
        served = {name for node in self.graph.nodes for name, _ in self.graph.of(node, "service")}
        called = {name for rows in self.sections.values() for kind, name, _ in rows if kind == "calls"}
        self.assertEqual(sorted(called - served), [])

    def parameters(self, node):
        return {name for kind, name, _ in self.documents[node] if kind == "parameter"}

    def test_every_parameter_that_a_node_asks_for_is_described(self):
        found = []
        log = Path(os.environ["ITER_RUNNER_PARAMETER_LOG"]).read_text().splitlines()
        for line in sorted(set(log)):
            caller, _, key = line.partition(" ")
            node = caller.strip("/")
            if node in self.documents and not OWN_PARAMETERS.search(key):
                private = key.replace(f"/{node}/", "~", 1)
                if private not in self.parameters(node):
                    found.append(f"{node} reads {private}")
        self.assertEqual(found, [])

    def test_every_described_parameter_is_read(self):
        asked = set(Path(os.environ["ITER_RUNNER_PARAMETER_LOG"]).read_text().splitlines())
        found = []
        for node in self.documents:
            source = ROOT / "src" / "iter_runner" / "nodes" / f"{node}.py"
            text = source.read_text(encoding="utf-8") if source.exists() else ""
            code = text.split('"""', 2)[-1]  # the docstring lists them too
            for name in self.parameters(node):
                # Other sources of the button than the one that runs here: their code has to name the parameter.
                if f"/{node} /{node}/{name[1:]}" not in asked and f'"{name}"' not in code:
                    found.append(f"{node}: {name}")
        self.assertEqual(found, [])


if __name__ == "__main__":
    rospy.init_node(NAME)
    rostest.rosrun("iter_runner", NAME, RosApiTest, sys.argv)
