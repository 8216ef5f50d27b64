from __future__ import annotations

import os
import signal
import sys

from hypothesis import HealthCheck, Phase, settings

# Triton's interpreter, for test_device: Triton looks once, when it is imported, and torch may import it
os.environ.setdefault("TRITON_INTERPRET", "1")

settings.register_profile("suite", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile(
    "mutants", settings.get_profile("suite"), max_examples=25, database=None, phases=[Phase.explicit, Phase.generate]
)
settings.load_profile("suite")


def pytest_configure(config):
    """Ctrl-C is Ctrl-C: a process started in the background ignores it, and tests that send it would wait for ever."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionfinish():
    """`make coverage`: workers write down what they have seen while there is time; those slow to end are killed."""
    watching = sys.modules["coverage"].Coverage.current() if "coverage" in sys.modules else None
    if watching is not None:
        watching.save()


def pytest_addoption(parser):
    parser.addoption("--soak", action="store_true", help="also run the long tests (make soak)")


def pytest_collection_modifyitems(config, items):
    """Long runs are left out unless asked for."""
    if not config.getoption("--soak"):
        long = [item for item in items if "soak" in item.keywords]
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if "soak" not in item.keywords]
