"""Methods, by what they are called on. In the rows ``{self}`` is that."""

from __future__ import annotations

# What only a tensor, optimiser or the like of PyTorch has: the method is changed wherever it is called.
CERTAIN = """
cuda = {self}
numel = {self}.size
nelement = {self}.size
reshape_as(other) = {self}.reshape({other}.shape)
addcmul_(tensor1 tensor2 | value) = {self}.add_({tensor1} * {tensor2} * {value:1})
addcdiv_(tensor1 tensor2 | value) = {self}.add_({tensor1} / {tensor2} * {value:1})
new_tensor(data) = oar.to_tensor({data}, dtype={self}.dtype)
get_last_lr = [{self}.last_lr]
load_state_dict[state_dict:state](state_dict strict assign!)
load_state_dict(`state_dict~oar.interop.torch_state({state_dict}, {self})` strict assign!)
share_memory = {self}
share_memory_ = {self}
pin_memory = {self}
"""

# The same, when it is called on a tensor; where that is not known, with `dim` only.
TENSOR = """
max[0] -> max
max(*) = oar.compat.max({self}, {*})
min[0] -> min
min(*) = oar.compat.min({self}, {*})
sort(*) = oar.compat.sort({self}, {*})
split(*) = oar.compat.split({self}, {*})
median[0] = oar.compat.median({self})
median(*) = oar.compat.median({self}, {*})
unique(*) = oar.compat.unique({self}, {*})
equal(*) = oar.compat.equal({self}, {*})
slogdet = oar.compat.slogdet({self})
type[0] -> type ; Oar's `type` is no method; compare `dtype`
type(dtype) -> astype
to(* non_blocking! copy!)
backward(gradient=grad_tensor retain_graph | create_graph? inputs?)
"""
OPTIMIZER = """
zero_grad(set_to_none!) -> clear_grad
load_state_dict -> set_state_dict
add_param_group(param_group) ; Oar's optimisers take all parameters when they are made
"""
SCHEDULE = """
load_state_dict -> set_state_dict
get_last_lr = [{self}.last_lr]
"""
MODULE = """
load_state_dict[state_dict:state](state_dict strict assign!)
load_state_dict(`state_dict~oar.interop.torch_state({state_dict}, {self})` strict assign!)
to(* non_blocking!)
cuda = {self}
"""
SCALER = """
get_scale = float({self}.state_dict()["scale"][0])
load_state_dict -> load_state_dict
"""

# Attributes of modules that are called differently.
MODULE_ATTRIBUTES = {"running_mean": "_mean", "running_var": "_variance"}
# Methods of tensors that Oar does not have, and what to do instead.
ADVICE = {
    "retain_grad": "Oar keeps the gradients of leaves only; call x.register_hook(...) to see others",
    "index_copy_": "write x[index] = values",
    "storage": "Oar's tensors share memory by views; there is no storage",
    "map_": "use a function of whole tensors",
    "apply_": "use a function of whole tensors",
    "register_full_backward_hook": "call register_hook of the output's tensor in a forward hook",
    "pack_padded_sequence": "pass sequence_length to the layer",
}
