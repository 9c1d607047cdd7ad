"""Calls of services whose server may hang; a rospy.ServiceProxy would wait for it for ever."""

from __future__ import annotations

import threading
from typing import Any, Callable, Optional

import rospy


class ServiceCall:
    """One call on its way, in a thread of its own, so that its caller may give it up.

    Args:
        proxy: of the service.
        arguments: of the request.
        on_answer: told, in that thread, when the call is over.
    """

    def __init__(self, proxy: rospy.ServiceProxy, *arguments: Any, on_answer: Callable[[], None]) -> None:
        self._proxy = proxy
        self._arguments = arguments
        self._on_answer = on_answer
        self._over = threading.Event()
        self._response: Any = None
        self._error: Optional[Exception] = None
        threading.Thread(target=self._call, name=proxy.resolved_name, daemon=True).start()

    def _call(self) -> None:
        try:
            self._response = self._proxy(*self._arguments)
        except Exception as error:
            self._error = error
        self._over.set()
        self._on_answer()

    @property
    def is_over(self) -> bool:
        """Whether the server has answered, or can't be reached."""
        return self._over.is_set()

    def wait(self, patience: float) -> bool:
        """Blocks until the call is over, ``patience`` s of wall time at most; whether it is."""
        return self._over.wait(patience)

    def response(self) -> Any:
        """The server's response.

        Raises:
            rospy.ServiceException: there is none: the server hangs, is not there, or failed.
        """
        if not self.is_over:
            raise rospy.ServiceException("no answer: the server hangs")
        if isinstance(self._error, (rospy.ServiceException, rospy.ROSException)):
            raise rospy.ServiceException(str(self._error)) from self._error
        if self._error is not None:
            raise self._error
        return self._response
