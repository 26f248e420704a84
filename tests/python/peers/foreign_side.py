"""What other frameworks compute: runs in their environment. `foreign_side.py KIND IN.npz OUT.npz FILES...`; inputs are x0, x1, ..."""

import sys

import numpy as np


def caffe(inputs, prototxt, weights):
    import cv2

    net = cv2.dnn.readNetFromCaffe(prototxt, weights)
    net.setInput(inputs[0])
    return [net.forward()]


def tflite(inputs, path):
    from ai_edge_litert.interpreter import Interpreter

    net = Interpreter(path)
    for detail, array in zip(net.get_input_details(), inputs):
        net.resize_tensor_input(detail["index"], array.shape)
    net.allocate_tensors()
    for detail, array in zip(net.get_input_details(), inputs):
        net.set_tensor(detail["index"], array)
    net.invoke()
    return [net.get_tensor(detail["index"]) for detail in net.get_output_details()]


def torch(inputs, path):
    import torch

    def flat(value, name):
        if isinstance(value, torch.Tensor):
            value = value.detach()
            yield name, (value.float() if value.dtype == torch.bfloat16 else value).numpy()
        elif isinstance(value, dict):
            for key, item in value.items():
                yield from flat(item, f"{name}/{key}")
        elif isinstance(value, (list, tuple)):
            for key, item in enumerate(value):
                yield from flat(item, f"{name}/{key}")

    return dict(flat(torch.load(path, map_location="cpu", weights_only=True), ""))


def gguf(inputs, path):
    from gguf import GGUFReader, dequantize

    return {t.name: dequantize(t.data, t.tensor_type).reshape(t.shape[::-1]) for t in GGUFReader(path).tensors}


def write_gguf(inputs, source, kind, target):
    """Writes a safetensors file as GGUF, its matrices in blocks of this kind; returns what the blocks stand for."""
    from gguf import GGMLQuantizationType, GGUFWriter
    from gguf.quants import quantize

    writer = GGUFWriter(target, "bert")
    for name, array in safetensors(inputs, source).items():
        if array.dtype.kind != "f":
            continue
        plain = array.ndim < 2 or array.shape[-1] % 32
        form = GGMLQuantizationType.F32 if plain else GGMLQuantizationType[kind]
        writer.add_tensor(name, quantize(array.astype("float32"), form), raw_dtype=form)
    for write in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file, writer.close):
        write()
    return gguf(inputs, target)


def safetensors(inputs, path):
    from safetensors.numpy import load_file

    return load_file(path)


def onnx(inputs, path):
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, {port.name: array for port, array in zip(session.get_inputs(), inputs)})


def paddle(inputs, program, parameters):
    from paddle import inference

    config = inference.Config(program, parameters)
    config.disable_gpu()
    config.disable_mkldnn()
    predictor = inference.create_predictor(config)
    for name, array in zip(predictor.get_input_names(), inputs):
        predictor.get_input_handle(name).copy_from_cpu(array)
    predictor.run()
    return [predictor.get_output_handle(name).copy_to_cpu() for name in predictor.get_output_names()]


def saved_model(inputs, path, *names):
    import tensorflow as tf

    with tf.Graph().as_default() as graph, tf.compat.v1.Session(graph=graph) as session:
        signature = tf.compat.v1.saved_model.load(session, ["serve"], path).signature_def["serving_default"]
        feeds = {signature.inputs[name].name: array for name, array in zip(names, inputs)}
        return session.run([signature.outputs[name].name for name in names[len(inputs):]], feeds)


def add_prelu(graph_def, node):
    """TensorFlow has no such node: max(x, 0) + slope * min(x, 0)."""
    x, slope = node.input[:2]
    for name, op, inputs in (("positive", "Relu", [x]), ("negated", "Neg", [x]), ("below", "Relu", [f"{node.name}/negated"]),
                             ("scaled", "Mul", [f"{node.name}/below", slope])):
        part = graph_def.node.add(name=f"{node.name}/{name}", op=op, input=inputs)
        part.attr["T"].type = 1
    node.op = "Sub"
    node.attr["T"].type = 1
    node.input[:] = [f"{node.name}/positive", f"{node.name}/scaled"]


