"""Functions, layers and datasets for text."""

from oar.text.datasets import WMT14, WMT16, Conll05st, Imdb, Imikolov, Movielens, UCIHousing
from oar.text.viterbi_decode import ViterbiDecoder, viterbi_decode

__all__ = ["WMT14", "WMT16", "Conll05st", "Imdb", "Imikolov", "Movielens", "UCIHousing", "ViterbiDecoder", "viterbi_decode"]
