"""URScript, as far as studies use it: compiled from text, run one controller cycle at a time.

Supported: ``def``/``sec``/``end``, ``if``/``elif``/``else``, ``while``, ``break``, ``continue``, ``return``, ``local``
and ``global``, numbers, strings, booleans, lists, poses ``p[…]``, arithmetic, comparison, ``and or xor not``, named
arguments, comments, and the functions of :class:`Library`. Not there: threads, sockets, force mode, blending (``r`` is
read, and the arm stops at the waypoint). Names and defaults follow Universal Robots' script manual (CB3 3.15, e-series
5.11).
"""

from __future__ import annotations

import inspect
import math
import re
from dataclasses import dataclass
from typing import Any, Callable, Dict, Generator, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import lark

from iter_runner.kinematics.rotations import inverse
from iter_runner.sim.controller import Controller, ProgramError
from iter_runner.sim.poses import Pose, matrix_of, pose_of

GRAMMAR = r"""
start: _NL? block
block: (statement _NL)*

?statement: "def" NAME "(" [parameters] ")" ":" _NL block "end"             -> define
    | "sec" NAME "(" ")" ":" _NL block "end"                                -> secondary
    | "if" test ":" _NL block elif_* [else_] "end"                          -> branch
    | "while" test ":" _NL block "end"                                      -> loop
    | "return" [test]                                                       -> give_back
    | "break"                                                               -> leave
    | "continue"                                                            -> again
    | "pass"                                                                -> nothing
    | "local" NAME ["=" test]                                               -> local
    | "global" NAME "=" test                                                -> set_global
    | test "=" test                                                         -> assign
    | test                                                                  -> evaluate
elif_: "elif" test ":" _NL block
else_: "else" ":" _NL block
parameters: parameter ("," parameter)*
parameter: NAME ["=" test]

?test: conjunction | test "or" conjunction -> or_ | test "xor" conjunction -> xor
?conjunction: inversion | conjunction "and" inversion -> and_
?inversion: comparison | "not" inversion -> not_
?comparison: sum | sum COMPARE sum -> binary
COMPARE: "==" | "!=" | "<=" | ">=" | "<" | ">"
?sum: term | sum SUM term -> binary
SUM: "+" | "-"
?term: factor | term TERM factor -> binary
TERM: "*" | "/" | "%"
?factor: power | "-" factor -> negative | "+" factor
?power: atom
?atom: NAME -> name
    | NUMBER -> number
    | STRING -> string
    | "True" -> true
    | "False" -> false
    | "(" test ")"
    | NAME "(" [arguments] ")" -> call
    | atom "[" test "]" -> item
    | "[" [items] "]" -> list
    | _POSE items "]" -> pose
items: test ("," test)*
arguments: argument ("," argument)*
?argument: test | NAME "=" test -> named

_POSE.2: /p[ \t]*\[/
NAME: /[A-Za-z_]\w*/
NUMBER: /(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?/
STRING: /"[^"\n]*"|'[^'\n]*'/
_NL: /([ \t\f]*(#[^\n]*)?(\r?\n))+/
%ignore /[ \t\f]+/
%ignore /#[^\n]*/
"""

_PARSER = lark.Lark(GRAMMAR, parser="lalr", propagate_positions=True, maybe_placeholders=True)

_WITHOUT_A_YIELD = 5000
"""Statements that a program may run in one cycle before it has to wait for the next one."""


Node = Any
"""A lark.Tree: what its children are depends on its rule, in GRAMMAR."""


SIZE_LIMIT = 100_000
"""The longest program, characters: it is compiled between two cycles, in some 15 µs a character."""


class CompileError(Exception):
    """The controller refuses a program; the message says where and why."""


_LONGEST_STRING = 1023

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_JOINTS = rf"\[((?:\s*{_NUMBER}\s*,){{5}}\s*{_NUMBER}\s*)\]"
_POSITIONAL = (
    rf"\s*,\s*(?:a\s*=\s*)?{_NUMBER}\s*,\s*(?:v\s*=\s*)?{_NUMBER}\s*,\s*(?:t\s*=\s*)?({_NUMBER})\s*"
    rf"(?:,\s*(?:lookahead_time\s*=\s*)?({_NUMBER})\s*(?:,\s*(?:gain\s*=\s*)?({_NUMBER})\s*)?)?"
)
_SERVOJ = re.compile(rf"\s*(?:def\s+\w+\(\):\s*)?servoj\({_JOINTS}{_POSITIONAL}\)\s*(?:end\s*)?")
"""Read without the parser, since it comes more than a thousand times a second."""


