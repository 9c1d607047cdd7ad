"""The workcell's file: what always stands around the arm, whatever plan runs."""

from __future__ import annotations

import reprlib
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from iter_runner.kinematics import ChainError
from iter_runner.kinematics.rotations import matrix_to_quaternion, pose, rpy_to_matrix
from iter_runner.kinematics.urdf import read_urdf
from iter_runner.package import package_folder
from iter_runner.scene.objects import GREY, SHAPES, Matrix, Origin, SceneError, SceneObject, checked

Numbers3 = Tuple[float, float, float]
Numbers4 = Tuple[float, float, float, float]


class WorkcellObject(BaseModel):
    """An object as the file has it: one shape, and where its centre is."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    name: str = Field(min_length=1)
    box: Optional[Numbers3] = None
    sphere: Optional[float] = None
    cylinder: Optional[Tuple[float, float]] = None
    position: Numbers3
    rpy: Optional[Numbers3] = None
    orientation: Optional[Numbers4] = None
    frame: Optional[str] = None
    graspable: bool = False
    color: Optional[Numbers4] = None

    @model_validator(mode="after")
    def _one_of_each(self) -> WorkcellObject:
        shapes = [name for name in SHAPES if getattr(self, name) is not None]
        if len(shapes) != 1:
            raise ValueError(f"one of box, sphere and cylinder expected, found {' and '.join(shapes) or 'none'}")
        if self.rpy is not None and self.orientation is not None:
            raise ValueError("rpy or orientation expected, found both")
        return self


class _OnceOnly(yaml.SafeLoader):
    """Refuses what YAML itself lets pass: of a key given twice the first would be lost, here a list of obstacles."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Dict[Any, Any]:
        """As SafeLoader's."""
        seen: List[Any] = []
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"'{key}' is there twice", key_node.start_mark)
            seen.append(key)
        return super().construct_mapping(node, deep)


class WorkcellFile(BaseModel):
    """The file."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    frame: Optional[str] = None
    objects: List[WorkcellObject]


def workcell_names() -> List[str]:
    """The names of the files in config/workcells."""
    return sorted(path.stem for path in (package_folder() / "config" / "workcells").glob("*.yaml"))


def read_workcell(name_or_path: str, locate: Callable[[str], Matrix]) -> List[SceneObject]:
    """The objects of a workcell's file, in the chain's base.

    Args:
        name_or_path: a name in config/workcells, or a YAML file.
        locate: (4, 4) pose of a frame of the robot in the chain's base; "" is the base itself. Raises ChainError.

    Raises:
        SceneError: there is no such file, or something in it can't be; the message names the file and the field.
    """
    path = _find(name_or_path)
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=_OnceOnly)
        file = WorkcellFile.model_validate(content)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise SceneError(f"workcell {path}: {error}") from error
    except ValidationError as error:
        raise SceneError(f"workcell {path}: {_faults(error)}") from error
    known: Dict[str, Matrix] = {}
    objects: List[SceneObject] = []
    for item in file.objects:
        frame = item.frame or file.frame or ""
        try:
            if frame not in known:
                known[frame] = locate(frame)
            if any(item.name == other.name for other in objects):
                raise SceneError(f"the name '{item.name}' is there twice")
            objects.append(checked(_object(item, known[frame])))
        except (ChainError, ValueError) as error:
            whose = f"object '{item.name}': "
            reason = str(error)
            raise SceneError(f"workcell {path}: {'' if reason.startswith(whose) else whose}{reason}") from error
    return objects


def robot_frames(urdf: str, base: str) -> Callable[[str], Matrix]:
    """``locate`` of :func:`read_workcell` for frames that the robot's joints do not move.

    Args:
        urdf: the robot's, as text.
        base: the chain's base.
    """
    model = read_urdf(urdf)
    return lambda frame: model.fixed_pose(frame or base, base)


def _find(name_or_path: str) -> Path:
    folder = package_folder() / "config" / "workcells"
    candidates = [Path(name_or_path).expanduser(), folder / f"{name_or_path}.yaml"]
    for path in candidates:
        if path.is_file():
            return path
    names = ", ".join(workcell_names())
    raise SceneError(f"there is no workcell '{name_or_path}': the path of a YAML file expected, or one of {names}")


def _object(item: WorkcellObject, frame: Matrix) -> SceneObject:
    shape = next(name for name in SHAPES if getattr(item, name) is not None)
    value: Any = getattr(item, shape)
    quaternion = item.orientation or tuple(matrix_to_quaternion(rpy_to_matrix(item.rpy or (0.0, 0.0, 0.0))))
    return SceneObject(
        name=item.name,
        pose=frame @ pose(item.position, quaternion),
        shape=shape,
        dimensions=(value,) if shape == "sphere" else tuple(value),
        graspable=item.graspable,
        color=item.color or GREY,
        origin=Origin.WORKCELL,
    )


def _faults(error: ValidationError) -> str:
    """Every fault with its place in the file and what was found there."""
    lines = []
    for fault in error.errors():
        place = ".".join(str(part) for part in fault["loc"]) or "the file"
        if fault["type"] == "missing":
            text = "missing"
        elif fault["type"] == "extra_forbidden":
            fields = WorkcellFile.model_fields if len(fault["loc"]) == 1 else WorkcellObject.model_fields
            text = f"no such field; fields are {', '.join(fields)}"
        elif fault["type"] == "model_type":
            fields = WorkcellFile.model_fields if not fault["loc"] else WorkcellObject.model_fields
            text = f"fields ({', '.join(fields)}) expected, {reprlib.repr(fault['input'])} found"
        elif fault["type"] == "value_error":
            text = str(fault["ctx"]["error"])
        else:
            text = f"{fault['msg'][0].lower()}{fault['msg'][1:]}, {reprlib.repr(fault['input'])} found"
        lines.append(f"{place}: {text}")
    return "; ".join(lines)