def web_weights(model, path):
    import os

    weights = {}
    for group in model["weightsManifest"]:
        content = b"".join(open(os.path.join(os.path.dirname(path), part), "rb").read() for part in group["paths"])
        for entry in group["weights"]:
            packed = entry.get("quantization")
            stored = np.dtype(packed["dtype"] if packed else entry["dtype"])
            count = int(np.prod(entry["shape"])) * stored.itemsize
            array = np.frombuffer(content[:count], stored).reshape(entry["shape"])
            content = content[count:]
            if packed and stored.kind == "u":
                array = array * packed["scale"] + packed["min"]
            weights[entry["name"]] = array.astype(entry["dtype"])
    return weights


def web_model(inputs, path, *names):
    """A graph model of TensorFlow.js as a GraphDef. Fused nodes that TensorFlow lacks become several."""
    import json
    import os

    os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"  # some of these networks crash its kernels
    import tensorflow as tf
    from google.protobuf import json_format

    with open(path) as file:
        model = json.load(file)
    weights = web_weights(model, path)
    graph_def = json_format.ParseDict(model["modelTopology"], tf.compat.v1.GraphDef(), ignore_unknown_fields=True)
    functions = [node for f in graph_def.library.function for node in f.node_def]
    for node in [*graph_def.node, *functions]:
        if node.op == "Const":
            node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(weights[node.name]))
        elif node.op == "FusedDepthwiseConv2dNative" or node.op.startswith("_Fused"):
            unfuse(graph_def, node)
        if node.op == "Prelu":
            add_prelu(graph_def, node)
    return run_graph(inputs, graph_def, *names)


def unfuse(graph_def, node):
    steps = [step.decode() for step in node.attr["fused_ops"].list.s]
    plain = {"FusedDepthwiseConv2dNative": "DepthwiseConv2dNative", "_FusedConv2D": "Conv2D", "_FusedMatMul": "MatMul"}[node.op]
    arguments = list(node.input)
    first = graph_def.node.add(name=f"{node.name}/plain", op=plain, input=arguments[:2])
    for key in ("T", "strides", "padding", "dilations", "data_format", "explicit_paddings", "transpose_a", "transpose_b"):
        if key in node.attr and not (key == "explicit_paddings" and plain == "MatMul"):
            first.attr[key].CopyFrom(node.attr[key])
    before, rest = first.name, arguments[2:]
    for number, step in enumerate(steps):
        last = number == len(steps) - 1
        inputs = [before] + ([rest.pop(0)] if step in ("BiasAdd", "Prelu") else [])
        target = node if last else graph_def.node.add(name=f"{node.name}/{step}")
        if last:
            for key in list(node.attr):
                if key != "T" and not (step == "LeakyRelu" and key == "alpha"):
                    del node.attr[key]
        target.op = step
        target.input[:] = inputs
        target.attr["T"].type = 1
        before = target.name


def keras_file(inputs, path):
    """A `.keras` or `.h5` file: by Keras 3, or by Keras 2 what Keras 3 cannot read."""
    import os

    os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
    import keras
    import tf_keras

    given = inputs if len(inputs) > 1 else inputs[0]
    try:
        made = keras.models.load_model(path, compile=False)(given, training=False)
    except Exception:
        made = tf_keras.models.load_model(path, compile=False)(given, training=False)
    return [np.array(array) for array in (made if isinstance(made, (list, tuple)) else [made])]


def write_saved_model(inputs, path, folder):
    """Writes a `.h5` file as a SavedModel; returns what that computes."""
    import tensorflow as tf
    import tf_keras

    tf.saved_model.save(tf_keras.models.load_model(path, compile=False), folder)
    signature = tf.saved_model.load(folder).signatures["serving_default"]
    _, named = signature.structured_input_signature
    made = signature(**{name: tf.constant(array) for name, array in zip(named, inputs)})
    return {f"given{i}": array for i, array in enumerate(inputs)} | {f"y{i}": made[name].numpy() for i, name in enumerate(sorted(made))}


def write_int8(inputs, path, target):
    """Writes a `.h5` file as TFLite in integers; returns its inputs and outputs, which are integers, too."""
    import tensorflow as tf
    import tf_keras

    chance = np.random.default_rng(1)
    converter = tf.lite.TFLiteConverter.from_keras_model(tf_keras.models.load_model(path, compile=False))
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([chance.uniform(0, 1, array.shape).astype("float32") for array in inputs] for _ in range(20))
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = converter.inference_output_type = tf.int8
    with open(target, "wb") as file:
        file.write(converter.convert())
    net = tf.lite.Interpreter(target)
    given = []
    for detail, array in zip(net.get_input_details(), inputs):
        scale, zero = detail["quantization"]
        given.append(np.clip(np.round(array / scale + zero), -128, 127).astype("int8"))
    return {f"given{i}": array for i, array in enumerate(given)} | {f"y{i}": array for i, array in enumerate(tflite(given, target))}


