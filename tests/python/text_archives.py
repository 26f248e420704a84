"""Small archives in the formats of the text datasets."""

import gzip
import io
import tarfile
import zipfile


def tar(path, files):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            content = content if isinstance(content, bytes) else content.encode()
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return str(path)


def folder(path, files):
    for name, content in files.items():
        target = path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


IMDB = {
    "aclImdb/train/pos/0_9.txt": "A great film, great fun!\n",
    "aclImdb/train/neg/0_1.txt": "This film... is a BAD film.",
    "aclImdb/test/pos/1_9.txt": "great great acting\n",
    "aclImdb/test/neg/1_1.txt": "a bad film",
    "aclImdb/README": "not a review",
}

PTB = {
    "./simple-examples/data/ptb.train.txt": " the cat sat \n the <unk> ran \n no cat ran far \n",
    "./simple-examples/data/ptb.valid.txt": " the dog sat \n",
    "./simple-examples/data/ptb.test.txt": " a cat ran \n the the \n",
}

MOVIES = {
    "ml-1m/movies.dat": "1::Toy Story (1995)::Animation|Comedy\n2::Am\xe9lie (2001)::Comedy\n3::The Toy (1982)::Drama\n".encode("latin-1"),
    "ml-1m/users.dat": "1::F::1::10::48067\n2::M::56::16::70072\n",
    "ml-1m/ratings.dat": "".join(f"{1 + n % 2}::{1 + n % 3}::{1 + n % 5}::97830{n}\n" for n in range(40)),
}


def movies(path):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in MOVIES.items():
            archive.writestr(name, content)
    return str(path)


WMT14 = {
    "wmt14/src.dict": "<s>\n<e>\n<unk>\nle\nchat\nnoir\n",
    "wmt14/trg.dict": "<s>\n<e>\n<unk>\nthe\ncat\nblack\n",
    "wmt14/train/train": "le chat\tthe cat\nno tab here\nle chat noir dort\tthe black cat sleeps\n" + "le " * 90 + "\tthe\n",
    "wmt14/test/test": "chat\tcat\n",
    "wmt14/gen/gen": "noir\tblack\n",
}

WMT16 = {
    "wmt16/train": "a dog runs\tein Hund rennt\na cat\teine Katze\na dog\tein Hund\n",
    "wmt16/val": "a bird\tein Vogel\n",
    "wmt16/test": "the dog\tder Hund\n",
}

_WORDS = "The\ncat\nsat\ndown\n\nDogs\nbark\n\n"
_ROLES = "- (A0* *\n- *) *\nsit (V*) *\ngo (A1*) (V*)\n\n- (A0*)\nbark (V*)\n\n"
CONLL = {
    "conll05st-release/test.wsj/words/test.wsj.words.gz": gzip.compress(_WORDS.encode()),
    "conll05st-release/test.wsj/props/test.wsj.props.gz": gzip.compress(_ROLES.encode()),
}
CONLL_DICTIONARIES = {
    "wordDict.txt": "unk\nthe\ncat\nsat\nbos\neos\nDogs\n",
    "verbDict.txt": "sit\ngo\nbark\n",
    "targetDict.txt": "B-A0\nI-A0\nB-V\nI-V\nB-A1\nO\n",
    "emb": "0.5",
}
