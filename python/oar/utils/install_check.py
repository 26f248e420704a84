"""Whether the installation works: a small net is trained."""

from __future__ import annotations

__all__ = ["run_check"]


def run_check() -> None:
    """Trains a small net for some steps and captures one, and prints that both work. An error says what does not.

    Examples:
        >>> import oar
        >>> oar.utils.run_check()  # doctest: +ELLIPSIS
        Oar ... works on cpu.
    """
    import oar

    with oar.utils.unique_name.guard():
        net = oar.nn.Linear(2, 1)
        optimizer = oar.optimizer.SGD(0.1, parameters=net.parameters())
        x, y = oar.to_tensor([[1.0, 2.0], [3.0, -1.0], [0.5, 0.5]]), oar.to_tensor([[1.0], [2.0], [3.0]])
        losses = []
        for _ in range(10):
            loss = oar.nn.functional.mse_loss(net(x), y)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            losses.append(loss.item())
        captured = oar.jit.to_static(net)(x)
    if not losses[-1] < losses[0]:
        raise RuntimeError(f"[run_check] training does not lower the loss: it went from {losses[0]} to {losses[-1]}.")
    if not oar.allclose(captured, net(x)):
        raise RuntimeError("[run_check] the captured net gives other results than the net itself.")
    print(f"Oar {oar.__version__} works on {oar.get_device()}.")
