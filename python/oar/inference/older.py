"""Predictors under the names of Paddle 1: ``base.core.AnalysisConfig`` and ``create_paddle_predictor``."""

from __future__ import annotations

from oar.inference.config import Config
from oar.inference.predictor import Predictor, Tensor

__all__ = ["AnalysisConfig", "PaddlePredictor", "create_paddle_predictor"]


class AnalysisConfig(Config):
    """``Config`` with the switches that older programs set; models are always fed and fetched by name.

    Args:
        prog_file: the file of the program, or a folder.
        params_file: the file of its states.

    Examples:
        >>> from oar.base.core import AnalysisConfig
        >>> config = AnalysisConfig('model.pdmodel', 'model.pdiparams')
        >>> config.switch_use_feed_fetch_ops(False)
        >>> config.prog_file()
        'model.pdmodel'
    """

    def switch_use_feed_fetch_ops(self, x: bool = True) -> None:
        """Accepted: inputs and results have handles in any case."""

    def switch_specify_input_names(self, x: bool = True) -> None:
        """Accepted: inputs have names in any case."""


class PaddlePredictor(Predictor):
    """``Predictor`` whose handles are tensors that are filled, computed by ``zero_copy_run`` and read."""

    def get_input_tensor(self, name: str) -> Tensor:
        """The handle of an input.

        Args:
            name: its name.
        """
        return self.get_input_handle(name)

    def get_output_tensor(self, name: str) -> Tensor:
        """The handle of a result.

        Args:
            name: its name.
        """
        return self.get_output_handle(name)

    def zero_copy_run(self) -> None:
        """Computes the results from the inputs that the handles hold."""
        self.run()


def create_paddle_predictor(config: Config) -> PaddlePredictor:
    """A predictor for a model.

    Args:
        config: where the model is.

    Returns:
        a predictor.

    Examples:
        >>> import os, tempfile
        >>> import oar
        >>> from oar.base.core import AnalysisConfig, create_paddle_predictor
        >>> path = os.path.join(tempfile.mkdtemp(), 'model')
        >>> oar.jit.save(oar.nn.ReLU(), path, input_spec=[oar.static.InputSpec([2], 'float32', 'x')])
        >>> predictor = create_paddle_predictor(AnalysisConfig(path + '.pdmodel', path + '.pdiparams'))
        >>> predictor.get_input_tensor('x').copy_from_cpu(oar.to_tensor([-1.0, 2.0]).numpy())
        >>> predictor.zero_copy_run()
        >>> predictor.get_output_tensor(predictor.get_output_names()[0]).copy_to_cpu().tolist()
        [0.0, 2.0]
    """
    return PaddlePredictor(config)
