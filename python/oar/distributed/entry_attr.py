"""Which keys of a sparse table get a row."""

from __future__ import annotations

__all__ = ["CountFilterEntry", "EntryAttr", "ProbabilityEntry", "ShowClickEntry"]


class EntryAttr:
    """The base of the classes that say which keys get a row."""

    _kind = 0
    _threshold = 0.0

    def __init__(self) -> None:
        self._name: str | None = None

    def _to_attr(self) -> str:
        """The entry as text."""
        return f"{self._name}:{self._threshold}"


class ProbabilityEntry(EntryAttr):
    """A key gets its row with this probability each time that it is pushed; so frequent keys come in sooner.

    Args:
        probability: a number above 0, up to 1.

    Examples:
        >>> import oar
        >>> entry = oar.distributed.ProbabilityEntry(0.1)
        >>> entry._to_attr()
        'probability_entry:0.1'
    """

    _kind = 2

    def __init__(self, probability: float) -> None:
        super().__init__()
        if not isinstance(probability, float):
            raise ValueError(f"[ProbabilityEntry] probability must be a float, not {type(probability).__name__}.")
        if not 0 < probability <= 1:
            raise ValueError(f"[ProbabilityEntry] probability must be in (0, 1], not {probability}.")
        self._name, self._threshold = "probability_entry", probability


class CountFilterEntry(EntryAttr):
    """A key gets its row when it has been pushed so often.

    Args:
        count_filter: a whole number, 0 or more.

    Examples:
        >>> import oar
        >>> entry = oar.distributed.CountFilterEntry(10)
        >>> entry._to_attr()
        'count_filter_entry:10'
    """

    _kind = 1

    def __init__(self, count_filter: int) -> None:
        super().__init__()
        if not isinstance(count_filter, int) or isinstance(count_filter, bool):
            raise ValueError(f"[CountFilterEntry] count_filter must be an int, not {type(count_filter).__name__}.")
        if count_filter < 0:
            raise ValueError(f"[CountFilterEntry] count_filter must be 0 or more, not {count_filter}.")
        self._name, self._threshold = "count_filter_entry", count_filter


class ShowClickEntry(EntryAttr):
    """Every key gets a row, which counts how often it was shown and clicked. ``shrink`` removes rows with low scores.

    Args:
        show_name: the name of the input that says how often a sample was shown.
        click_name: the name of the input that says how often it was clicked.

    Examples:
        >>> import oar
        >>> entry = oar.distributed.ShowClickEntry('show', 'click')
        >>> entry._to_attr()
        'show_click_entry:show:click'
    """

    def __init__(self, show_name: str, click_name: str) -> None:
        super().__init__()
        if not isinstance(show_name, str) or not isinstance(click_name, str):
            raise ValueError("[ShowClickEntry] show_name and click_name must be strings.")
        self._name, self._show_name, self._click_name = "show_click_entry", show_name, click_name

    def _to_attr(self) -> str:
        return f"{self._name}:{self._show_name}:{self._click_name}"