class ServoTarget(NamedTuple):
    """The arguments of one ``servoj``: (n,) rad, s, s and the gain."""

    joints: List[float]
    time: float
    lookahead: float
    gain: float


def servo_target(text: str) -> Optional[ServoTarget]:
    """The arguments of a program that is one plain ``servoj``; None for any other program."""
    match = _SERVOJ.fullmatch(text)
    if match is None:
        return None
    joints, time, lookahead, gain = match.groups()
    return ServoTarget(
        [float(value) for value in joints.split(",")],
        float(time),
        min(max(float(lookahead or 0.1), 0.03), 0.2),
        min(max(float(gain or 300.0), 100.0), 2000.0),
    )


_EXPORTED = "_urscript"


def _export(function: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a method of Library callable from programs, under its own name."""
    setattr(function, _EXPORTED, True)
    return function


def _number(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ProgramError(f"{what}: a number expected, {value!r} found")
    return float(value)


def _above_zero(value: Any, what: str) -> float:
    number = _number(value, what)
    if number <= 0.0:
        raise ProgramError(f"{what}: above 0 expected, {value!r} found")
    return number


def _joints(value: Any, what: str) -> List[float]:
    if isinstance(value, Pose) or not isinstance(value, list) or len(value) != 6:
        raise ProgramError(f"{what}: six joint values [q0, …, q5] expected, {value!r} found")
    return [_number(number, what) for number in value]


def _pose(value: Any, what: str) -> Pose:
    if not isinstance(value, Pose):
        raise ProgramError(f"{what}: a pose p[x, y, z, rx, ry, rz] expected, {value!r} found")
    return value


class Library:
    """The functions that programs may call. Generators among them take controller cycles."""

    def __init__(self, controller: Controller) -> None:
        self.controller = controller

    # Motion.

    @_export
    def movej(self, q: Any, a: Any = 1.4, v: Any = 1.05, t: Any = 0, r: Any = 0) -> Iterator[None]:
        """Joint-space move to joints or a pose."""
        a, v, t = _above_zero(a, "movej: a"), _above_zero(v, "movej: v"), _number(t, "movej: t")
        return self.controller.movej(self._as_joints(q, "movej"), a, v, t)

    @_export
    def movel(self, pose: Any, a: Any = 1.2, v: Any = 0.25, t: Any = 0, r: Any = 0) -> Iterator[None]:
        """Straight move of the tool to a pose or joints."""
        a, v, t = _above_zero(a, "movel: a"), _above_zero(v, "movel: v"), _number(t, "movel: t")
        target = matrix_of(pose) if isinstance(pose, Pose) else self.controller.forward(_joints(pose, "movel"))
        return self.controller.movel(target, a, v, t)

    @_export
    def movep(self, pose: Any, a: Any = 1.2, v: Any = 0.25, r: Any = 0) -> Iterator[None]:
        """As movel; the real one blends."""
        return self.movel(pose, a, v)

    @_export
    def servoj(
        self, q: Any, a: Any = 0, v: Any = 0, t: Any = 0.008, lookahead_time: Any = 0.1, gain: Any = 300
    ) -> Iterator[None]:
        """Pulls the joints towards q for t seconds."""
        lookahead = min(max(_number(lookahead_time, "servoj: lookahead_time"), 0.03), 0.2)
        stiffness = min(max(_number(gain, "servoj: gain"), 100.0), 2000.0)
        return self.controller.servoj(_joints(q, "servoj"), _number(t, "servoj: t"), lookahead, stiffness)

    @_export
    def speedj(self, qd: Any, a: Any = 1.4, t: Any = 0) -> Iterator[None]:
        """Joint speeds for t seconds."""
        return self.controller.speedj(_joints(qd, "speedj"), _above_zero(a, "speedj: a"), _number(t, "speedj: t"))

    @_export
    def stopj(self, a: Any = 2.0) -> Iterator[None]:
        """Brakes the joints."""
        return self.controller.stopj(_above_zero(a, "stopj: a"))

    @_export
    def stopl(self, a: Any = 1.2) -> Iterator[None]:
        """Brakes the tool."""
        return self.controller.stopl(_above_zero(a, "stopl: a"))

    # Time and messages.

    @_export
    def sleep(self, t: Any) -> Iterator[None]:
        """Does nothing for t seconds."""
        return self.controller.sleep(_number(t, "sleep: t"))

    @_export
    def sync(self) -> Iterator[None]:
        """Waits for the next cycle."""
        yield

    @_export
    def textmsg(self, s1: Any, s2: Any = "") -> None:
        """A line in the log."""
        self.controller.log("info", text_of(s1) + text_of(s2))

    @_export
    def popup(
        self, s: Any, title: Any = "Popup", warning: Any = False, error: Any = False, blocking: Any = False
    ) -> Iterator[None]:
        """Shows a message; a blocking one holds the program until it is closed."""
        self.controller.show_popup(f"{text_of(title)}: {text_of(s)}")
        while blocking and self.controller.popup is not None:
            yield

    @_export
    def halt(self) -> None:
        """Ends the program."""
        raise _Halt

    # Inputs, outputs and settings.

    @_export
    def set_digital_out(self, n: Any, b: Any) -> None:
        """Sets a digital output."""
        self.controller.set_output(int(_number(n, "set_digital_out: n")), bool(b))

    @_export
    def set_standard_digital_out(self, n: Any, b: Any) -> None:
        """Sets a digital output."""
        self.set_digital_out(n, b)

    @_export
    def set_configurable_digital_out(self, n: Any, b: Any) -> None:
        """Sets a configurable output."""
        self.set_digital_out(8 + _number(n, "set_configurable_digital_out: n"), b)

    @_export
    def set_tool_digital_out(self, n: Any, b: Any) -> None:
        """Sets an output of the tool."""
        self.set_digital_out(16 + _number(n, "set_tool_digital_out: n"), b)

    @_export
    def get_digital_out(self, n: Any) -> bool:
        """A digital output's level."""
        return self.controller.outputs[int(_number(n, "get_digital_out: n"))]

    @_export
    def get_standard_digital_out(self, n: Any) -> bool:
        """A digital output's level."""
        return bool(self.get_digital_out(n))

    @_export
    def set_tcp(self, pose: Any) -> None:
        """The tool's pose on the flange."""
        self.controller.tool_offset = matrix_of(_pose(pose, "set_tcp"))

    @_export
    def set_payload(self, m: Any, cog: Any = None) -> None:
        """Read and ignored: the arm has no dynamics."""

    @_export
    def set_gravity(self, d: Any) -> None:
        """Read and ignored."""

    @_export
    def set_tool_voltage(self, voltage: Any) -> None:
        """Read and ignored."""

    # The arm's state and its kinematics.

    @_export
    def get_actual_joint_positions(self) -> List[float]:
        """Joints, rad."""
        return list(self.controller.q)

    @_export
    def get_target_joint_positions(self) -> List[float]:
        """Joints, rad."""
        return list(self.controller.q)

    @_export
    def get_actual_joint_speeds(self) -> List[float]:
        """Joint speeds, rad/s."""
        return list(self.controller.v)

    @_export
    def get_actual_tcp_pose(self) -> Pose:
        """The tool's pose in base."""
        return pose_of(self.controller.forward(self.controller.q))

    @_export
    def get_target_tcp_pose(self) -> Pose:
        """The tool's pose in base."""
        return pose_of(self.controller.forward(self.controller.q))

    @_export
    def get_forward_kin(self, q: Any = None) -> Pose:
        """The tool's pose at joints."""
        return pose_of(self.controller.forward(self.controller.q if q is None else _joints(q, "get_forward_kin")))

    @_export
    def get_inverse_kin(
        self, x: Any, qnear: Any = None, maxPositionError: Any = 1e-10, maxOrientationError: Any = 1e-10
    ) -> List[float]:
        """Joints for a pose, nearest to qnear."""
        near = self.controller.q if qnear is None else _joints(qnear, "get_inverse_kin: qnear")
        return self.controller.inverse(matrix_of(_pose(x, "get_inverse_kin")), near)

    @_export
    def is_steady(self) -> bool:
        """Whether the arm stands still."""
        return not self.controller.moving

    @_export
    def get_steptime(self) -> float:
        """The controller's cycle, s."""
        return self.controller.cycle

    # Poses.

    @_export
    def pose_trans(self, p_from: Any, p_from_to: Any) -> Pose:
        """One transform after the other."""
        return pose_of(matrix_of(_pose(p_from, "pose_trans")) @ matrix_of(_pose(p_from_to, "pose_trans")))

    @_export
    def pose_inv(self, p_from: Any) -> Pose:
        """The inverse transform."""
        return pose_of(inverse(matrix_of(_pose(p_from, "pose_inv"))))

    @_export
    def pose_add(self, p_1: Any, p_2: Any) -> Pose:
        """Positions added, rotations one after the other."""
        first, second = _pose(p_1, "pose_add"), _pose(p_2, "pose_add")
        total = matrix_of(first)
        total[:3, :3] = total[:3, :3] @ matrix_of(second)[:3, :3]
        total[:3, 3] += second[:3]
        return pose_of(total)

    @_export
    def point_dist(self, p_from: Any, p_to: Any) -> float:
        """The distance between two poses' positions, m."""
        return math.dist(_pose(p_from, "point_dist")[:3], _pose(p_to, "point_dist")[:3])

    # Numbers, strings, lists.

    @_export
    def sqrt(self, f: Any) -> float:
        """Square root."""
        return math.sqrt(f)

    @_export
    def sin(self, f: Any) -> float:
        """Sine."""
        return math.sin(f)

    @_export
    def cos(self, f: Any) -> float:
        """Cosine."""
        return math.cos(f)

    @_export
    def tan(self, f: Any) -> float:
        """Tangent."""
        return math.tan(f)

    @_export
    def asin(self, f: Any) -> float:
        """Arc sine."""
        return math.asin(f)

    @_export
    def acos(self, f: Any) -> float:
        """Arc cosine."""
        return math.acos(f)

    @_export
    def atan(self, f: Any) -> float:
        """Arc tangent."""
        return math.atan(f)

    @_export
    def atan2(self, x: Any, y: Any) -> float:
        """Arc tangent of the quotient."""
        return math.atan2(x, y)

    @_export
    def d2r(self, d: Any) -> float:
        """Degrees to radians."""
        return math.radians(d)

    @_export
    def r2d(self, r: Any) -> float:
        """Radians to degrees."""
        return math.degrees(r)

    @_export
    def pow(self, base: Any, exponent: Any) -> float:
        """Power."""
        return math.pow(base, exponent)

    @_export
    def log(self, b: Any, f: Any) -> float:
        """Logarithm of f to the base b."""
        return math.log(f, b)

    @_export
    def floor(self, f: Any) -> int:
        """Largest integer below."""
        return math.floor(f)

    @_export
    def ceil(self, f: Any) -> int:
        """Smallest integer above."""
        return math.ceil(f)

    @_export
    def norm(self, a: Any) -> float:
        """Length of a list, or absolute value."""
        return math.hypot(*a) if isinstance(a, (list, tuple)) else abs(a)

    @_export
    def length(self, v: Any) -> int:
        """Number of elements."""
        return len(v)

    @_export
    def get_list_length(self, v: Any) -> int:
        """Number of elements."""
        return len(v)

    @_export
    def to_str(self, val: Any) -> str:
        """As text."""
        return text_of(val)

    @_export
    def str_cat(self, op1: Any, op2: Any) -> str:
        """Joined texts."""
        text = text_of(op1) + text_of(op2)
        if len(text) > _LONGEST_STRING:
            raise ProgramError(f"str_cat: {len(text)} characters, at most {_LONGEST_STRING} expected")
        return text

    def _as_joints(self, target: Any, what: str) -> List[float]:
        if isinstance(target, Pose):
            return self.controller.inverse(matrix_of(target), self.controller.q)
        return _joints(target, what)


FUNCTIONS: Dict[str, inspect.Signature] = {
    name: inspect.signature(function) for name, function in vars(Library).items() if getattr(function, _EXPORTED, False)
}
"""What programs may call, with ``self`` first."""


def text_of(value: Any) -> str:
    """A value as the controller's log shows it."""
    if isinstance(value, (str, Pose)):
        return str(value)
    if isinstance(value, list):
        return "[" + ", ".join(text_of(item) for item in value) + "]"
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


class _Halt(Exception):
    pass


class _Return(Exception):
    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class _Function(NamedTuple):
    name: str
    parameters: Sequence[Tuple[str, Optional[Node]]]
    body: Node


@dataclass(frozen=True)
class Script:
    """A program that compiled.

    Attributes:
        name: the program's name, or "script" for bare statements.
        secondary: it runs beside the running program (``sec``).
    """

    name: str
    secondary: bool
    body: Node
    functions: Mapping[str, _Function]

    def run(self, controller: Controller) -> Iterator[None]:
        """The running program: resumed once a controller cycle, until it ends.

        Raises (while running):
            ProgramError: it cannot go on.
        """
        return _Run(self, Library(controller)).run()


def compile_script(text: str) -> Script:
    """Compiles a program: one or more statements, or a ``def``.

    Raises:
        CompileError: the text is not URScript, or calls what neither it nor the controller defines.
    """
    if len(text) > SIZE_LIMIT:
        raise CompileError(f"a program of {len(text)} characters, the simulator takes {SIZE_LIMIT} at most")
    try:
        tree: Node = _PARSER.parse(text.strip() + "\n")
        block = tree.children[-1]
        functions = {}
        for node in tree.iter_subtrees():
            if node.data in ("define", "secondary"):
                function = _function_of(node)
                functions[function.name] = function
        for node in tree.iter_subtrees():
            if node.data == "call":
                _check_call(node, functions)
            elif node.data == "assign" and node.children[0].data not in ("name", "item"):
                raise CompileError(f"line {_line(node)}: only a variable or an item of a list can be assigned to")
    except lark.exceptions.UnexpectedInput as error:
        raise CompileError(_syntax_fault(text, error)) from None
    except RecursionError:
        raise CompileError("expressions are nested too deeply") from None
    definitions = [node for node in block.children if node.data in ("define", "secondary")]
    statements = [node for node in block.children if node.data not in ("define", "secondary")]
    if not definitions and not statements:
        raise CompileError("the program is empty")
    if statements:
        return Script("script", False, block, functions)
    # The last definition is the one that a controller is left running.
    last = _function_of(definitions[-1])
    if last.parameters:
        raise CompileError(f"{last.name}: a program has no parameters")
    if definitions[-1].data == "secondary":
        _check_secondary(last, functions)
    return Script(last.name, definitions[-1].data == "secondary", last.body, functions)


def _check_secondary(program: _Function, functions: Mapping[str, _Function]) -> None:
    """A secondary program runs beside the one that moves the arm: it must not take time."""
    bodies, seen = [program.body], {program.name}
    while bodies:
        for node in bodies.pop().iter_subtrees():
            if node.data != "call":
                continue
            name = str(node.children[0])
            if name in functions and name not in seen:
                seen.add(name)
                bodies.append(functions[name].body)
            elif name in FUNCTIONS and "Iterator" in str(FUNCTIONS[name].return_annotation):
                raise CompileError(f"line {_line(node)}: {name} takes time: not in a secondary program")


def _line(node: Node) -> int:
    return getattr(node.meta, "line", 0)


def _syntax_fault(text: str, error: lark.exceptions.UnexpectedInput) -> str:
    lines = text.strip().splitlines()
    line = getattr(error, "line", -1)
    at_end = getattr(getattr(error, "token", None), "type", "") == "$END"
    if at_end or not isinstance(line, int) or not 1 <= line <= len(lines):
        return "syntax error at the end of the program: an 'end' is missing"
    return f"syntax error in line {line}, column {error.column}: {lines[line - 1].strip()[:120]}"


def _function_of(node: Node) -> _Function:
    parameters: List[Tuple[str, Optional[Node]]] = []
    for child in node.children[1:-1]:
        if isinstance(child, lark.Tree):
            parameters = [(str(item.children[0]), item.children[1]) for item in child.children]
    return _Function(str(node.children[0]), parameters, node.children[-1])


def _arguments(node: Node) -> Tuple[List[Node], Dict[str, Node]]:
    """Positional and named argument nodes of a call."""
    positional: List[Node] = []
    named: Dict[str, Node] = {}
    for argument in node.children[1].children if node.children[1] is not None else []:
        if argument.data == "named":
            named[str(argument.children[0])] = argument.children[1]
        else:
            positional.append(argument)
    return positional, named


def _check_call(node: Node, functions: Mapping[str, _Function]) -> None:
    name = str(node.children[0])
    positional, named = _arguments(node)
    if name in functions:
        known = [parameter for parameter, _ in functions[name].parameters]
        needed = {parameter for parameter, default in functions[name].parameters if default is None}
        given = set(known[: len(positional)]) | set(named)
        if len(positional) > len(known) or not given <= set(known) or not needed <= given:
            raise CompileError(f"line {_line(node)}: {name}({', '.join(known)}) does not take these arguments")
    elif name in FUNCTIONS:
        try:
            FUNCTIONS[name].bind(None, *positional, **named)
        except TypeError as error:
            raise CompileError(f"line {_line(node)}: {name}: {error}") from None
    else:
        raise CompileError(f"line {_line(node)}: the function '{name}' is not defined")


Step = Generator[None, None, Any]


class _Run:
    """One run of a script: its variables, and the walk over its tree."""

    def __init__(self, script: Script, library: Library) -> None:
        self.script = script
        self.library = library
        self.globals: Dict[str, Any] = {}
        self.locals: Dict[str, Any] = {}
        self.statements = 0

    def run(self) -> Iterator[None]:
        try:
            yield from self._block(self.script.body)
        except (_Return, _Halt):
            pass
        except (_Break, _Continue):
            raise ProgramError("break or continue outside a loop") from None

    def _block(self, block: Node) -> Step:
        for statement in block.children:
            self.statements += 1
            if self.statements > _WITHOUT_A_YIELD:
                self.statements = 0
                yield
            try:
                yield from getattr(self, "_" + statement.data)(statement)
            except (ArithmeticError, TypeError, ValueError, LookupError) as error:
                raise ProgramError(f"line {_line(statement)}: {error}") from None
            except RecursionError:
                raise ProgramError(f"line {_line(statement)}: calls or expressions are nested too deeply") from None

    # Statements.

    def _define(self, node: Node) -> Step:
        return
        yield

    _secondary = _define
    _nothing = _define

    def _branch(self, node: Node) -> Step:
        condition, block, *others = node.children
        if (yield from self._truth(condition)):
            yield from self._block(block)
            return
        for other in others:
            if other is None:
                continue
            if other.data == "else_" or (yield from self._truth(other.children[0])):
                yield from self._block(other.children[-1])
                return

    def _loop(self, node: Node) -> Step:
        condition, block = node.children
        while (yield from self._truth(condition)):
            self.statements += 1
            try:
                yield from self._block(block)
            except _Break:
                return
            except _Continue:
                pass
            if self.statements > _WITHOUT_A_YIELD:
                self.statements = 0
                yield

    def _give_back(self, node: Node) -> Step:
        value = None
        if node.children[0] is not None:
            value = yield from self._value(node.children[0])
        raise _Return(value)

    def _leave(self, node: Node) -> Step:
        raise _Break
        yield

    def _again(self, node: Node) -> Step:
        raise _Continue
        yield

    def _local(self, node: Node) -> Step:
        name, expression = node.children
        self.locals[str(name)] = None if expression is None else (yield from self._value(expression))

    def _set_global(self, node: Node) -> Step:
        name, expression = node.children
        self.globals[str(name)] = yield from self._value(expression)

    def _assign(self, node: Node) -> Step:
        target, expression = node.children
        value = yield from self._value(expression)
        if target.data == "name":
            self._store(str(target.children[0]), list(value) if type(value) is list else value)
            return
        container = yield from self._value(target.children[0])
        index = yield from self._value(target.children[1])
        if isinstance(container, Pose):
            if target.children[0].data != "name":
                raise TypeError("an item of a pose in a list cannot be assigned to")
            items = list(container)
            items[index] = value
            self._store(str(target.children[0].children[0]), Pose(items))
        elif isinstance(container, list):
            container[index] = value
        else:
            raise TypeError(f"a list expected, {text_of(container)} found")

    def _evaluate(self, node: Node) -> Step:
        yield from self._value(node.children[0])

    def _store(self, name: str, value: Any) -> None:
        if name in self.locals:
            self.locals[name] = value
        else:
            self.globals[name] = value

    # Expressions.

    def _truth(self, node: Node) -> Step:
        value = yield from self._value(node)
        if not isinstance(value, bool):
            raise TypeError(f"True or False expected, {text_of(value)} found")
        return value

    def _value(self, node: Node) -> Step:
        kind = node.data
        children = node.children
        if kind == "number":
            text = str(children[0])
            return int(text) if text.isdigit() else float(text)
        if kind == "name":
            name = str(children[0])
            for scope in (self.locals, self.globals):
                if name in scope:
                    return scope[name]
            raise ProgramError(f"line {children[0].line}: the variable '{name}' is not defined")
        if kind == "string":
            return str(children[0])[1:-1]
        if kind in ("true", "false"):
            return kind == "true"
        if kind == "binary":
            left = yield from self._value(children[0])
            right = yield from self._value(children[2])
            return _binary(str(children[1]), left, right)
        if kind == "negative":
            return -(yield from self._value(children[0]))
        if kind == "not_":
            return not (yield from self._truth(children[0]))
        if kind == "and_":
            return (yield from self._truth(children[0])) and (yield from self._truth(children[1]))
        if kind == "or_":
            return (yield from self._truth(children[0])) or (yield from self._truth(children[1]))
        if kind == "xor":
            left = yield from self._truth(children[0])
            return left != (yield from self._truth(children[1]))
        if kind in ("list", "pose"):
            items = []
            for child in children[0].children if children[0] is not None else []:
                items.append((yield from self._value(child)))
            if kind == "list":
                return items
            if len(items) != 6:
                raise TypeError(f"a pose has six numbers, {len(items)} found")
            return Pose(_number(item, "pose") for item in items)
        if kind == "item":
            container = yield from self._value(children[0])
            index = yield from self._value(children[1])
            if isinstance(index, int) and index < 0:
                raise IndexError(f"index {index} of {text_of(container)}")
            return container[index]
        return (yield from self._call(node))

    def _call(self, node: Node) -> Step:
        name = str(node.children[0])
        positional, named = _arguments(node)
        values = []
        for child in positional:
            values.append((yield from self._value(child)))
        keywords = {}
        for key, child in named.items():
            keywords[key] = yield from self._value(child)
        function = self.script.functions.get(name)
        if function is None:
            result = getattr(self.library, name)(*values, **keywords)
            if inspect.isgenerator(result):
                self.statements = 0
                return (yield from result)
            return result
        scope = dict(zip((parameter for parameter, _ in function.parameters), values))
        scope.update(keywords)
        for parameter, default in function.parameters:
            if parameter not in scope and default is not None:
                scope[parameter] = yield from self._value(default)
        outer, self.locals = self.locals, scope
        try:
            yield from self._block(function.body)
        except _Return as result:
            return result.value
        finally:
            self.locals = outer
        return None


def _binary(operator: str, left: Any, right: Any) -> Any:
    if operator == "==":
        return bool(left == right)
    if operator == "!=":
        return bool(left != right)
    for value in (left, right):
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise TypeError(f"numbers expected around '{operator}', {text_of(value)} found")
    result = _OPERATORS[operator](left, right)
    if isinstance(result, int) and not isinstance(result, bool) and abs(result) >= 1 << 31:
        return float(result)
    if isinstance(result, float) and not math.isfinite(result):
        raise OverflowError("the result is too large")
    return result


_OPERATORS: Dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "%": math.fmod,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
}
