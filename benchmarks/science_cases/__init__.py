"""The cases of benchmarks/science.py: inputs that all frameworks share, and a module per framework."""
