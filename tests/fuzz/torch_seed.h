// The two texts of an archive of torch.export: a convolution, writes in place, parts, sizes. tests/python/pt2_files.py wrote them.
#pragma once

// clang-format off
inline constexpr char kTorchModelSeed[] =
    R"json({"graph_module":{"graph":{"inputs":[],"outputs":[],)json"
    R"json("nodes":[{"target":"torch.ops.aten.sym_size.int","inputs":[{"name":"self",)json"
    R"json("arg":{"as_tensor":{"name":"x"}}},{"name":"dim","arg":{"as_int":0}}],)json"
    R"json("outputs":[{"as_sym_int":{"as_name":"sym_n"}}],"name":"sym_n"},)json"
    R"json({"target":"torch.ops.aten.conv2d.default","inputs":[{"name":"input",)json"
    R"json("arg":{"as_tensor":{"name":"x"}}},{"name":"weight","arg":{"as_tensor":{"name":"w_w"}}},)json"
    R"json({"name":"stride","arg":{"as_ints":[1,1]}}],"outputs":[{"as_tensor":{"name":"c"}}],"name":"c"},)json"
    R"json({"target":"torch.ops.aten.relu_.default","inputs":[{"name":"self",)json"
    R"json("arg":{"as_tensor":{"name":"c"}}}],"outputs":[{"as_tensor":{"name":"r"}}],"name":"r"},)json"
    R"json({"target":"torch.ops.aten.split.Tensor","inputs":[{"name":"self",)json"
    R"json("arg":{"as_tensor":{"name":"r"}}},{"name":"split_size","arg":{"as_int":1}},{"name":"dim",)json"
    R"json("arg":{"as_int":3}}],"outputs":[{"as_tensors":[{"name":"a"},{"name":"b"}]}],"name":"a"},)json"
    R"json({"target":"torch.ops.aten.cat.default","inputs":[{"name":"tensors",)json"
    R"json("arg":{"as_tensors":[{"name":"a"},{"name":"b"}]}},{"name":"dim","arg":{"as_int":-1}}],)json"
    R"json("outputs":[{"as_tensor":{"name":"j"}}],"name":"j"},{"target":"torch.ops.aten.view.default",)json"
    R"json("inputs":[{"name":"self","arg":{"as_tensor":{"name":"j"}}},{"name":"size",)json"
    R"json("arg":{"as_sym_ints":[{"as_name":"sym_n"},{"as_int":-1}]}}],)json"
    R"json("outputs":[{"as_tensor":{"name":"v"}}],"name":"v"},{"target":"torch.ops.aten.slice.Tensor",)json"
    R"json("inputs":[{"name":"self","arg":{"as_tensor":{"name":"v"}}},{"name":"dim","arg":{"as_int":1}},)json"
    R"json({"name":"start","arg":{"as_int":0}},{"name":"end","arg":{"as_int":9}}],)json"
    R"json("outputs":[{"as_tensor":{"name":"s"}}],"name":"s"},{"target":"torch.ops.aten.mean.dim",)json"
    R"json("inputs":[{"name":"self","arg":{"as_tensor":{"name":"s"}}},{"name":"dim",)json"
    R"json("arg":{"as_ints":[-1]}},{"name":"keepdim","arg":{"as_bool":true}}],)json"
    R"json("outputs":[{"as_tensor":{"name":"m"}}],"name":"m"}],"tensor_values":{"x":{"dtype":7,)json"
    R"json("sizes":[{"as_expr":{"expr_str":"s0","hint":{"as_int":2}}},{"as_int":2},{"as_int":2},)json"
    R"json({"as_int":2}],"requires_grad":false,"device":{"type":"cpu","index":null},)json"
    R"json("strides":[{"as_int":8},{"as_int":4},{"as_int":2},{"as_int":1}],"storage_offset":{"as_int":0},)json"
    R"json("layout":7}},"sym_int_values":{},"sym_bool_values":{}},)json"
    R"json("signature":{"input_specs":[{"buffer":{"arg":{"name":"w_w"},"buffer_name":"w",)json"
    R"json("persistent":true}},{"user_input":{"arg":{"as_tensor":{"name":"x"}}}}],)json"
    R"json("output_specs":[{"user_output":{"arg":{"as_tensor":{"name":"m"}}}},)json"
    R"json({"user_output":{"arg":{"as_sym_int":{"as_name":"sym_n"}}}}]},"module_call_graph":[{"fqn":"",)json"
    R"json("signature":{"inputs":[],"outputs":[],"in_spec":"","out_spec":"[1, {\"type\": \"builtins.dict\",)json"
    R"json( \"context\": \"[\\\"out\\\", \\\"n\\\"]\", \"children_spec\": [{\"type\": null,)json"
    R"json( \"context\": null, \"children_spec\": []}, {\"type\": null, \"context\": null,)json"
    R"json( \"children_spec\": []}]}]","forward_arg_names":[]}}],"metadata":{}},)json"
    R"json("opset_version":{"aten":10},"range_constraints":{},"schema_version":{"major":8,"minor":20},)json"
    R"json("torch_version":"2.15.0"})json";
inline constexpr char kTorchWeightsSeed[] =
    R"json({"config":{"w":{"path_name":"weight_0","is_param":false,"use_pickle":false,)json"
    R"json("tensor_meta":{"dtype":7,"sizes":[{"as_int":1},{"as_int":2},{"as_int":1},{"as_int":1}],)json"
    R"json("requires_grad":false,"device":{"type":"cpu","index":null},"strides":[{"as_int":2},{"as_int":1},)json"
    R"json({"as_int":1},{"as_int":1}],"storage_offset":{"as_int":0},"layout":7}}}})json";
// clang-format on
