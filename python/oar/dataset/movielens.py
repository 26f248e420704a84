"""A million ratings of films, as readers. ``oar.text.Movielens`` is the dataset for ``DataLoader``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

from oar.dataset.common import found_or_fetched
from oar.text.datasets.movielens import MD5, URL, MovieInfo, Movielens, UserInfo, age_table

__all__ = [
    "MovieInfo", "UserInfo", "age_table", "fetch", "get_movie_title_dict", "max_job_id", "max_movie_id", "max_user_id",
    "movie_categories", "movie_info", "test", "train", "user_info",
]  # fmt: skip


@functools.lru_cache(maxsize=4)
def _read(path: str, mode: str, rand_seed: int, test_ratio: float) -> Movielens:
    return Movielens(path, mode, test_ratio, rand_seed)


def _all() -> Movielens:
    return _read(fetch(), "train", 0, 0.1)


def train(rand_seed: int = 0, test_ratio: float = 0.1) -> Callable[[], Iterator]:
    """A reader of ratings for training.

    Args:
        rand_seed: decides which ones.
        test_ratio: the share that is kept for testing.

    Returns:
        a function without arguments that returns an iterator over samples, lists of eight lists.
    """
    return lambda: iter(_read(fetch(), "train", rand_seed, test_ratio).data)


def test(rand_seed: int = 0, test_ratio: float = 0.1) -> Callable[[], Iterator]:
    """A reader of ratings for testing.

    Args:
        rand_seed: decides which ones.
        test_ratio: the share that is kept for testing.

    Returns:
        a function without arguments that returns an iterator over samples, lists of eight lists.
    """
    return lambda: iter(_read(fetch(), "test", rand_seed, test_ratio).data)


def get_movie_title_dict() -> dict[str, int]:
    """Numbers of the words in titles.

    Returns:
        a dictionary.
    """
    return _all().movie_title_dict


def movie_categories() -> dict[str, int]:
    """Numbers of the categories.

    Returns:
        a dictionary.
    """
    return _all().categories_dict


def movie_info() -> dict[int, MovieInfo]:
    """The films by number.

    Returns:
        a dictionary.
    """
    return _all().movie_info


def user_info() -> dict[int, UserInfo]:
    """The persons by number.

    Returns:
        a dictionary.
    """
    return _all().user_info


def max_movie_id() -> int:
    """The largest number of a film.

    Returns:
        an integer.
    """
    return max(movie_info())


def max_user_id() -> int:
    """The largest number of a person.

    Returns:
        an integer.
    """
    return max(user_info())


def max_job_id() -> int:
    """The largest number of a job.

    Returns:
        an integer.
    """
    return max(user.job_id for user in user_info().values())


def fetch() -> str:
    """Finds or fetches the file.

    Returns:
        its path.
    """
    return found_or_fetched("movielens", "ml-1m.zip", None, URL, MD5, "movielens")
