"""Makes `keras_models.zip`: small networks of Keras 3 and Keras 2 in their formats, with what Keras computes.

Run it with a Python that has tensorflow-cpu and tf_keras: `python make_keras_models.py`. For each model there are its files and one .npz
with inputs x0, x1, ... and outputs y0, y1, ...
"""

import os
import tempfile
import zipfile
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np


def randomise(model, seed):
    """Weights that are neither zeros nor ones; variances stay positive."""
    chance = np.random.default_rng(seed)
    for layer in model.layers:
        if type(layer).__name__ == "Normalization":
            continue
        weights = []
        for old in layer.get_weights():
            new = chance.uniform(-0.5, 0.5, old.shape)
            weights.append((np.abs(new) + 0.5 if old.size and (old > 0).all() else new).astype(old.dtype))
        layer.set_weights(weights)


def convolutions(k, L):
    rows, image, volume = L.Input((9, 4)), L.Input((8, 7, 4)), L.Input((5, 6, 5, 2))
    outputs = [
        L.Conv1D(3, 3, padding="causal", dilation_rate=2, activation="relu")(rows), L.Conv1D(4, 3, strides=2, padding="same", groups=2)(rows),
        L.Conv2D(3, (3, 2), strides=(2, 1), padding="same", use_bias=False)(image), L.Conv2D(3, 3, dilation_rate=2, activation="tanh")(image),
        L.Conv3D(3, 2, strides=2, padding="same")(volume), L.DepthwiseConv2D(3, depth_multiplier=2, padding="same", strides=2)(image),
        L.DepthwiseConv1D(3, depth_multiplier=2)(rows), L.SeparableConv1D(5, 3, depth_multiplier=2)(rows),
        L.SeparableConv2D(5, 3, padding="same", activation="sigmoid")(image), L.Conv1DTranspose(3, 3, strides=2, padding="same")(rows),
        L.Conv1DTranspose(3, 2, strides=3)(rows), L.Conv2DTranspose(3, 3, strides=2, padding="same")(image), L.Conv2DTranspose(3, (2, 4), strides=(3, 2))(image),
        L.Conv2DTranspose(2, 3, strides=2, padding="same", output_padding=1)(image), L.Conv3DTranspose(2, 2, strides=2)(volume),
    ]
    return k.Model([rows, image, volume], outputs)


def pooling(k, L):
    rows, image, volume = L.Input((9, 4)), L.Input((8, 7, 4)), L.Input((5, 6, 5, 2))
    outputs = [
        L.MaxPooling1D(3, 2, padding="same")(rows), L.AveragePooling1D(2)(rows), L.MaxPooling2D((2, 3), padding="same")(image),
        L.AveragePooling2D(3, 2, padding="same")(image), L.AveragePooling2D(2)(image), L.MaxPooling3D(2)(volume), L.AveragePooling3D(2, 1)(volume),
        L.GlobalAveragePooling1D()(rows), L.GlobalMaxPooling1D()(rows), L.GlobalAveragePooling2D(keepdims=True)(image), L.GlobalMaxPooling2D()(image),
        L.GlobalAveragePooling3D()(volume), L.GlobalMaxPooling3D()(volume),
    ]
    return k.Model([rows, image, volume], outputs)


def shapes(k, L):
    rows, image, volume = L.Input((6, 4)), L.Input((4, 6, 3)), L.Input((3, 4, 2, 2))
    outputs = [
        L.Flatten()(image), L.Reshape((-1, 9))(image), L.Permute((3, 1, 2))(image), L.RepeatVector(3)(L.Flatten()(rows)), L.ZeroPadding1D((1, 2))(rows),
        L.ZeroPadding2D(((1, 2), (0, 3)))(image), L.ZeroPadding2D((1, 2))(image), L.ZeroPadding3D(1)(volume), L.Cropping1D((1, 2))(rows),
        L.Cropping2D(((1, 0), (2, 1)))(image), L.Cropping3D(((1, 0), (1, 1), (0, 0)))(volume), L.UpSampling1D(2)(rows),
        L.UpSampling2D((2, 3))(image), L.UpSampling2D(2, interpolation="bilinear")(image), L.UpSampling3D((1, 2, 2))(volume), L.Dropout(0.5)(rows),
        L.SpatialDropout2D(0.5)(image), L.GaussianNoise(1.0)(rows), L.Activation("linear")(image),
    ]
    return k.Model([rows, image, volume], outputs)


