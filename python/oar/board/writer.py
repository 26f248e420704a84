"""``LogWriter``: what a training program logs for the dashboard."""

from __future__ import annotations

import re
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from oar._lazy import np
from oar.board import _summaries as summaries
from oar.board._file import EventFile
from oar.board._graphs import captured, definition_of
from oar.board._media import array_of, curve_of, grid, histogram_of, picture_of, sound_of
from oar.board._projector import write_embedding

__all__ = ["LogWriter"]


def _seconds(walltime: float | None) -> float:
    """VisualDL counts milliseconds; a number that is too small for that is in seconds."""
    if walltime is None:
        return time.time()
    return walltime / 1000 if walltime > 1e11 else float(walltime)


def _number(value: Any, tag: str) -> float:
    array = array_of(value, f"the value of {tag!r}")
    if array.size != 1:
        raise ValueError(f"[LogWriter.add_scalar] the value of {tag!r} has {array.size} elements. Pass one number, such as its mean.")
    return float(array.reshape(-1)[0])


def _checked(tag: str) -> str:
    if not isinstance(tag, str) or not tag:
        raise TypeError(f"[LogWriter] tag is {tag!r}. Pass a text that is not empty.")
    return tag


class LogWriter:
    """Writes what a training program logs, for ``oar board``. It has the methods of VisualDL's ``LogWriter``. The files are event
    files, which TensorBoard reads as well.

    Args:
        logdir: the folder of the run; by default a new one in ``runs``.
        comment: the end of the name of a default folder.
        max_queue: so many records may wait in memory.
        flush_secs: so many seconds a record may wait in memory.
        filename_suffix: the end of the file's name.
        write_to_disk: False for a writer that writes nothing, as processes other than the first may need it.
        display_name: the name under which the run is shown; by default its folder.
        file_name: the name of the file. Records are added to a file that exists.

    Examples:
        >>> import oar, tempfile
        >>> from oar.board import LogWriter
        >>> with tempfile.TemporaryDirectory() as folder, LogWriter(folder) as writer:
        ...     for step in range(3):
        ...         writer.add_scalar('train/loss', 1 / (step + 1), step)
        ...
    """

    def __init__(self, logdir: str | Path | None = None, comment: str = "", max_queue: int = 10, flush_secs: float = 120,
                 filename_suffix: str = "", write_to_disk: bool = True, display_name: str = "", file_name: str = "",
                 **kwargs: Any) -> None:
        if not logdir:
            logdir = Path("runs") / (datetime.now().strftime("%b%d_%H-%M-%S") + (f".{comment}" if comment else ""))
        self._folder = Path(logdir)
        self._write_to_disk = write_to_disk
        self._options = (filename_suffix, int(max_queue), float(flush_secs))
        self._name = file_name if "tfevents" in file_name or not file_name else f"events.out.tfevents.{file_name}"
        self._files: dict[Path, EventFile] = {}
        if write_to_disk:
            self._file(self._folder)
        if display_name:
            self.add_meta(display_name=display_name)

    @property
    def logdir(self) -> str:
        """The folder of the run."""
        return str(self._folder)

    @property
    def file_name(self) -> str:
        """The path of the file that is written."""
        return str(self._file(self._folder).path)

    def _file(self, folder: Path) -> EventFile:
        if folder not in self._files:
            self._files[folder] = EventFile(folder, self._name, *self._options)
        return self._files[folder]

    def _write(self, content: bytes, step: int, walltime: float | None, folder: Path | None = None) -> None:
        if self._write_to_disk:
            self._file(folder or self._folder).write(summaries.event(_seconds(walltime), int(step), content))

    def add_scalar(self, tag: str, value: Any, step: int, walltime: float | None = None) -> None:
        """Logs a number.

        Args:
            tag: its name, such as ``'train/loss'``. What is before the ``/`` groups charts.
            value: a number, or a tensor with one element.
            step: the step of training.
            walltime: when, in milliseconds since 1970; by default now.

        Examples:
            >>> import tempfile
            >>> from oar.board import LogWriter
            >>> with tempfile.TemporaryDirectory() as folder, LogWriter(folder) as writer:
            ...     writer.add_scalar('train/loss', 0.5, step=1)
            ...
        """
        self._write(summaries.scalar(_checked(tag), _number(value, tag)), step, walltime)

    def add_scalars(self, main_tag: str, tag_scalar_dict: dict[str, Any], step: int, walltime: float | None = None) -> None:
        """Logs several numbers for one chart. Each name becomes a run of its own, in a folder below the run.

        Args:
            main_tag: the name of the chart.
            tag_scalar_dict: numbers by name.
            step: the step of training.
            walltime: when, in milliseconds since 1970; by default now.

        Examples:
            >>> import tempfile
            >>> from oar.board import LogWriter
            >>> with tempfile.TemporaryDirectory() as folder, LogWriter(folder) as writer:
            ...     writer.add_scalars('accuracy', {'train': 0.9, 'test': 0.8}, step=1)
            ...
        """
        if not isinstance(tag_scalar_dict, dict):
            raise TypeError(f"[LogWriter.add_scalars] tag_scalar_dict is a {type(tag_scalar_dict).__name__}. Pass a dict of numbers.")
        for name, value in tag_scalar_dict.items():
            folder = self._folder / re.sub(r"[/\\\s]+", "_", f"{_checked(main_tag)}_{name}")
            self._write(summaries.scalar(main_tag, _number(value, name)), step, walltime, folder)

    def add_histogram(self, tag: str, values: Any, step: int, walltime: float | None = None, buckets: int = 10) -> None:
        """Logs how values are distributed. Values that are not finite are left out.

        Args:
            tag: its name.
            values: a tensor, an array or a list.
            step: the step of training.
            walltime: when, in milliseconds since 1970; by default now.
            buckets: the number of buckets.

        Examples:
            >>> import oar, tempfile
            >>> from oar.board import LogWriter
            >>> with tempfile.TemporaryDirectory() as folder, LogWriter(folder) as writer:
            ...     writer.add_histogram('weights', oar.randn([100]), step=1, buckets=30)
            ...
        """
        self._write(summaries.histogram(_checked(tag), histogram_of(values, buckets)), step, walltime)

    def add_image(self, tag: str, img: Any, step: int, walltime: float | None = None, dataformats: str = "HWC") -> None:
        """Logs an image. Values from 0 to 1 are scaled to 0 to 255.

        Args:
            tag: its name.
            img: a tensor or an array.
            step: the step of training.
            walltime: when, in milliseconds since 1970; by default now.
            dataformats: what its axes are: ``'HWC'``, ``'CHW'``, ``'HW'`` or ``'NCHW'`` for several images side by side.

        Examples:
            >>> import oar, tempfile
            >>> from oar.board import LogWriter
            >>> with tempfile.TemporaryDirectory() as folder, LogWriter(folder) as writer:
            ...     writer.add_image('noise', oar.rand([8, 8, 3]), step=1)
            ...
        """
        self._write(summaries.image(_checked(tag), *picture_of(img, dataformats)), step, walltime)

    def add_image_matrix(self, tag: str, imgs: Any, step: int, rows: int = -1, scale: float = 1.0, walltime: float | None = None,
                         dataformats: str = "HWC") -> None:
        """Logs several images as one.

        Args:
            tag: its name.
            imgs: a tensor or an array of images.
            step: the step of training.
            rows: how many rows; -1 for a square, if possible.
            scale: the size of each image, as a factor.
            walltime: when, in milliseconds since 1970; by default now.
            dataformats: what the axes of one image are: ``'HWC'``, ``'CHW'`` or ``'HW'``.

        Examples:
            >>> import oar, tempfile
            >>> from oar.board import LogWriter
            >>> with tempfile.TemporaryDirectory() as folder, LogWriter(folder) as writer:
            ...     writer.add_image_matrix('noise', oar.rand([9, 8, 8, 3]), step=1)
            ...
        """
        form = dataformats.upper().replace("N", "")
        images = array_of(imgs, "imgs")
        if images.ndim != len(form) + 1 or sorted(form) not in (["H", "W"], sorted("HWC")):
            raise ValueError(f"[LogWriter.add_image_matrix] images of shape {list(images.shape)} do not fit dataformats={dataformats!r}. "
                             "Pass one axis for the images, then those that dataformats names for one: 'HWC', 'CHW' or 'HW'.")
        order = [form.index(letter) + 1 for letter in "HWC" if letter in form]
        images = images.transpose([0, *order])
        if images.ndim == 3:
            images = images[..., None]
        self.add_image(tag, grid(images, rows, scale), step, walltime)

    def add_figure(self, tag: str, figure: Any, step: int, walltime: float | None = None) -> None:
        """Logs a figure of Matplotlib as an image.

        Args:
            tag: its name.
            figure: the figure.
            step: the step of training.
            walltime: when, in milliseconds since 1970; by default now.

        Examples:
            >>> writer.add_figure('curve', plt.gcf(), step=1)  # doctest: +SKIP
        """
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # type: ignore[import-not-found, unused-ignore]

        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        self.add_image(tag, np.asarray(canvas.buffer_rgba()), step, walltime)

    def add_text(self, tag: str, text_string: str, step: int | None = None, walltime: float | None = None) -> None:
        """Logs a text.

        Args:
            tag: its name.
            text_string: the text.
            step: the step of training.
            walltime: when, in milliseconds since 1970; by default now.

        Examples:
            >>> import tempfile
            >>> from oar.board import LogWriter
            >>> with tempfile.TemporaryDirectory() as folder, LogWriter(folder) as writer:
            ...     writer.add_text('sample', 'Once upon a time', step=1)
            ...
        """
        self._write(summaries.text(_checked(tag), str(text_string)), step or 0, walltime)

    def add_audio(self, tag: str, audio_array: Any, step: int, sample_rate: int = 8000, walltime: float | None = None) -> None:
        """Logs sound.

        Args:
            tag: its name.
            audio_array: the samples of one channel, from -1 to 1.
            step: the step of training.
            sample_rate: samples per second.
            walltime: when, in milliseconds since 1970; by default now.

        Examples:
            >>> import oar, tempfile
            >>> from oar.board import LogWriter
            >>> with tempfile.TemporaryDirectory() as folder, LogWriter(folder) as writer:
            ...     writer.add_audio('tone', oar.sin(oar.arange(8000.0) * 0.35), step=1)
            ...
        """
        self._write(summaries.audio(_checked(tag), *sound_of(audio_array, sample_rate)), step, walltime)

    def add_embeddings(self, tag: str, mat: Any = None, metadata: Any = None, metadata_header: list[str] | None = None,
                       walltime: float | None = None, labels: Any = None, hot_vectors: Any = None,
                       labels_meta: list[str] | None = None) -> None:
        """Logs vectors with labels. The last ones of a tag count.

        Args:
            tag: its name.
            mat: a vector in each row.
            metadata: a label for each vector, or a list of such lists.
            metadata_header: a name for each of these lists.
            walltime: not used; the time of the file counts.
            labels: the older name of ``metadata``.
            hot_vectors: the older name of ``mat``.
            labels_meta: the older name of ``metadata_header``.

        Examples:
            >>> import oar, tempfile
            >>> from oar.board import LogWriter
            >>> with tempfile.TemporaryDirectory() as folder, LogWriter(folder) as writer:
            ...     writer.add_embeddings('words', oar.randn([3, 8]), ['sun', 'moon', 'star'])
            ...
        """
        mat = hot_vectors if mat is None else mat
        metadata = labels if metadata is None else metadata
        header = labels_meta if metadata_header is None else metadata_header
        vectors = array_of(mat, "mat")
        if vectors.ndim != 2 or 0 in vectors.shape:
            raise ValueError(f"[LogWriter.add_embeddings] mat has the shape {list(vectors.shape)}. Pass one vector in each row.")
        columns = [] if metadata is None else list(metadata.tolist() if hasattr(metadata, "tolist") else metadata)
        if columns and not isinstance(columns[0], (list, tuple)):
            columns = [columns]
        if any(len(column) != len(vectors) for column in columns):
            raise ValueError(f"[LogWriter.add_embeddings] there are {len(vectors)} vectors, and lists of "
                             f"{[len(column) for column in columns]} labels. Pass one label for each vector.")
        names = list(header or [f"label_{i}" for i in range(len(columns))])
        if self._write_to_disk:
            rows = [list(map(str, row)) for row in zip(*columns)]
            write_embedding(self._folder, _checked(tag), vectors.astype("float32"), rows, names)

    def add_graph(self, model: Any, input_spec: Any = None, verbose: bool = False) -> None:
        """Logs the program that a layer or a function runs, to be drawn.

        Args:
            model: a layer, a function, a captured program or a static program.
            input_spec: an ``InputSpec`` or a tensor for each input; programs need none.
            verbose: print the program.

        Examples:
            >>> import oar, tempfile
            >>> from oar.board import LogWriter
            >>> net = oar.nn.Linear(3, 1)
            >>> with tempfile.TemporaryDirectory() as folder, LogWriter(folder) as writer:
            ...     writer.add_graph(net, [oar.static.InputSpec([-1, 3], 'float32')])
            ...
        """
        text, boxes = captured(model, input_spec)
        if verbose:
            print(text)
        self._write(summaries.graph(definition_of(boxes)), 0, None)
        self._write(summaries.program("program", text), 0, None)

    def add_hparams(self, hparams_dict: dict[str, Any], metrics_list: list[str], walltime: float | None = None) -> None:
        """Logs the hyper-parameters of the run. Log the metrics with ``add_scalar``.

        Args:
            hparams_dict: numbers, texts or booleans by name.
            metrics_list: the tags of the scalars that judge the run.
            walltime: when, in milliseconds since 1970; by default now.

        Examples:
            >>> import tempfile
            >>> from oar.board import LogWriter
            >>> with tempfile.TemporaryDirectory() as folder, LogWriter(folder) as writer:
            ...     writer.add_hparams({'lr': 0.1, 'optimizer': 'sgd'}, ['test/accuracy'])
            ...     writer.add_scalar('test/accuracy', 0.93, step=10)
            ...
        """
        if not isinstance(hparams_dict, dict):
            raise TypeError(f"[LogWriter.add_hparams] hparams_dict is a {type(hparams_dict).__name__}. Pass a dict of values by name.")
        if not isinstance(metrics_list, (list, tuple)):
            raise TypeError(f"[LogWriter.add_hparams] metrics_list is a {type(metrics_list).__name__}. Pass a list of tags of scalars.")
        values = {str(name): value.item() if hasattr(value, "item") else value for name, value in hparams_dict.items()
                  if value is not None}
        for content in summaries.hparams(values, list(metrics_list), _seconds(walltime)):
            self._write(content, 0, walltime)

    def add_pr_curve(self, tag: str, labels: Any, predictions: Any, step: int, num_thresholds: int = 10, weights: Any = None,
                     walltime: float | None = None) -> None:
        """Logs a curve of precision and recall.

        Args:
            tag: its name.
            labels: whether each element is positive.
            predictions: the probability of each to be positive, from 0 to 1.
            step: the step of training.
            num_thresholds: at how many thresholds.
            weights: how much each element counts.
            walltime: when, in milliseconds since 1970; by default now.

        Examples:
            >>> import tempfile
            >>> from oar.board import LogWriter
            >>> with tempfile.TemporaryDirectory() as folder, LogWriter(folder) as writer:
            ...     writer.add_pr_curve('test', [1, 0, 1], [0.9, 0.2, 0.6], step=1)
            ...
        """
        self._write(summaries.curve(_checked(tag), curve_of("pr", labels, predictions, num_thresholds, weights)), step, walltime)

    def add_roc_curve(self, tag: str, labels: Any, predictions: Any, step: int, num_thresholds: int = 10, weights: Any = None,
                      walltime: float | None = None) -> None:
        """Logs a curve of the rates of true and false positives.

        Args:
            tag: its name.
            labels: whether each element is positive.
            predictions: the probability of each to be positive, from 0 to 1.
            step: the step of training.
            num_thresholds: at how many thresholds.
            weights: how much each element counts.
            walltime: when, in milliseconds since 1970; by default now.

        Examples:
            >>> import tempfile
            >>> from oar.board import LogWriter
            >>> with tempfile.TemporaryDirectory() as folder, LogWriter(folder) as writer:
            ...     writer.add_roc_curve('test', [1, 0, 1], [0.9, 0.2, 0.6], step=1)
            ...
        """
        self._write(summaries.curve(_checked(tag), curve_of("roc", labels, predictions, num_thresholds, weights)), step, walltime)

    def add_meta(self, tag: str = "meta_data_tag", display_name: str = "", step: int = 0, walltime: float | None = None) -> None:
        """Names the run.

        Args:
            tag: not used.
            display_name: the name under which the run is shown.
            step: not used.
            walltime: when, in milliseconds since 1970; by default now.
        """
        self._write(summaries.meta(_checked(tag), display_name), step, walltime)

    def flush(self) -> None:
        """Writes what waits in memory."""
        for file in self._files.values():
            file.flush()

    def close(self) -> None:
        """Writes what waits in memory and closes the files. A later call of another method begins a new file."""
        for file in self._files.values():
            file.close()
        self._files = {}

    def __enter__(self) -> LogWriter:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
