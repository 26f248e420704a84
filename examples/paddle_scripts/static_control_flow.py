"""Control flow in a program: while_loop unrolls a recurrent cell, cond chooses the penalty; gradients by hand."""

import os

import numpy as np
import paddle
from paddle import static

from common import arguments, report

WIDTH = 12


def parameter(name, shape, scale=0.3):
    return paddle.create_parameter(shape, paddle.get_default_dtype(), name=name,
                                   default_initializer=paddle.nn.initializer.Uniform(-scale, scale))


def same_start(path, program):
    if path and os.path.exists(path):
        program.set_state_dict(paddle.load(path), static.global_scope())
    elif path:
        paddle.save(program.state_dict("param", static.global_scope()), path)


def recurrent(sequence, length):
    """The last state of a cell that reads ``length`` rows of the sequence."""
    inner, outer = parameter("inner", [WIDTH, WIDTH]), parameter("outer", [2, WIDTH])
    bias, head = parameter("bias", [WIDTH]), parameter("head", [WIDTH, 1])

    def more(t, state):
        return t < length

    def step(t, state):
        row = paddle.index_select(sequence, t, axis=0).squeeze(0)
        return t + 1, paddle.tanh(row @ outer + state @ inner + bias)

    start = paddle.zeros([8, WIDTH], dtype=sequence.dtype)
    start.stop_gradient = False
    _, state = static.nn.while_loop(more, step, [paddle.zeros([1], dtype="int64"), start])
    return (state @ head).squeeze(-1), [inner, outer, bias, head]


def sums(rng, dtype):
    """Sequences of number pairs; the target is a decaying sum of their products."""
    length = rng.randint(3, 7)
    rows = rng.uniform(-1, 1, (6, 8, 2))
    target = sum(0.8 ** (length - 1 - t) * rows[t].prod(-1) for t in range(length))
    return {"sequence": rows.astype(dtype), "length": np.array([length], "int64"), "target": target.astype(dtype)}


def main():
    args = arguments(__doc__)
    paddle.enable_static()
    main_program, startup = static.Program(), static.Program()
    with static.program_guard(main_program, startup):
        sequence = static.data("sequence", [6, 8, 2], args.dtype)
        length = static.data("length", [1], "int64")
        target = static.data("target", [8], args.dtype)
        found, parameters = recurrent(sequence, length)
        error = found - target
        large = error.abs().mean() > 0.4
        loss = static.nn.cond(large, lambda: error.abs().mean(), lambda: (error * error).mean())
        optimizer = paddle.optimizer.Adam(0.01, beta1=0.875, beta2=0.984375)
        pairs = static.append_backward(loss, parameter_list=parameters)
        optimizer.apply_gradients(pairs)
    executor = static.Executor()
    executor.run(startup)
    same_start(args.weights, main_program)
    rng = np.random.RandomState(17)
    losses = [executor.run(main_program, feed=sums(rng, args.dtype), fetch_list=[loss])[0].item() for _ in range(args.steps)]
    report(losses)


if __name__ == "__main__":
    main()