def activations(k, L):
    x = L.Input((5, 4))
    names = ["relu", "sigmoid", "tanh", "softmax", "softplus", "softsign", "elu", "selu", "exponential", "hard_sigmoid", "swish", "gelu"]
    names += ["relu6", "leaky_relu", "mish", "log_softmax", "hard_silu", "celu", "glu", "squareplus", "hard_tanh", "soft_shrink", "hard_shrink", "tanh_shrink",
              "sparse_plus", "sparsemax", "log_sigmoid", "sparse_sigmoid"] if k.__version__ >= "3" else []
    outputs = [L.Activation(name)(x) for name in names]
    slope = {"negative_slope": 0.1} if k.__version__ >= "3" else {"alpha": 0.1}
    outputs += [L.ReLU(max_value=0.8, negative_slope=0.1, threshold=0.2)(x), L.ReLU(6.0)(x), L.LeakyReLU(**slope)(x), L.LeakyReLU()(x),
                L.PReLU(shared_axes=[1])(x), L.PReLU()(x), L.ELU(0.7)(x), L.Softmax(axis=1)(x), L.Dense(3, activation=L.ReLU(1.0) if k.__version__ >= "3" else "relu")(x)]
    return k.Model(x, outputs)


def normalisation(k, L):
    x, image = L.Input((5, 8)), L.Input((4, 3, 6))
    outputs = [
        L.BatchNormalization()(image), L.BatchNormalization(axis=1, scale=False, epsilon=0.1)(image), L.BatchNormalization(center=False)(x),
        L.LayerNormalization()(x), L.LayerNormalization(axis=[1, 2], epsilon=0.1)(image), L.LayerNormalization(center=False)(x), L.GroupNormalization(3)(image),
        L.GroupNormalization(2, axis=1)(image), L.GroupNormalization(-1)(image), L.UnitNormalization()(x), L.Normalization(mean=[0.5] * 8, variance=[2.0] * 8)(x),
    ]
    normalised = L.Normalization()
    normalised.adapt(np.random.default_rng(3).standard_normal((20, 5, 8)).astype("float32"))
    outputs.append(normalised(x))
    if k.__version__ >= "3":
        outputs += [L.RMSNormalization()(x), L.SpectralNormalization(L.Conv2D(2, 2))(image)]
    return k.Model([x, image], outputs)


def merging(k, L):
    a, b, row = L.Input((4, 6)), L.Input((4, 6)), L.Input((6,))
    outputs = [
        L.Add()([a, b, a]), L.Subtract()([a, b]), L.Multiply()([a, b]), L.Average()([a, b, b]), L.Maximum()([a, b]), L.Minimum()([a, b]),
        L.Concatenate()([a, b]), L.Concatenate(axis=1)([a, b]), L.Dot(axes=(1, 1))([a, b]), L.Dot(axes=2, normalize=True)([a, b]), L.Dot(axes=(2, 1))([a, row]),
        L.Dot(axes=1)([row, row]), L.Dense(3, activation="relu")(a), L.EinsumDense("abc,cd->abd", output_shape=(None, 5), bias_axes="d")(a),
    ]
    return k.Model([a, b, row], outputs)


def recurrent(k, L):
    x, maps = L.Input((6, 4)), L.Input((3, 5, 4, 2))
    three = k.__version__ >= "3"
    outputs = [
        L.LSTM(3)(x), L.LSTM(3, return_sequences=True, go_backwards=True)(x), *L.LSTM(3, return_state=True, unit_forget_bias=False)(x), L.GRU(3)(x),
        L.GRU(3, reset_after=False, return_sequences=True)(x), *L.GRU(3, return_state=True)(x), L.SimpleRNN(3)(x), L.SimpleRNN(3, activation="relu", use_bias=False)(x),
        L.LSTM(3, recurrent_activation="hard_sigmoid", activation="relu")(x), L.Bidirectional(L.LSTM(3, return_sequences=True))(x),
        L.Bidirectional(L.GRU(3), merge_mode="sum")(x), *L.Bidirectional(L.LSTM(2, return_state=True))(x), L.Bidirectional(L.SimpleRNN(3, return_sequences=True), merge_mode="ave")(x),
        L.RNN(L.LSTMCell(3))(x), L.RNN([L.GRUCell(3), L.GRUCell(2)] if not three else L.StackedRNNCells([L.GRUCell(3), L.GRUCell(2)]), return_sequences=True)(x),
        L.ConvLSTM2D(3, 3, padding="same", return_sequences=True)(maps), L.ConvLSTM2D(2, 2, strides=2)(maps), L.TimeDistributed(L.Dense(3, activation="relu"))(x),
        L.TimeDistributed(L.Conv2D(2, 2))(maps),
    ]
    state = L.Dense(3)(L.Flatten()(x))
    outputs.append(L.GRU(3)(x, initial_state=state))
    return k.Model([x, maps], outputs)


