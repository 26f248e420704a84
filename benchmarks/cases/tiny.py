"""Cost of a call: tensors so small (4x4) that arithmetic is free.

Same format as ops.py.  Every case runs without gradient recording and,
where `record` says so, with it (the inputs require gradients; no backward pass
unless the case runs one itself).  With `stmt`, the text is statements that set r.
"""

CASES = []
S = ("randn", "4,4")


def case(name, inputs, p, t, record=True, plain=True, stmt=False, setup_p="", setup_t="", check="close", note=""):
    CASES.append(dict(name=name, family="tiny", inputs=inputs, p=p, t=t, record=record, plain=plain, stmt=stmt,
                      setup_p=setup_p, setup_t=setup_t, check=check, tol=1e-4, note=note, small={}, grad="", bf16=False))


case("add", [S, S], "a + b", "a + b")
case("add_function", [S, S], "P.add(a, b)", "T.add(a, b)")
case("add_scalar", [S], "a + 1.0", "a + 1.0")
case("mul", [S, S], "a * b", "a * b")
case("mul_inplace", [S, ("full", "4,4", 1.0, "float32")], "a.multiply_(b)", "a.mul_(b)", record=False)
case("chain_of_four", [S, S], "(a + b) * a - b", "(a + b) * a - b")
case("matmul", [S, S], "P.matmul(a, b)", "T.matmul(a, b)")
case("matmul_operator", [S, S], "a @ b", "a @ b")
case("sum", [S], "P.sum(a)", "T.sum(a)")
case("sum_axis", [S], "P.sum(a, axis=1)", "T.sum(a, 1)")
case("mean_method", [S], "a.mean()", "a.mean()")
case("reshape", [S], "P.reshape(a, [2, 8])", "T.reshape(a, [2, 8])")
case("slice", [S], "a[1:3]", "a[1:3]")
case("slice_2d", [S], "a[1:3, ::2]", "a[1:3, ::2]")
case("getitem_row", [S], "a[1]", "a[1]")
case("getitem_scalar", [S], "a[1, 2]", "a[1, 2]")
case("setitem_row", [S, ("randn", "4")], "a[1] = b; r = a", "a[1] = b; r = a", record=False, stmt=True)
case("relu", [S], "PF.relu(a)", "TF.relu(a)")
case("exp", [S], "P.exp(a)", "T.exp(a)")
case("softmax", [S], "PF.softmax(a)", "TF.softmax(a, -1)")
case("concat_3", [S, S, S], "P.concat([a, b, c])", "T.cat([a, b, c])")
case("transpose", [S], "P.transpose(a, [1, 0])", "T.transpose(a, 0, 1)")
case("unsqueeze", [S], "P.unsqueeze(a, 0)", "T.unsqueeze(a, 0)")
case("split_2", [S], "P.split(a, 2)", "T.split(a, 2)")
case("cast", [S], "P.cast(a, 'float64')", "a.to(T.float64)")
case("compare", [S, S], "a > b", "a > b", record=False)
case("zeros", [], "P.zeros([4, 4])", "T.zeros([4, 4])", record=False)
case("full", [], "P.full([4, 4], 0.5)", "T.full([4, 4], 0.5)", record=False)
case("arange", [], "P.arange(16)", "T.arange(16)", record=False)
case("randn", [], "P.randn([4, 4])", "T.randn([4, 4])", record=False, check="random")
case("tensor_from_list", [], "P.to_tensor([1.0, 2.0, 3.0, 4.0])", "T.tensor([1.0, 2.0, 3.0, 4.0])", record=False)
case("item", [("randn", "")], "a.item()", "a.item()", record=False)
case("float_of_tensor", [("randn", "")], "float(a)", "float(a)", record=False)
case("numpy", [S], "a.numpy()", "a.numpy()", record=False, note="Paddle copies, torch shares memory")
case("shape", [S], "a.shape", "a.shape", record=False)
case("detach", [S], "a.detach()", "a.detach()")
case("linear_layer", [S, S, ("randn", "4")], "m(a)", "m(a)",
     setup_p="m = P.nn.Linear(4, 4)\nm.weight.set_value(b)\nm.bias.set_value(c)\n"
             "for q in m.parameters():\n    q.stop_gradient = not record",
     setup_t="m = T.nn.Linear(4, 4)\nm.weight.data.copy_(b.t())\nm.bias.data.copy_(c)\n"
             "for q in m.parameters():\n    q.requires_grad_(record)")
case("layer_norm", [S, ("uniform", "4"), ("randn", "4")], "PF.layer_norm(a, [4], b, c)", "TF.layer_norm(a, [4], b, c)")
case("backward_of_sum", [S], "r = (a * a).sum(); r.backward(); a.grad.data_ptr(); a.clear_gradient(False)",
     "r = (a * a).sum(); r.backward(); a.grad.data_ptr(); a.grad = None", plain=False, stmt=True)

_mlp = [("randn", "1,16"), ("randn", "16,16"), ("randn", "16"), ("randn", "16,16"), ("randn", "16"), ("randn", "16,16"), ("randn", "16")]
_mlp_p = ("L = P.nn.Linear\nm = P.nn.Sequential(L(16, 16), P.nn.ReLU(), L(16, 16), P.nn.ReLU(), L(16, 16))\n"
          "ps = list(m.parameters())\nfor q, w in zip(ps, [b, c, d, e, f, g]):\n    q.set_value(w)\n    q.stop_gradient = not record")
_mlp_t = ("L = T.nn.Linear\nm = T.nn.Sequential(L(16, 16), T.nn.ReLU(), L(16, 16), T.nn.ReLU(), L(16, 16))\n"
          "ps = list(m.parameters())\nfor q, w in zip(ps, [b, c, d, e, f, g]):\n"
          "    q.data.copy_(w.t() if w.dim() == 2 else w)\n    q.requires_grad_(record)")
case("mlp_forward", _mlp, "m(a)", "m(a)", setup_p=_mlp_p, setup_t=_mlp_t)
case("mlp_forward_backward", _mlp,
     "r = m(a).sum(); r.backward()\nfor q in ps:\n    q.grad.data_ptr(); q.clear_gradient(False)",
     "r = m(a).sum(); r.backward()\nfor q in ps:\n    q.grad.data_ptr(); q.grad = None",
     plain=False, stmt=True, setup_p=_mlp_p, setup_t=_mlp_t)
case("mlp_sgd_step", _mlp,
     "r = m(a).sum(); r.backward(); opt.step(); opt.clear_grad(False)",
     "r = m(a).sum(); r.backward(); opt.step(); opt.zero_grad(set_to_none=True)",
     plain=False, stmt=True,
     setup_p=_mlp_p + "\nopt = P.optimizer.SGD(learning_rate=0.0, parameters=ps)",
     setup_t=_mlp_t + "\nopt = T.optim.SGD(ps, lr=0.0)")

NAMES = {c["name"]: c for c in CASES}
