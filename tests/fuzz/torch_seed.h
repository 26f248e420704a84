// The two texts of an archive of torch.export: a convolution, writes in place, parts, sizes. tests/python/pt2_files.py wrote them.
#pragma once

// clang-format off
inline constexpr char kTorchModelSeed[] =
    R"json({"graph_module":{"graph":{"inputs":[],"outputs":[],"nodes":[{"target":"torch.ops.aten.sym_size.int",)json"
    R"json("inputs":[{"name":"self","arg":{"as_tensor":{"name":"x"}}},{"name":"dim","arg":{"as_int":0}}],"outpu)json"
    R"json(ts":[{"as_sym_int":{"as_name":"sym_n"}}],"name":"sym_n"},{"target":"torch.ops.aten.conv2d.default",")json"
    R"json(inputs":[{"name":"input","arg":{"as_tensor":{"name":"x"}}},{"name":"weight","arg":{"as_tensor":{"nam)json"
    R"json(e":"w_w"}}},{"name":"stride","arg":{"as_ints":[1,1]}}],"outputs":[{"as_tensor":{"name":"c"}}],"name")json"
    R"json(:"c"},{"target":"torch.ops.aten.relu_.default","inputs":[{"name":"self","arg":{"as_tensor":{"name":")json"
    R"json(c"}}}],"outputs":[{"as_tensor":{"name":"r"}}],"name":"r"},{"target":"torch.ops.aten.split.Tensor","i)json"
    R"json(nputs":[{"name":"self","arg":{"as_tensor":{"name":"r"}}},{"name":"split_size","arg":{"as_int":1}},{")json"
    R"json(name":"dim","arg":{"as_int":3}}],"outputs":[{"as_tensors":[{"name":"a"},{"name":"b"}]}],"name":"a"},)json"
    R"json({"target":"torch.ops.aten.cat.default","inputs":[{"name":"tensors","arg":{"as_tensors":[{"name":"a"})json"
    R"json(,{"name":"b"}]}},{"name":"dim","arg":{"as_int":-1}}],"outputs":[{"as_tensor":{"name":"j"}}],"name":")json"
    R"json(j"},{"target":"torch.ops.aten.view.default","inputs":[{"name":"self","arg":{"as_tensor":{"name":"j"})json"
    R"json(}},{"name":"size","arg":{"as_sym_ints":[{"as_name":"sym_n"},{"as_int":-1}]}}],"outputs":[{"as_tensor)json"
    R"json(":{"name":"v"}}],"name":"v"},{"target":"torch.ops.aten.slice.Tensor","inputs":[{"name":"self","arg":)json"
    R"json({"as_tensor":{"name":"v"}}},{"name":"dim","arg":{"as_int":1}},{"name":"start","arg":{"as_int":0}},{")json"
    R"json(name":"end","arg":{"as_int":9}}],"outputs":[{"as_tensor":{"name":"s"}}],"name":"s"},{"target":"torch)json"
    R"json(.ops.aten.mean.dim","inputs":[{"name":"self","arg":{"as_tensor":{"name":"s"}}},{"name":"dim","arg":{)json"
    R"json("as_ints":[-1]}},{"name":"keepdim","arg":{"as_bool":true}}],"outputs":[{"as_tensor":{"name":"m"}}],")json"
    R"json(name":"m"}],"tensor_values":{"x":{"dtype":7,"sizes":[{"as_expr":{"expr_str":"s0","hint":{"as_int":2})json"
    R"json(}},{"as_int":2},{"as_int":2},{"as_int":2}],"requires_grad":false,"device":{"type":"cpu","index":null)json"
    R"json(},"strides":[{"as_int":8},{"as_int":4},{"as_int":2},{"as_int":1}],"storage_offset":{"as_int":0},"lay)json"
    R"json(out":7}},"sym_int_values":{},"sym_bool_values":{}},"signature":{"input_specs":[{"buffer":{"arg":{"na)json"
    R"json(me":"w_w"},"buffer_name":"w","persistent":true}},{"user_input":{"arg":{"as_tensor":{"name":"x"}}}}],)json"
    R"json("output_specs":[{"user_output":{"arg":{"as_tensor":{"name":"m"}}}},{"user_output":{"arg":{"as_sym_in)json"
    R"json(t":{"as_name":"sym_n"}}}}]},"module_call_graph":[{"fqn":"","signature":{"inputs":[],"outputs":[],"in)json"
    R"json(_spec":"","out_spec":"[1, {\"type\": \"builtins.dict\", \"context\": \"[\\\"out\\\", \\\"n\\\"]\", \)json"
    R"json("children_spec\": [{\"type\": null, \"context\": null, \"children_spec\": []}, {\"type\": null, \"co)json"
    R"json(ntext\": null, \"children_spec\": []}]}]","forward_arg_names":[]}}],"metadata":{}},"opset_version":{)json"
    R"json("aten":10},"range_constraints":{},"schema_version":{"major":8,"minor":20},"torch_version":"2.15.0"})json";
inline constexpr char kTorchWeightsSeed[] =
    R"json({"config":{"w":{"path_name":"weight_0","is_param":false,"use_pickle":false,"tensor_meta":{"dtype":7,)json"
    R"json("sizes":[{"as_int":1},{"as_int":2},{"as_int":1},{"as_int":1}],"requires_grad":false,"device":{"type")json"
    R"json(:"cpu","index":null},"strides":[{"as_int":2},{"as_int":1},{"as_int":1},{"as_int":1}],"storage_offset)json"
    R"json(":{"as_int":0},"layout":7}}}})json";
// clang-format on
