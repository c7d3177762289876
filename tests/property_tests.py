"""The number of examples of a property test, in proportion to the profile of hypothesis."""

from hypothesis import settings

DEFAULT = 100  # examples of a test without a number of its own, in the default profile


def examples(number):
    """Decorator: run `number` examples, and ten times as many where the profile has ten times."""
    return settings(max_examples=max(1, number * settings.default.max_examples // DEFAULT))
