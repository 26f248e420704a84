"""How much a run compared, for its closing line."""

COMPARED: dict[str, int | str] = {}


def count(what: str) -> None:
    COMPARED[what] = COMPARED.get(what, 0) + 1
