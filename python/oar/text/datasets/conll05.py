"""Sentences with the roles of their parts, of the shared task of CoNLL in 2005."""

from __future__ import annotations

import gzip
from collections.abc import Iterator

from oar._lazy import np
from oar.dataset._archive import Archive
from oar.dataset.common import found_or_fetched
from oar.io import Dataset

__all__ = ["Conll05st"]

DATA_URL = "http://paddlemodels.bj.bcebos.com/conll05st/conll05st-tests.tar.gz"
DATA_MD5 = "387719152ae52d60422c016e92a742fc"
WORDDICT_URL = "http://paddlemodels.bj.bcebos.com/conll05st%2FwordDict.txt"
WORDDICT_MD5 = "ea7fb7d4c75cc6254716f0177a506baa"
VERBDICT_URL = "http://paddlemodels.bj.bcebos.com/conll05st%2FverbDict.txt"
VERBDICT_MD5 = "0d2977293bbb6cbefab5b0f97db1e77c"
TRGDICT_URL = "http://paddlemodels.bj.bcebos.com/conll05st%2FtargetDict.txt"
TRGDICT_MD5 = "d8c7f03ceb5fc2e5a0fa7503a4353751"
EMB_URL = "http://paddlemodels.bj.bcebos.com/conll05st%2Femb"
EMB_MD5 = "bf436eb0faa1f6f9103017f8be57cdb7"
UNK_IDX = 0

_WORDS, _ROLES = "test.wsj/words/test.wsj.words.gz", "test.wsj/props/test.wsj.props.gz"
_AROUND = (-2, -1, 0, 1, 2)


def load_dict(filename: str) -> dict[str, int]:
    """The words of a file, one a line, by number."""
    with open(filename) as file:
        return {line.strip(): number for number, line in enumerate(file)}


def load_label_dict(filename: str) -> dict[str, int]:
    """Numbers of the marks of a file: where a role begins (B-) or goes on (I-), and ``O`` for no role at the end.

    Roles are numbered in the order of the file.
    """
    with open(filename) as file:
        roles = dict.fromkeys(line.strip()[2:] for line in file if line.startswith(("B-", "I-")))
    marks = [f"{begin}-{role}" for role in roles for begin in "BI"]
    return {mark: number for number, mark in enumerate([*marks, "O"])}


def marks_of(column: list[str]) -> list[str]:
    """The marks of one verb: ``(A0*``, ``*``, ``*)`` become ``B-A0``, ``I-A0``, ``I-A0``."""
    marks, role, inside = [], "O", False
    for cell in column:
        if "(" in cell:
            role, inside = cell[1 : cell.find("*")], ")" not in cell
            marks.append(f"B-{role}")
        elif cell in ("*", "*)"):
            marks.append(f"I-{role}" if inside or cell == "*)" else "O")
            inside = inside and cell == "*"
        else:
            raise RuntimeError(f"[Conll05st] unexpected mark {cell!r} in {_ROLES}.")
    return marks


def read_sentences(path: str) -> Iterator[tuple[list[str], str, list[str]]]:
    """Words, verb and marks, for each verb of each sentence."""
    archive = Archive(path, "Conll05st")
    words_of, rows_of = (gzip.decompress(archive.read(name)).decode().split("\n") for name in (_WORDS, _ROLES))
    words: list[str] = []
    rows: list[list[str]] = []
    for word, row in zip(words_of, rows_of):
        if row.split():
            words.append(word.strip())
            rows.append(row.split())
        elif rows:
            verbs, *columns = (list(column) for column in zip(*rows))
            for verb, column in zip((verb for verb in verbs if verb != "-"), columns):
                yield words, verb, marks_of(column)
            words, rows = [], []


class Conll05st(Dataset):
    """Sentences with the roles of their parts: the test set of CoNLL's shared task of 2005, the only one that is public.

    Args:
        data_file: the path of ``conll05st-tests.tar.gz``, or of the folder that it unpacks to; this and the others: None looks
            in the folder of datasets and fetches the file.
        word_dict_file: the path of ``wordDict.txt``.
        verb_dict_file: the path of ``verbDict.txt``.
        target_dict_file: the path of ``targetDict.txt``.
        emb_file: the path of the embeddings, for ``get_embedding`` only.
        download: whether the files may be fetched.

    Returns:
        a dataset of nine integer arrays, each as long as the sentence: its words; the word two before the verb, one
        before, the verb itself, one after and two after, repeated; the verb's number in its own dictionary, repeated;
        1 for those five words, else 0; the marks of the roles.

    Examples:
        >>> import oar
        >>> try:
        ...     oar.text.Conll05st(download=False)
        ... except AssertionError as error:
        ...     print(error)
        ...
        [Conll05st] data_file is not given, and download=False. Pass one of them.
    """

    def __init__(
        self,
        data_file: str | None = None,
        word_dict_file: str | None = None,
        verb_dict_file: str | None = None,
        target_dict_file: str | None = None,
        emb_file: str | None = None,
        download: bool = True,
    ) -> None:
        def found(argument: str, given: str | None, url: str, md5: str) -> str:
            return found_or_fetched("Conll05st", argument, given, url, md5, "conll05st", download)

        self.data_file = found("data_file", data_file, DATA_URL, DATA_MD5)
        self.word_dict_file = found("word_dict_file", word_dict_file, WORDDICT_URL, WORDDICT_MD5)
        self.verb_dict_file = found("verb_dict_file", verb_dict_file, VERBDICT_URL, VERBDICT_MD5)
        self.target_dict_file = found("target_dict_file", target_dict_file, TRGDICT_URL, TRGDICT_MD5)
        self.emb_file = found("emb_file", emb_file, EMB_URL, EMB_MD5)
        self.word_dict = load_dict(self.word_dict_file)
        self.predicate_dict = load_dict(self.verb_dict_file)
        self.label_dict = load_label_dict(self.target_dict_file)
        read = list(read_sentences(self.data_file))
        self.sentences = [words for words, _, _ in read]
        self.predicates = [verb for _, verb, _ in read]
        self.labels = [marks for _, _, marks in read]

    def __getitem__(self, idx: int) -> tuple[np.ndarray, ...]:
        words, marks = self.sentences[idx], self.labels[idx]
        verb_at, length = marks.index("B-V"), len(words)
        near = np.zeros(length, np.int64)
        fields = [np.array([self.word_dict.get(word, UNK_IDX) for word in words])]
        for offset in _AROUND:
            at = verb_at + offset
            if 0 <= at < length:
                near[at] = 1
            word = words[at] if 0 <= at < length else ("bos" if offset < 0 else "eos")
            fields.append(np.full(length, self.word_dict.get(word, UNK_IDX)))
        verb = self.predicate_dict.get(self.predicates[idx])
        fields += [np.array([verb] * length), near, np.array([self.label_dict.get(mark) for mark in marks])]
        return tuple(fields)

    def __len__(self) -> int:
        return len(self.sentences)

    def get_dict(self) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
        """The numbers of words, verbs and marks.

        Returns:
            three dictionaries.
        """
        return self.word_dict, self.predicate_dict, self.label_dict

    def get_embedding(self) -> str:
        """The path of the file of embeddings.

        Returns:
            a path.
        """
        return self.emb_file
