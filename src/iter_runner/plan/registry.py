"""Which class stands for which word of the plan language."""

from __future__ import annotations

import difflib
from typing import Callable, Dict, List, Optional, Sequence, Type, TypeVar

from iter_runner.plan.step import Step

StepClass = TypeVar("StepClass", bound=Type[Step])


def near_matches(word: str, known: Sequence[str]) -> List[str]:
    """The known words that ``word`` may be a slip for, nearest first."""
    return difflib.get_close_matches(word, known, n=3, cutoff=0.6)


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """``"one of a, b, c"``, or with near matches ``"perhaps move (known: ...)"``."""
    matches = near_matches(word, known)
    names = ", ".join(sorted(known))
    return f"{' or '.join(repr(match) for match in matches)} (known: {names})" if matches else f"one of {names}"


class Registry:
    """The primitives that plans may name."""

    def __init__(self) -> None:
        self._classes: Dict[str, Type[Step]] = {}
        self._aliases: Dict[str, str] = {}

    def register(self, step_class: Type[Step]) -> None:
        """Adds a class under its ``name`` and ``aliases``.

        Raises:
            ValueError: a name is taken by another class.
        """
        for name in (step_class.name, *step_class.aliases):
            taken = self.find(name)
            if taken is not None and taken is not step_class:
                raise ValueError(f"primitive {name!r} is {taken.__name__} already: choose another name")
        self._classes[step_class.name] = step_class
        for alias in step_class.aliases:
            self._aliases[alias] = step_class.name

    def find(self, name: str) -> Optional[Type[Step]]:
        """The class of a primitive's name or alias; None if there is none."""
        return self._classes.get(self._aliases.get(name, name))

    def names(self) -> List[str]:
        """The primitives' names in alphabetical order, without aliases."""
        return sorted(self._classes)

    def classes(self) -> List[Type[Step]]:
        """The primitives' classes in the order of their names."""
        return [self._classes[name] for name in self.names()]


STANDARD = Registry()
"""Where the decorator puts a class if it is not told otherwise."""


def primitive(
    name: str, aliases: Sequence[str] = (), registry: Registry = STANDARD
) -> Callable[[StepClass], StepClass]:
    """Class decorator: plans may call this step ``name`` (or one of ``aliases``)."""

    def register(step_class: StepClass) -> StepClass:
        step_class.name = name
        step_class.aliases = tuple(aliases)
        registry.register(step_class)
        return step_class

    return register
