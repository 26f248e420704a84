"""A million ratings of films."""

from __future__ import annotations

import re
from typing import Any

from oar._lazy import np
from oar.dataset._archive import Archive
from oar.dataset.common import found_or_fetched
from oar.io import Dataset
from oar.text.datasets._words import checked_choice

__all__ = ["MovieInfo", "Movielens", "UserInfo"]

URL = "https://dataset.bj.bcebos.com/movielens%2Fml-1m.zip"
MD5 = "c4d9eecfca2ab87c1945afe126590906"
age_table = [1, 18, 25, 35, 45, 50, 56]

_TITLE = re.compile(r"^(.*)\((\d+)\)$")


class MovieInfo:
    """A film: its number, its categories and its title without the year."""

    def __init__(self, index: str | int, categories: list[str], title: str) -> None:
        self.index = int(index)
        self.categories = categories
        self.title = title

    def value(self, categories_dict: dict[str, int], movie_title_dict: dict[str, int]) -> list[list[int]]:
        """Its number, and those of its categories and of the words of its title."""
        words = [movie_title_dict[word.lower()] for word in self.title.split()]
        return [[self.index], [categories_dict[category] for category in self.categories], words]

    def __repr__(self) -> str:
        return f"<MovieInfo id({self.index}), title({self.title}), categories({self.categories})>"


class UserInfo:
    """A person who rates films: their number, gender, group of age and job."""

    def __init__(self, index: str | int, gender: str, age: str | int, job_id: str | int) -> None:
        self.index = int(index)
        self.is_male = gender == "M"
        self.age = age_table.index(int(age))
        self.job_id = int(job_id)

    def value(self) -> list[list[int]]:
        """Their number, 0 for a man or 1 for a woman, the group of age and the job."""
        return [[self.index], [0 if self.is_male else 1], [self.age], [self.job_id]]

    def __repr__(self) -> str:
        gender = "M" if self.is_male else "F"
        return f"<UserInfo id({self.index}), gender({gender}), age({age_table[self.age]}), job({self.job_id})>"


def _rows(path: str, name: str, columns: int) -> list[list[str]]:
    rows = [line.decode("latin-1").split("::") for line in Archive(path, "Movielens").lines(name)]
    for number, row in enumerate(rows):
        if len(row) != columns:
            raise ValueError(f"[Movielens] line {number + 1} of {name} has {len(row)} fields between '::', not {columns}.")
    return rows


def read_movies(path: str) -> dict[int, MovieInfo]:
    """The films by number."""
    movies = {}
    for index, title, categories in _rows(path, "movies.dat", 3):
        named = _TITLE.match(title)
        if named is None:
            raise ValueError(f"[Movielens] the title {title!r} in movies.dat does not end with a year in parentheses.")
        movies[int(index)] = MovieInfo(index, categories.split("|"), named.group(1))
    return movies


def read_users(path: str) -> dict[int, UserInfo]:
    """The persons by number."""
    return {int(row[0]): UserInfo(*row[:4]) for row in _rows(path, "users.dat", 5)}


def _numbered(words: set[str]) -> dict[str, int]:
    return {word: number for number, word in enumerate(sorted(words))}


class Movielens(Dataset):
    """A million ratings of films: who rated which film how.

    Args:
        data_file: the path of ``ml-1m.zip``, or of the folder ``ml-1m`` that it unpacks to; None looks in the folder of
            datasets and fetches it.
        mode: ``'train'`` or ``'test'``.
        test_ratio: the share of the ratings that is kept for testing.
        rand_seed: decides which ones.
        download: whether the file may be fetched.

    Returns:
        a dataset of eight arrays: number, gender, age and job of a person; number, categories and words of the title of a
        film; the rating, from -3 to 5. Categories and words are numbered in alphabetical order.

    Examples:
        >>> import pathlib, tempfile
        >>> import oar
        >>> folder = tempfile.mkdtemp()
        >>> files = {'movies.dat': '1::Toy Story (1995)::Animation', 'users.dat': '1::F::25::10::48067',
        ...          'ratings.dat': '1::1::5::978300760'}
        >>> for name, line in files.items():
        ...     _ = pathlib.Path(folder, name).write_text(line)
        ...
        >>> [field.tolist() for field in oar.text.Movielens(data_file=folder, test_ratio=0.0)[0]]
        [[1], [1], [2], [10], [1], [0], [1, 0], [5.0]]
    """

    def __init__(
        self,
        data_file: str | None = None,
        mode: str = "train",
        test_ratio: float = 0.1,
        rand_seed: int = 0,
        download: bool = True,
    ) -> None:
        self.mode = checked_choice("Movielens", "mode", mode, ("train", "test"))
        self.data_file = found_or_fetched("Movielens", "data_file", data_file, URL, MD5, "sentiment", download)
        self.test_ratio = test_ratio
        self.rand_seed = rand_seed
        self.movie_info = read_movies(self.data_file)
        self.user_info = read_users(self.data_file)
        movies = self.movie_info.values()
        self.movie_title_dict = _numbered({word.lower() for movie in movies for word in movie.title.split()})
        self.categories_dict = _numbered({category for movie in movies for category in movie.categories})
        self.data: list[list[list[Any]]] = self._chosen_ratings()

    def _chosen_ratings(self) -> list[list[list[Any]]]:
        ratings = _rows(self.data_file, "ratings.dat", 4)
        for_test = np.random.RandomState(self.rand_seed).random_sample(len(ratings)) < self.test_ratio
        chosen = []
        for (user, movie, rating, _), is_test in zip(ratings, for_test.tolist()):
            if is_test == (self.mode == "test"):
                film = self.movie_info[int(movie)].value(self.categories_dict, self.movie_title_dict)
                chosen.append([*self.user_info[int(user)].value(), *film, [float(rating) * 2 - 5.0]])
        return chosen

    def __getitem__(self, idx: int) -> tuple[np.ndarray, ...]:
        return tuple(np.array(field) for field in self.data[idx])

    def __len__(self) -> int:
        return len(self.data)
