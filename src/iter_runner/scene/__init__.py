"""The planning scene: every object around the arm and in its hand, where it came from and where it is."""

from iter_runner.scene.objects import Origin, SceneError, SceneObject
from iter_runner.scene.planning_scene import PlanningScene, Snapshot

__all__ = ["Origin", "PlanningScene", "SceneError", "SceneObject", "Snapshot"]
