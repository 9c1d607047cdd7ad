"""The tick loop of a stream beside the running simulator: how late its ticks are."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from typing import Any, Dict, Iterator, List

import numpy as np

from bench.relaxed_ik import START, closed_path
from bench.timing import record
from iter_runner.clock import MonotonicClock
from iter_runner.kinematics import RelaxedIK, load_chain
from iter_runner.robot.script_servo import ScriptServo
from iter_runner.run_control import RunControl

SECONDS = 8.0
TOPIC = "/ur_hardware_interface/script_command"


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("localhost", 0))
        return int(listener.getsockname()[1])


@contextlib.contextmanager
def _simulator() -> Iterator[None]:
    """A ROS master and the simulator in real time, on a port of their own."""
    os.environ["ROS_MASTER_URI"] = f"http://localhost:{_free_port()}"
    launch = subprocess.Popen(
        ["roslaunch", "-p", os.environ["ROS_MASTER_URI"].rsplit(":", 1)[1], "iter_runner", "simulator.launch"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        launch.send_signal(signal.SIGINT)
        launch.wait(30)


def _lateness(frequency: int, publish: Any) -> List[float]:
    """How late each tick began, s: a solve, a script command out, and sleep until the next one is due."""
    chain = load_chain("ur5")
    solver = RelaxedIK(chain, period=1 / frequency)
    solver.reset(START)
    goals = closed_path(chain)
    servo = ScriptServo(publish, 0.1, 300)
    control = RunControl(MonotonicClock())
    late = []
    start = time.monotonic() + 0.1
    for tick in range(int(SECONDS * frequency)):
        due = start + tick / frequency
        control.sleep_until(due)
        late.append(time.monotonic() - due)
        # At 0.25 m/s, whatever the frequency.
        servo.send(solver.solve(goals[int(tick * 50 / frequency) % len(goals)]), 1 / frequency)
    servo.stop()
    return late


def stream_jitter() -> Iterator[Dict[str, Any]]:
    """Lateness of the ticks at 125 and 500 Hz, each for 8 s."""
    import rospy
    from std_msgs.msg import String

    with _simulator():
        deadline = time.monotonic() + 60
        while True:
            # The master is another process that is being started: there is nothing yet to subscribe to.
            with contextlib.suppress(OSError):
                socket.create_connection(("localhost", int(os.environ["ROS_MASTER_URI"].rsplit(":", 1)[1]))).close()
                break
            if time.monotonic() > deadline:
                raise RuntimeError("the ROS master did not start within 60 s")
            time.sleep(0.1)
        rospy.init_node("stream_jitter", anonymous=True, disable_signals=True)
        publisher = rospy.Publisher(TOPIC, String, queue_size=10)
        while publisher.get_num_connections() == 0 and time.monotonic() < deadline:
            time.sleep(0.1)
        for frequency in (125, 500):
            late = _lateness(frequency, lambda program: publisher.publish(String(program)))
            p99 = float(np.quantile(late, 0.99)) * 1e3
            middle = float(np.median(late)) * 1e3
            yield record(f"stream_jitter_{frequency}", p99, None, "ms", median=middle, worst=max(late) * 1e3)
        rospy.signal_shutdown("done")
