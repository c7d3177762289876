"""The tests in this folder are about the compiled kernels; without these they are left out."""

from fmnes import kernels

if kernels.in_use == "agnostic":
    collect_ignore_glob = ["test_*.py"]


def pytest_terminal_summary(terminalreporter):
    if kernels.in_use == "agnostic":
        terminalreporter.write_line(f"tests/native left out: {kernels.why}")
