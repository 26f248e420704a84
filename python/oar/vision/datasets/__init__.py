"""Data sets of images, and folders of images. Files that are not given are fetched into a cache, if the machine can."""

from oar.vision.datasets.cifar import Cifar10, Cifar100
from oar.vision.datasets.flowers import Flowers
from oar.vision.datasets.folder import DatasetFolder, ImageFolder
from oar.vision.datasets.mnist import MNIST, FashionMNIST
from oar.vision.datasets.voc2012 import VOC2012

__all__ = ["Cifar10", "Cifar100", "DatasetFolder", "FashionMNIST", "Flowers", "ImageFolder", "MNIST", "VOC2012"]
