"""Helpers of the registry-driven tests: records, samples, references, comparisons."""
