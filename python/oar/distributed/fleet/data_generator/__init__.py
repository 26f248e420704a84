"""Programs that turn lines of text into samples of several slots."""

from oar.distributed.fleet.data_generator.data_generator import MultiSlotDataGenerator, MultiSlotStringDataGenerator

__all__ = ["MultiSlotDataGenerator", "MultiSlotStringDataGenerator"]
