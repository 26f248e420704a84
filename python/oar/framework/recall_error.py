"""What a log says when a training goes wrong, in the words that tools which restart trainings look for."""

__all__ = ["AADIFF_ERROR", "LOSS_INF_ERROR", "LOSS_NAN_ERROR", "SHARDING_PAD_NON_ZERO_ERROR"]

AADIFF_ERROR = "PaddleRecall error(101): AAdiff"
LOSS_NAN_ERROR = "PaddleRecall error(102): LossNan"
SHARDING_PAD_NON_ZERO_ERROR = "PaddleRecall error(103): ShardingPadNonZero"
LOSS_INF_ERROR = "PaddleRecall error(104): LossInf"
