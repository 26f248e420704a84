"""``import paddle`` gives Oar. This package is on the path of processes that ``oar.as_paddle`` starts."""

from oar.as_paddle import install as _install

_install()