def masks(k, L):
    words, x = L.Input((6,), dtype="int32"), L.Input((6, 3))
    embedded = L.Embedding(7, 4, mask_zero=True)(words)
    masked = L.Masking(0.0)(x)
    outputs = [
        L.LSTM(3)(embedded), L.LSTM(3, return_sequences=True)(embedded), L.GRU(3)(masked), L.Bidirectional(L.GRU(3, return_sequences=True))(embedded),
        L.Bidirectional(L.LSTM(3))(L.Dropout(0.1)(L.Dense(4, activation="relu")(embedded))), L.GlobalAveragePooling1D()(embedded), L.SimpleRNN(2)(L.Concatenate()([embedded, masked])),
        L.TimeDistributed(L.Dense(2))(masked), L.MultiHeadAttention(2, 3)(embedded, embedded), L.Attention()([embedded, embedded]),
    ]
    return k.Model([words, x], outputs)


def attention(k, L):
    a, b = L.Input((5, 6)), L.Input((4, 6))
    outputs = [
        L.MultiHeadAttention(2, 3)(a, b), L.MultiHeadAttention(2, 3, value_dim=4, output_shape=5, use_bias=False)(a, b, b), L.Attention()([a, b]),
        L.Attention(use_scale=True, score_mode="concat")([a, b, b]), L.AdditiveAttention()([a, b]), L.MultiHeadAttention(3, 2)(a, a, use_causal_mask=True),
    ]
    if k.__version__ >= "3":
        outputs.append(L.GroupQueryAttention(3, 4, 2)(a, b))
    return k.Model([a, b], outputs)


def preparation(k, L):
    image, ids = L.Input((7, 6, 3)), L.Input((4,), dtype="int32")
    outputs = [
        L.Rescaling(1 / 127.5, offset=-1.0)(image), L.Resizing(4, 9)(image), L.Resizing(5, 5, interpolation="nearest")(image), L.CenterCrop(4, 3)(image),
        L.Resizing(3, 4, crop_to_aspect_ratio=True)(image), L.CategoryEncoding(7, output_mode="multi_hot")(ids), L.CategoryEncoding(7, output_mode="count")(ids),
        L.Discretization([-0.5, 0.0, 0.5])(image), L.RandomFlip()(image), L.RandomRotation(0.2)(image),
    ]
    return k.Model([image, ids], outputs)


def nested(k, L):
    """Models in models, a layer that is used twice, and names that occur twice."""
    def inner(name):
        return k.Sequential([L.Input((6,)), L.Dense(4, activation="relu", name="same"), L.BatchNormalization(), L.Dense(3, name="last")], name=name)

    core_in = L.Input((6,))
    core = k.Model(core_in, [L.Dense(3, name="same")(core_in), inner("inner")(core_in)], name="core")
    a, b = L.Input((6,), name="a"), L.Input((6,), name="b")
    shared = L.Dense(6, name="same")
    x, y = shared(a), shared(b)
    one, two = core(x)
    again, _ = core(y)
    return k.Model({"a": a, "b": b}, {"sum": L.Add()([one, two, again]), "inner": inner("other")(b), "many": L.TimeDistributed(inner("last"))(L.Reshape((1, 6))(a))})


def sequence(k, L):
    return k.Sequential([L.Input((8, 8, 3)), L.Conv2D(4, 3), L.BatchNormalization(), L.ReLU(), L.MaxPooling2D(2), L.Flatten(), L.Dense(5, activation="softmax")])