def web_layers(inputs, path):
    """A model of layers of TensorFlow.js as one of Keras 2, with the weights of its files."""
    import json
    import os

    os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
    import tensorflow as tf
    import tf_keras

    class MultiplyBeta(tf_keras.layers.Layer):
        def __init__(self, beta=0.2, **rest):
            super().__init__(**rest)
            self.beta = beta

        def call(self, x):
            return x * self.beta

    def shuffle(scale):
        class PixelShuffle(tf_keras.layers.Layer):
            def __init__(self, scale=None, **rest):
                super().__init__(**rest)

            def call(self, x):
                return tf.nn.depth_to_space(x, scale)

        return PixelShuffle

    with open(path) as file:
        model = json.load(file)
    weights = web_weights(model, path)
    classes = {"MultiplyBeta": MultiplyBeta} | {f"PixelShuffle{scale}x": shuffle(scale) for scale in (2, 3, 4, 8)}
    topology = model["modelTopology"]
    network = tf_keras.models.model_from_json(json.dumps(topology.get("model_config", topology)), custom_objects=classes)
    for layer in network.layers:
        layer.set_weights([weights[variable.name.rsplit(":", 1)[0]] for variable in layer.weights])
    return [network(inputs[0], training=False).numpy()]


def keras_network(name):
    import keras
    from keras import layers

    if name == "recurrent":
        x = words = layers.Input((20,), dtype="int32")
        x = layers.Bidirectional(layers.LSTM(8, return_sequences=True))(layers.Embedding(100, 16, mask_zero=True)(x))
        return keras.Model(words, layers.Dense(3, activation="softmax")(layers.GRU(8)(x)))
    if name == "attention":
        rows = layers.Input((12, 16))
        x = layers.LayerNormalization()(layers.MultiHeadAttention(2, 8)(rows, rows) + rows)
        return keras.Model(rows, layers.Dense(4)(layers.GlobalAveragePooling1D()(layers.Dense(32, activation="gelu")(x))))
    return getattr(keras.applications, name)(input_shape=(224, 224, 3), weights=None, classifier_activation=None)


def keras_export(inputs, name, folder):
    """Writes a network with random weights as a SavedModel and as a frozen graph; returns what it computes."""
    import keras
    import tensorflow as tf
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    keras.utils.set_random_seed(0)
    network = keras_network(name)
    for weight in network.weights:  # or the numbers of an untrained network would vanish on their way
        if weight.path.endswith("moving_variance"):
            weight.assign(np.random.default_rng(2).uniform(0.2, 0.5, weight.shape))
    network.export(folder, verbose=False)
    spec = tf.TensorSpec(network.inputs[0].shape, network.inputs[0].dtype, name="x")
    traced = tf.function(lambda x: network(x, training=False)).get_concrete_function(spec)
    frozen = convert_variables_to_constants_v2(traced, lower_control_flow=False)
    with open(folder + ".pb", "wb") as file:
        file.write(frozen.graph.as_graph_def().SerializeToString())
    return [network(inputs[0], training=False).numpy()]


def tensorflow(inputs, path, *names):
    import tensorflow as tf

    graph_def = tf.compat.v1.GraphDef()
    with open(path, "rb") as file:
        graph_def.ParseFromString(file.read())
    return run_graph(inputs, graph_def, *names)


def run_graph(inputs, graph_def, *names):
    import tensorflow as tf

    half = len(inputs)
    with tf.Graph().as_default() as graph, tf.compat.v1.Session(graph=graph) as session:
        tf.import_graph_def(graph_def, name="")
        feeds = {name if ":" in name else f"{name}:0": array for name, array in zip(names[:half], inputs)}
        return session.run([name if ":" in name else f"{name}:0" for name in names[half:]], feeds)


def main():
    kind, given, out, *files = sys.argv[1:]
    arrays = np.load(given)
    results = globals()[kind]([arrays[f"x{i}"] for i in range(len(arrays.files))], *files)
    np.savez(out, **(results if isinstance(results, dict) else {f"y{i}": array for i, array in enumerate(results)}))


main()
