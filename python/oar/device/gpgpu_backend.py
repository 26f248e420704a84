"""``oar.device.default_backend`` under the name of another of Paddle's modules: all plug-ins report the same."""

from oar.device.default_backend import get_device_properties

__all__ = ["get_device_properties"]