def functions(k, L):
    """Functions of keras.ops, or of TensorFlow, among the layers."""
    a, b = L.Input((8, 4)), L.Input((8, 4))
    if k.__version__ >= "3":
        ops = k.ops
        x = 1.0 - ops.concatenate([ops.mean(a, axis=1, keepdims=True) + 2.0 - b, b], axis=-1)
        outputs = [a[:, -1], a[:, 1:5:2, None, ...], ops.relu(ops.transpose(x, (0, 2, 1))), ops.where(a > 0.1, a, 0.0), ops.split(a, 2, axis=-1)[1], ops.stack([a, b], axis=1),
                   ops.einsum("abc,abd->acd", a, b), ops.matmul(a, ops.transpose(b, (0, 2, 1))), ops.clip(a, -0.2, 0.3), ops.reshape(a, (-1, 32)), ops.leaky_relu(a, 0.1),
                   ops.image.resize(ops.expand_dims(a, -1), (4, 4)), ops.softmax(a, axis=1), ops.max(a, axis=(1, 2)), ops.sqrt(ops.abs(a)), a ** 2.0, a / (b + 5.0), ops.gelu(a), ops.pad(a, ((0, 0), (1, 2), (0, 1)))]
    else:
        import tensorflow as tf
        x = 1.0 - tf.concat([tf.reduce_mean(a, axis=1, keepdims=True) + 2.0 - b, b], axis=-1)
        outputs = [a[:, -1], a[:, 1:5:2, None, ...], tf.nn.relu(tf.transpose(x, [0, 2, 1])), tf.where(a > 0.1, a, 0.0), tf.split(a, 2, axis=-1)[1], tf.stack([a, b], axis=1),
                   tf.matmul(a, b, transpose_b=True), tf.clip_by_value(a, -0.2, 0.3), tf.reshape(a, (-1, 32)), tf.nn.leaky_relu(a, 0.1),
                   tf.image.resize(a[..., None], (4, 4)), tf.nn.softmax(a, axis=1), tf.reduce_max(a, axis=(1, 2)), tf.sqrt(tf.abs(a)), a ** 2.0, a / (b + 5.0), tf.math.l2_normalize(a, axis=-1),
                   tf.pad(a, ((0, 0), (1, 2), (0, 1)))]
    return k.Model([a, b], outputs)


# Where formats keep weights differently. Of the others there is the newer format of Keras 3 and the older one of Keras 2.
IN_ALL_FORMATS = ("normalisation", "recurrent", "masks", "attention", "nested", "sequence")
MODELS = [convolutions, pooling, shapes, activations, normalisation, merging, recurrent, masks, attention, preparation, nested, sequence, functions]


def inputs_of(model, chance):
    for tensor in model.inputs:
        shape = [2, *tensor.shape[1:]]
        whole = "int" in str(tensor.dtype)
        values = chance.integers(0, 5, shape) if whole else chance.standard_normal(shape)
        if not whole and len(shape) == 3:
            values[0, -2:] = 0  # steps that a mask leaves out
        yield values.astype("int32" if whole else "float32")


def main(folder):
    import keras
    import tf_keras

    for k, version in ((keras, "3"), (tf_keras, "2")):
        for build in MODELS:
            k.backend.clear_session()
            model = build(k, k.layers)
            randomise(model, len(build.__name__))
            inputs = list(inputs_of(model, np.random.default_rng(7)))
            given = dict(zip(model.input_names if version == "2" else ["a", "b"], inputs)) if build is nested else inputs
            made = model(given if len(inputs) > 1 else inputs[0], training=False)
            made = [made[key] for key in sorted(made)] if isinstance(made, dict) else made if isinstance(made, (list, tuple)) else [made]
            stem = os.path.join(folder, f"{build.__name__}_{version}")
            arrays = {f"x{i}": x for i, x in enumerate(inputs)} | {f"y{i}": np.asarray(y) for i, y in enumerate(made)}
            np.savez_compressed(stem + ".npz", **arrays)
            for end in (".keras", ".h5"):
                if build.__name__ not in IN_ALL_FORMATS and (end == ".keras") != (version == "3"):
                    continue
                try:
                    model.save(stem + end)
                    k.models.load_model(stem + end, compile=False)
                except Exception as error:  # functions and names that a format cannot hold, or cannot be read again
                    print(stem + end, "is not written:", str(error)[:200])
                    if os.path.exists(stem + end):
                        os.remove(stem + end)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(Path(__file__).with_name("keras_models.zip"), "w", zipfile.ZIP_DEFLATED) as archive:
        main(folder)
        for file in sorted(Path(folder).iterdir()):
            archive.write(file, file.name)
