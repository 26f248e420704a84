"""Datasets of text, from local files or from the web."""

from oar.text.datasets.conll05 import Conll05st
from oar.text.datasets.imdb import Imdb
from oar.text.datasets.imikolov import Imikolov
from oar.text.datasets.movielens import Movielens
from oar.text.datasets.uci_housing import UCIHousing
from oar.text.datasets.wmt14 import WMT14
from oar.text.datasets.wmt16 import WMT16

__all__ = ["WMT14", "WMT16", "Conll05st", "Imdb", "Imikolov", "Movielens", "UCIHousing"]
