"""Descriptions of ops under Paddle's inner path."""

from oar.base.proto import framework_pb2

__all__ = ["framework_pb2"]
