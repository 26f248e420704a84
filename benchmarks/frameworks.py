"""What differs between frameworks: how a tensor, a model, an optimiser is made in each."""

import numpy as np

class Masks(dict):
    """Causal masks by length, for frameworks without a causal attention of their own."""

    def __init__(self, tensor):
        super().__init__()
        self.tensor = tensor

    def __missing__(self, n):
        self[n] = self.tensor(np.triu(np.full((n, n), -np.inf, np.float32), 1))
        return self[n]


class Torch:
    kind = "torch"

    def __init__(self, threads):
        import torch
        import torch.nn.functional as functional
        self.module = torch
        torch.set_num_threads(threads)
        torch.manual_seed(1)
        self.version = torch.__version__
        self.names = dict(T=torch, TF=functional, attention=self._attention(torch, functional))
        self.threads = torch.get_num_threads()

    @staticmethod
    def _attention(torch, functional):
        if hasattr(functional, "scaled_dot_product_attention"):
            def attention(q, k, v, causal):
                out = functional.scaled_dot_product_attention(
                    q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=causal)
                return out.transpose(1, 2)
        else:
            masks = Masks(torch.tensor)

            def attention(q, k, v, causal):
                q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
                s = torch.matmul(q * q.shape[-1] ** -0.5, k.transpose(2, 3))
                if causal:
                    s = s + masks[s.shape[-1]].to(s.dtype)
                return torch.matmul(torch.softmax(s, -1), v).transpose(1, 2)

            attention.masks = masks
        return attention

    def tensor(self, array, grad, dtype):
        x = self.module.tensor(array)
        if dtype == "bfloat16" and x.is_floating_point():
            x = x.to(self.module.bfloat16)
        return x.requires_grad_(True) if grad else x

    def cast(self, x, dtype):
        return x.to(dtype)

    def array(self, x):
        x = x.detach()
        if x.is_sparse:
            x = x.to_dense()
        return x.float().numpy() if x.dtype == self.module.bfloat16 else x.resolve_conj().numpy()

    def is_tensor(self, x):
        return isinstance(x, self.module.Tensor)

    def recording(self, on):
        return self.module.enable_grad() if on else self.module.no_grad()

    def inference(self):
        return self.module.inference_mode()

    clear = "{x}.grad = None"

    def autocast(self, dtype):
        return self.module.autocast("cpu", dtype=getattr(self.module, dtype))

    def build(self, name):
        from cases import models
        return models.build_torch(name, self.module, self.names["attention"])

    def linear_types(self):
        return self.module.nn.Linear

    def layers(self, model):
        return model.named_modules()

    def own_parameters(self, layer):
        return [(n, p) for n, p in layer.named_parameters(recurse=False) if p.requires_grad]

    def set_value(self, p, array):
        with self.module.no_grad():
            p.copy_(self.module.from_numpy(np.ascontiguousarray(array)))

    def optimizer(self, kind, ps, lr, weight_decay, momentum):
        o = self.module.optim
        if kind == "adam":
            return o.Adam(ps, lr=lr)
        if kind == "adamw":
            return o.AdamW(ps, lr=lr, weight_decay=weight_decay)
        if kind == "momentum":
            return o.SGD(ps, lr=lr, momentum=momentum)
        return o.SGD(ps, lr=lr)

    def zero(self, opt):
        opt.zero_grad(set_to_none=True)

    def compiled(self, model):
        if not hasattr(self.module, "compile"):
            raise RuntimeError("this torch has no torch.compile")
        return self.module.compile(model)


class Paddle:
    """PaddlePaddle, or a framework that answers to `import paddle`."""
    kind = "paddle"

    def __init__(self, threads):
        import paddle
        import paddle.nn.functional as functional
        self.module = paddle
        if hasattr(paddle, "set_device"):
            paddle.set_device("cpu")
        setter = getattr(paddle, "set_num_threads", None)     # real Paddle reads its environment only
        if setter:
            setter(threads)
        paddle.seed(1)
        self.version = getattr(paddle, "__version__", "?")
        self.names = dict(P=paddle, PF=functional)
        self.names["attention"] = self._attention(paddle, functional)
        self.threads = threads

    @staticmethod
    def _attention(paddle, functional):
        sdpa = functional.scaled_dot_product_attention if hasattr(functional, "scaled_dot_product_attention") else None

        def works(causal):
            try:
                x = paddle.ones([1, 2, 1, 8], dtype="float32")
                sdpa(x, x, x, is_causal=causal).numpy()
                return True
            except Exception:
                return False

        native = {c: sdpa is not None and works(c) for c in (False, True)}
        masks = Masks(paddle.to_tensor)

        def attention(q, k, v, causal):
            if native[causal]:
                return sdpa(q, k, v, is_causal=causal)
            q, k, v = (paddle.transpose(x, [0, 2, 1, 3]) for x in (q, k, v))
            s = paddle.matmul(q * q.shape[-1] ** -0.5, k, transpose_y=True)
            if causal:
                s = s + masks[s.shape[-1]].astype(s.dtype)
            return paddle.transpose(paddle.matmul(functional.softmax(s, axis=-1), v), [0, 2, 1, 3])

        attention.native, attention.masks = native, masks
        return attention

    def tensor(self, array, grad, dtype):
        x = self.module.to_tensor(array)
        if dtype == "bfloat16" and array.dtype.kind == "f":
            x = x.astype("bfloat16")
        x.stop_gradient = not grad
        return x

    def cast(self, x, dtype):
        return x if x.dtype == dtype else x.astype(dtype)

    def array(self, x):
        x = x.detach()
        if "bfloat16" in str(x.dtype):
            x = x.astype("float32")
        return x.numpy()

    def is_tensor(self, x):
        return isinstance(x, self.module.Tensor)

    def recording(self, on):
        return self.module.enable_grad() if on else self.module.no_grad()

    def inference(self):
        return self.module.no_grad()

    clear = "{x}.clear_gradient(False)"

    def autocast(self, dtype):
        return self.module.amp.auto_cast(enable=True, level="O1", dtype=dtype)

    def build(self, name):
        from cases import models
        return models.build_paddle(name, self.module, self.names["attention"])

    def linear_types(self):
        return self.module.nn.Linear

    def layers(self, model):
        return model.named_sublayers(include_self=True)

    def own_parameters(self, layer):
        return [(n, p) for n, p in layer.named_parameters(include_sublayers=False) if not p.stop_gradient]

    def set_value(self, p, array):
        p.set_value(np.ascontiguousarray(array))

    def optimizer(self, kind, ps, lr, weight_decay, momentum):
        o = self.module.optimizer
        if kind == "adam":
            return o.Adam(learning_rate=lr, parameters=ps)
        if kind == "adamw":
            return o.AdamW(learning_rate=lr, parameters=ps, weight_decay=weight_decay)
        if kind == "momentum":
            return o.Momentum(learning_rate=lr, momentum=momentum, parameters=ps)
        return o.SGD(learning_rate=lr, parameters=ps)

    def zero(self, opt):
        opt.clear_grad(False)

    def compiled(self, model):
        return self.module.jit.to_static(model)
