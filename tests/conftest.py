"""What holds for all tests."""

from hypothesis import settings

# a busy machine must not fail a test
settings.register_profile("numalign", deadline=None)
settings.load_profile("numalign")
