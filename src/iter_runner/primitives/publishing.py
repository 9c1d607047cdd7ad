"""Messages to other programs: publish and publish_string_from_file."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterable, Optional

from pydantic import Field, PrivateAttr

from iter_runner.events import EventKind
from iter_runner.plan.registry import primitive
from iter_runner.plan.step import LoadContext, Problem, Step

if TYPE_CHECKING:
    from iter_runner.primitives.context import RunContext

SCRIPT_TOPIC = "/ur_hardware_interface/script_command"
"""Programs for the arm's controller. They go through the arm, which knows then that its trajectory controller was
displaced."""
OLD_SCRIPT_TOPIC = "/ur_driver/URScript"
"""The same of the old driver, which original plans name; the present driver does not listen there."""

STRING = "std_msgs/String"


def _topic_name(topic: str) -> str:
    return "/" + topic.strip("/")


def _program(topic: str, message_type: str, fields: Dict[str, Any]) -> str:
    """The program for the arm's controller in a message; empty where it is for somebody else."""
    program = str(fields.get("data", "")) if message_type == STRING else ""
    return program if _topic_name(topic) in (SCRIPT_TOPIC, OLD_SCRIPT_TOPIC) and program.strip() else ""


def _send(run: RunContext, topic: str, message_type: str, fields: Dict[str, Any]) -> None:
    program = _program(topic, message_type, fields)
    run.control.wait_while_paused()
    if not (program and _topic_name(topic) == SCRIPT_TOPIC):
        run.publish(topic, message_type, fields)
    if program:
        run.script(program)
    run.emit(EventKind.PUBLISHED, topic=topic, type=message_type)


@primitive("publish")
class Publish(Step):
    """Publishes one message."""

    topic: str = Field(min_length=1)
    message_module: str = Field(min_length=1, description="the package of the message type, e.g. std_msgs")
    message_type: str = Field(min_length=1, description="e.g. String")
    message_params: Dict[str, Any] = Field(default={}, description="the message's fields, nested ones as objects")

    @property
    def full_type(self) -> str:
        """``package/Type``."""
        package = self.message_module[: -len(".msg")] if self.message_module.endswith(".msg") else self.message_module
        return f"{package}/{self.message_type}"

    def prepare(self, context: LoadContext) -> Iterable[Problem]:
        """The message's type and fields, where ROS is there to be asked."""
        package = self.full_type.split("/")[0]
        try:
            import genpy.message
        except ImportError:
            return
        try:
            module = importlib.import_module(f"{package}.msg")
        except (ImportError, ValueError):
            yield Problem(
                "/message_module", repr(self.message_module), "a ROS package with messages, in this workspace"
            )
            return
        message_class = getattr(module, self.message_type, None)
        if message_class is None or not isinstance(message_class, type):
            yield Problem("/message_type", f"no type {self.message_type} in {package}", "one of its messages")
            return
        try:
            message = message_class()
            genpy.message.fill_message_args(message, [self.message_params])
            message._check_types()
        except (genpy.MessageException, genpy.SerializationError, TypeError, AttributeError, ValueError) as error:
            yield Problem("/message_params", " ".join(str(error).split()), f"the fields of {self.full_type}")

    def sends_script(self) -> bool:
        """See Step."""
        return bool(_program(self.topic, self.full_type, self.message_params))

    def execute(self, run: RunContext) -> None:
        """Returns when it is on its way."""
        _send(run, self.topic, self.full_type, dict(self.message_params))

    def describe(self) -> str:
        """Where to."""
        return f"publishing on {self.topic}"


@primitive("publish_string_from_file")
class PublishStringFromFile(Step):
    """Publishes a file's text as std_msgs/String. The file is read when the plan is loaded."""

    topic: str = Field(min_length=1)
    filepath: str = Field(min_length=1, description="from the plan's folder, the working directory or the package")

    _text: Optional[str] = PrivateAttr(default=None)

    def prepare(self, context: LoadContext) -> Iterable[Problem]:
        """Reads the file."""
        from iter_runner.package import package_folder

        folders = [*([context.folder] if context.folder is not None else []), Path.cwd(), package_folder()]
        tried = list(dict.fromkeys(folder / self.filepath for folder in folders))
        try:
            path = next((path for path in tried if path.is_file()), None)
            if path is None:
                folders_text = ", ".join(str(folder) for folder in dict.fromkeys(folders))
                yield Problem(
                    "/filepath", f"{self.filepath!r}, which is no file", f"a file, looked for from {folders_text}"
                )
                return
            self._text = path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            yield Problem("/filepath", f"{self.filepath!r}, which can't be read ({error})", "a text file in UTF-8")

    @property
    def text(self) -> str:
        """What the file held when the plan was loaded."""
        return self._text or ""

    def sends_script(self) -> bool:
        """See Step."""
        return bool(_program(self.topic, STRING, {"data": self.text}))

    def execute(self, run: RunContext) -> None:
        """Returns when it is on its way."""
        _send(run, self.topic, STRING, {"data": self.text})

    def describe(self) -> str:
        """What and where to."""
        return f"publishing {Path(self.filepath).name} on {self.topic}"
