from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("suite", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")


def pytest_addoption(parser):
    parser.addoption("--soak", action="store_true", help="also run the long tests (make soak)")


def pytest_collection_modifyitems(config, items):
    """Long runs are left out unless asked for."""
    if not config.getoption("--soak"):
        long = [item for item in items if "soak" in item.keywords]
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if "soak" not in item.keywords]
