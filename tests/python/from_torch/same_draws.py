"""Runs a script with numbers drawn by NumPy, so that PyTorch and Oar see the same: ``same_draws.py torch|oar script.py arguments``."""

import importlib
import runpy
import sys

import numpy as np

RNG = np.random.RandomState(0)


def _sizes(args):
    return tuple(int(n) for n in (args[0] if len(args) == 1 and not isinstance(args[0], int) else args))


def _multinomial(made, probs, num_samples=1, replacement=False):
    p = np.asarray(probs.detach().numpy(), "float64")
    rows = p.reshape(-1, p.shape[-1])
    drawn = [[int(np.searchsorted(np.cumsum(row) / row.sum(), RNG.random_sample())) for _ in range(num_samples)] for row in rows]
    return made(np.asarray(drawn, "int64").reshape(*p.shape[:-1], num_samples))


def _for_the_script(library, name, drawn):
    """Puts a function in the place of another, for calls in the script itself."""
    before = getattr(library, name)

    def function(*args, **kwargs):
        return (drawn if sys._getframe(1).f_globals["__name__"] == "__main__" else before)(*args, **kwargs)

    setattr(library, name, function)


def draw_alike(library):
    """Replaces the functions that draw numbers."""
    made = library.from_numpy

    def of(draw):
        return lambda *size, device=None, dtype=None, requires_grad=False: made(np.asarray(draw(_sizes(size)), "float32"))

    def like(draw):
        return lambda x, **kwargs: made(np.asarray(draw(tuple(x.shape)), "float32"))

    _for_the_script(library, "randn", of(RNG.standard_normal))
    _for_the_script(library, "rand", of(RNG.random_sample))
    _for_the_script(library, "randn_like", like(RNG.standard_normal))
    _for_the_script(library, "randint", lambda low, high, size, **kwargs: made(RNG.randint(low, high, _sizes((size,)))))
    _for_the_script(library, "multinomial", lambda *args, **kwargs: _multinomial(made, *args, **kwargs))


def drop_alike(nn, made):
    """Lets Dropout take its mask from NumPy."""

    def forward(self, x):
        if not self.training or self.p == 0:
            return x
        return x * made((RNG.random_sample(tuple(x.shape)) >= self.p).astype("float32")) / (1 - self.p)

    nn.Dropout.forward = forward


def sample_alike(data):
    """Lets data loaders shuffle as NumPy does."""
    data.RandomSampler.__iter__ = lambda self: iter(RNG.permutation(len(self.data_source)).tolist())

    def weighted(self):
        p = np.asarray([float(w) for w in self.weights])
        return iter(RNG.choice(len(p), self.num_samples, p=p / p.sum()).tolist())

    data.WeightedRandomSampler.__iter__ = weighted


def main():
    name, script = sys.argv[1:3]
    library = importlib.import_module(name)
    draw_alike(library)
    drop_alike(importlib.import_module(f"{name}.nn"), library.from_numpy)
    sample_alike(importlib.import_module("torch.utils.data" if name == "torch" else "oar.io"))
    sys.argv = [script, *sys.argv[3:]]
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
