"""On a node's PYTHONPATH: notes every parameter that the node asks the master for, a line each, in a file."""

import os
import xmlrpc.client

_request = xmlrpc.client.ServerProxy._ServerProxy__request


def _noted(self, method, parameters):
    path = os.environ.get("ITER_RUNNER_PARAMETER_LOG")
    if path and method in ("getParam", "subscribeParam"):
        with open(path, "a") as log:  # noqa: PTH123 - runs as the interpreter starts, nothing else is imported yet
            log.write(f"{parameters[0]} {parameters[-1]}\n")
    return _request(self, method, parameters)


xmlrpc.client.ServerProxy._ServerProxy__request = _noted
