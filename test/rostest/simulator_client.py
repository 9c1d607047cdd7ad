"""What the tests of the simulator's faces share: waiting for messages and results by real time."""

from __future__ import annotations

import threading
import time

import rospy
from control_msgs.msg import FollowJointTrajectoryGoal, GripperCommandGoal
from rosgraph_msgs.msg import Log
from trajectory_msgs.msg import JointTrajectoryPoint

PATIENCE = 120.0  # s of real time


class Latest:
    """The last message of a topic, and all of them."""

    def __init__(self, topic, message_class, **options):
        self._changed = threading.Condition()
        self.messages = []
        self.subscriber = rospy.Subscriber(topic, message_class, self._take, tcp_nodelay=True, **options)

    def _take(self, message):
        with self._changed:
            self.messages.append(message)
            self._changed.notify_all()

    @property
    def last(self):
        return self.messages[-1]

    def wait(self, condition, what):
        with self._changed:
            if not self._changed.wait_for(lambda: self.messages and condition(self.last), PATIENCE):
                raise AssertionError(f"{what}: still {self.messages[-1:]} after {PATIENCE} s")
            return self.last


def call(name, service_class, *arguments):
    rospy.wait_for_service(name, PATIENCE)
    return rospy.ServiceProxy(name, service_class)(*arguments)


def await_connections(*topics):
    """Until each publisher has somebody who listens, each subscriber somebody who talks."""
    deadline = time.monotonic() + PATIENCE
    while not all(topic.get_num_connections() for topic in topics):
        assert time.monotonic() < deadline, "nobody at the other end"
        time.sleep(0.01)


def inject(publisher, fault):
    """Has the simulator take a fault; it says so in its log."""
    log = Latest("/rosout", Log)
    await_connections(log.subscriber)
    publisher.publish(fault)
    log.wait(lambda message: message.msg == f"Fault to come: {fault}", "the fault is taken")
    log.subscriber.unregister()


def trajectory_goal(names, *points, **fields):
    """A FollowJointTrajectoryGoal from (time in s, positions)."""
    goal = FollowJointTrajectoryGoal(**fields)
    goal.trajectory.joint_names = list(names)
    for moment, positions in points:
        goal.trajectory.points.append(
            JointTrajectoryPoint(positions=list(positions), time_from_start=rospy.Duration.from_sec(moment))
        )
    return goal


def run_goal(client, goal):
    """State and result, once there is one."""
    client.send_goal(goal)
    assert client.wait_for_result(rospy.Duration(10 * PATIENCE)), "no result"
    return client.get_state(), client.get_result()


def grip(client, position):
    """State and result of a gripper command."""
    goal = GripperCommandGoal()
    goal.command.position, goal.command.max_effort = position, 20.0
    return run_goal(client, goal)
