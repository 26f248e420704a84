"""Names of the package: each is defined once."""

import ast
import importlib
from collections import defaultdict
from pathlib import Path

import oar

PACKAGE = Path(oar.__file__).parent


def test_no_name_comes_from_two_modules():
    """Of two modules that are imported with a star the later one would win, without a word."""
    imported = defaultdict(list)
    for node in ast.parse((PACKAGE / "__init__.py").read_text()).body:
        if isinstance(node, ast.ImportFrom):
            module = importlib.import_module(node.module)
            names = module.__all__ if node.names[0].name == "*" else [alias.name for alias in node.names]
            for name in names:
                if not any(getattr(module, name) is value for value, _ in imported[name]):
                    imported[name].append((getattr(module, name), node.module))
    assert not {name: [module for _, module in places] for name, places in imported.items() if len(places) > 1}


def test_a_function_does_not_hide_an_op_that_does_the_same():
    assert type(oar.cartesian_prod).__name__ == "OpFunction"
    assert oar.combinations is oar._layout.combinations
