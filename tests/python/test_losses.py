"""Losses where a record's samples cannot go: lengths and paths, large inputs, messages, layers."""

import itertools

import numpy as np
import pytest

import oar
from oar import nn
from oar.nn import functional as F


def tensor(values, **options):
    return oar.to_tensor(np.asarray(values, "float32"), **options)


class TestCTC:
    def scores(self, steps=30, batch=3, classes=7, seed=0):
        return np.random.default_rng(seed).standard_normal((steps, batch, classes)).astype("float32")

    def call(self, x, labels, input_lengths, label_lengths, **options):
        given = [oar.to_tensor(np.array(v, "int64")) for v in (labels, input_lengths, label_lengths)]
        return F.ctc_loss(x, *given, **options)

    def test_gradient_of_a_long_sequence_is_the_difference_quotient(self):
        raw = self.scores(60, 2).astype("float64")
        labels = [[1, 1, 2, 3, 4, 4, 4, 6], [5, 6, 1, 2, 0, 0, 0, 0]]
        args = (labels, [60, 41], [8, 4])
        x = oar.to_tensor(raw, stop_gradient=False)
        self.call(x, *args, reduction="sum").backward()
        grad, step = x.grad.numpy(), 1e-5
        for place in [(0, 0, 1), (30, 0, 4), (40, 1, 6), (59, 0, 6)]:
            up, down = raw.copy(), raw.copy()
            up[place] += step
            down[place] -= step
            change = [float(self.call(oar.to_tensor(v), *args, reduction="sum")) for v in (up, down)]
            assert grad[place] == pytest.approx((change[0] - change[1]) / (2 * step), rel=1e-5, abs=1e-8)
        assert not grad[41:, 1].any()

    def test_probabilities_of_all_labels_sum_to_one(self):
        # Every sequence of 4 steps reads as exactly one label.
        x = np.repeat(self.scores(4, 1, 3), 31, axis=1)
        labels = [label for n in range(5) for label in itertools.product([1, 2], repeat=n)]
        padded = np.array([[*label, 0, 0, 0, 0][:4] for label in labels])
        loss = self.call(tensor(x), padded, [4] * 31, [len(label) for label in labels], reduction="none").numpy()
        fits = np.array([len(label) + sum(a == b for a, b in itertools.pairwise(label)) <= 4 for label in labels])
        assert np.exp(-loss[fits]).sum() == pytest.approx(1.0, rel=1e-5)
        assert not loss[~fits].any()

    @pytest.mark.parametrize("label, steps", [([1, 1, 1], 4), ([1, 2, 3], 2), ([2, 2, 1], 3), ([1, 0, 0], 0)])
    def test_a_label_that_does_not_fit_costs_nothing_and_has_no_gradient(self, label, steps):
        x = tensor(self.scores(4, 2), stop_gradient=False)
        length = 3 if label[1] else 1
        loss = self.call(x, [label, [1, 2, 0]], [steps, 4], [length, 2], reduction="none")
        assert float(loss[0]) == 0 and float(loss[1]) > 0
        loss.sum().backward()
        assert not x.grad.numpy()[:, 0].any() and x.grad.numpy()[:, 1].any()

    def test_a_label_of_no_probability_still_costs_infinitely_much(self):
        x = self.scores(3, 1)
        x[:, :, 1] = -np.inf
        assert np.isinf(float(self.call(tensor(x), [[1]], [3], [1], reduction="sum")))

    def test_mean_divides_by_label_lengths(self):
        x, args = tensor(self.scores()), ([[1, 2], [3, 4], [5, 0]], [30, 20, 10], [2, 2, 1])
        each = self.call(x, *args, reduction="none").numpy()
        assert float(self.call(x, *args)) == pytest.approx((each / [2, 2, 1]).mean(), rel=1e-5)

    def test_norm_by_times_scales_the_gradient_only(self):
        grads, losses = [], []
        for norm in (False, True):
            x = tensor(self.scores(), stop_gradient=False)
            loss = self.call(
                x, [[1, 2], [3, 4], [5, 0]], [30, 20, 10], [2, 2, 1], reduction="sum", norm_by_times=norm
            )
            loss.backward()
            grads.append(x.grad.numpy())
            losses.append(float(loss))
        assert losses[0] == pytest.approx(losses[1], rel=1e-6)
        np.testing.assert_allclose(grads[1][:, 1] * 20, grads[0][:, 1], rtol=1e-4, atol=1e-7)

    def test_does_not_depend_on_the_number_of_threads(self):
        x, before = tensor(self.scores(50, 9)), oar.get_num_threads()
        made = []
        for threads in (1, 3):
            oar.set_num_threads(threads)
            made.append(self.call(x, np.ones((9, 4)), [50] * 9, [4] * 9, reduction="none").numpy())
        oar.set_num_threads(before)
        np.testing.assert_array_equal(*made)

    def test_messages(self):
        x = tensor(self.scores())
        labels = [[1, 2], [3, 4], [5, 0]]
        with pytest.raises(ValueError, match=r"input_lengths\[1\] is 40"):
            self.call(x, labels, [30, 40, 10], [2, 2, 1])
        with pytest.raises(IndexError, match=r"labels\[0, 1\] is 9"):
            self.call(x, [[1, 9], [3, 4], [5, 0]], [30, 20, 10], [2, 2, 1])
        with pytest.raises(ValueError, match="one length for each"):
            self.call(x, labels, [30, 20], [2, 2, 1])
        with pytest.raises(ValueError, match="reduction"):
            self.call(x, labels, [30, 20, 10], [2, 2, 1], reduction="median")


class TestRNNT:
    def test_fastemit_scales_the_gradient_of_emissions(self):
        raw = np.random.default_rng(1).standard_normal((1, 4, 3, 5)).astype("float32")
        given = [oar.to_tensor(np.array(v, "int32")) for v in ([[1, 2]], [4], [2])]
        grads, losses = [], []
        for share in (0.0, 0.5):
            x = tensor(raw, stop_gradient=False)
            loss = F.rnnt_loss(F.log_softmax(x), *given, fastemit_lambda=share)
            y = F.log_softmax(x).detach()
            y.stop_gradient = False
            F.rnnt_loss(y, *given, fastemit_lambda=share).backward()
            grads.append(y.grad.numpy())
            losses.append(float(loss))
        assert losses[0] == losses[1]
        np.testing.assert_allclose(grads[1][..., 0], grads[0][..., 0], rtol=1e-5)
        np.testing.assert_allclose(grads[1][..., 1:], grads[0][..., 1:] * 1.5, rtol=1e-5)

    def test_every_path_pauses_once_in_every_step(self):
        y = tensor(np.random.default_rng(2).standard_normal((1, 5, 4, 3)), stop_gradient=False)
        given = [oar.to_tensor(np.array(v, "int64")) for v in ([[1, 2, 1]], [5], [3])]
        nn.RNNTLoss(fastemit_lambda=0.0)(y, *given).backward()
        np.testing.assert_allclose(y.grad.numpy()[0, :, :, 0].sum(1), -np.ones(5), rtol=1e-5)


@pytest.mark.parametrize("rows", [1, 1023, 70_000])
def test_means_of_many_elements_are_exact(rows):
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((2, rows, 7))
    for reduction in ("mean", "sum"):
        x = tensor(a, stop_gradient=False)
        loss = F.mse_loss(x, tensor(b), reduction)
        loss.backward()
        difference = a.astype("float32").astype("float64") - b.astype("float32")
        expected = getattr(np.square(difference), reduction)()
        assert float(loss) == pytest.approx(expected, rel=2e-7)
        share = 1 / a.size if reduction == "mean" else 1
        np.testing.assert_allclose(x.grad.numpy(), 2 * difference * share, rtol=1e-5, atol=1e-9)


def test_logits_far_out_stay_finite():
    x = tensor([1e4, -1e4, 88.0, -104.0, 0.0], stop_gradient=False)
    label = tensor([0.0, 1.0, 1.0, 0.0, 0.5])
    loss = F.binary_cross_entropy_with_logits(x, label, reduction="none")
    np.testing.assert_allclose(loss.numpy(), [1e4, 1e4, 0, 0, np.log(2)], rtol=1e-6, atol=1e-30)
    loss.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [1, -1, 0, 0, 0], atol=1e-30)


def test_a_loss_of_nothing():
    empty = oar.zeros([0, 3])
    assert np.isnan(float(F.mse_loss(empty, empty)))
    assert float(F.mse_loss(empty, empty, "sum")) == 0.0


def test_adaptive_softmax_agrees_with_all_its_log_probabilities():
    oar.seed(1)
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 7], div_value=2.0, head_bias=True)
    x = oar.randn([20, 8])
    label = oar.randint(0, 12, [20])
    output, loss = layer(x, label)
    every = layer.log_prob(x).numpy()
    np.testing.assert_allclose(np.exp(every).sum(1), np.ones(20), rtol=1e-5)
    np.testing.assert_allclose(output.numpy(), every[np.arange(20), label.numpy()], rtol=1e-5)
    assert float(loss) == pytest.approx(-output.numpy().mean(), rel=1e-6)
    np.testing.assert_array_equal(layer.predict(x).numpy(), every.argmax(1))
    loss.backward()
    assert all(p.grad is not None for p in layer.parameters())
    with pytest.raises(ValueError, match="labels go from"):
        layer(x, label + 5)


def test_hierarchical_probabilities_sum_to_one():
    oar.seed(2)
    layer = nn.HSigmoidLoss(5, 7)
    x = oar.expand(oar.randn([1, 5]), [7, 5])
    loss = layer(x, oar.arange(7)).numpy()
    assert loss.shape == (7, 1)
    # One of seven leaves is a step higher in the tree, and costs log 2 for that step.
    steps = np.array([int(7 + label).bit_length() - 1 for label in range(7)])
    lacking = (3 - steps)[:, None] * np.log(2)
    assert lacking.any() and np.exp(lacking - loss).sum() == pytest.approx(1.0, rel=1e-5)


def test_margins_of_zero_are_plain_cross_entropy():
    x = oar.tanh(oar.randn([6, 5]))
    label = oar.randint(0, 5, [6])
    made, softmax = F.margin_cross_entropy(x, label, 1.0, 0.0, 0.0, 8.0, return_softmax=True)
    assert float(made) == pytest.approx(float(F.cross_entropy(x * 8, label)), rel=1e-4)
    np.testing.assert_allclose(softmax.numpy(), F.softmax(x * 8).numpy(), rtol=1e-3, atol=1e-6)


PAIRS = {"input": lambda: oar.randn([4, 6]), "label": lambda: oar.uniform([4, 6], min=0.1, max=0.9)}
LAYERS = [
    (nn.BCELoss(), F.binary_cross_entropy, "ll"),
    (nn.BCEWithLogitsLoss(reduction="sum"), lambda a, b: F.binary_cross_entropy_with_logits(a, b, None, "sum"), "il"),
    (nn.KLDivLoss("batchmean"), lambda a, b: F.kl_div(a, b, "batchmean"), "il"),
    (nn.SmoothL1Loss("sum", 0.3), lambda a, b: F.smooth_l1_loss(a, b, "sum", 0.3), "ii"),
    (nn.PoissonNLLLoss(full=True), lambda a, b: F.poisson_nll_loss(a, b, True, True), "il"),
    (nn.GaussianNLLLoss(full=True), lambda a, b, c: F.gaussian_nll_loss(a, b, c, True), "iil"),
    (nn.MultiLabelSoftMarginLoss(reduction="none"), lambda a, b: F.multi_label_soft_margin_loss(a, b, None, "none"), "il"),
    (nn.TripletMarginLoss(swap=True), lambda a, b, c: F.triplet_margin_loss(a, b, c, swap=True), "iil"),
    (nn.TripletMarginWithDistanceLoss(margin=0.5), lambda a, b, c: F.triplet_margin_loss(a, b, c, 0.5), "iil"),
    (nn.MarginRankingLoss(0.1), lambda a, b, c: F.margin_ranking_loss(a, b, c, 0.1), "iil"),
    (nn.PairwiseDistance(1.0, keepdim=True), lambda a, b: F.pairwise_distance(a, b, 1.0, keepdim=True), "ii"),
    (nn.CosineSimilarity(0), lambda a, b: F.cosine_similarity(a, b, 0), "ii"),
]  # fmt: skip


@pytest.mark.parametrize("layer, function, kinds", LAYERS, ids=lambda v: type(v).__name__)
def test_layers_call_their_function(layer, function, kinds):
    oar.seed(9)
    given = [PAIRS["input" if kind == "i" else "label"]() for kind in kinds]
    np.testing.assert_allclose(layer(*given).numpy(), function(*given).numpy(), rtol=1e-6)


ACTIVATIONS = [
    (nn.CELU(0.5), lambda x: F.celu(x, 0.5)), (nn.ELU(0.5), lambda x: F.elu(x, 0.5)), (nn.SELU(), F.selu),
    (nn.Hardshrink(0.2), lambda x: F.hardshrink(x, 0.2)), (nn.Softshrink(0.2), lambda x: F.softshrink(x, 0.2)),
    (nn.Tanhshrink(), F.tanhshrink), (nn.Hardtanh(-0.5, 0.3), lambda x: F.hardtanh(x, -0.5, 0.3)),
    (nn.ThresholdedReLU(0.1, 2.0), lambda x: F.thresholded_relu(x, 0.1, 2.0)), (nn.Softsign(), F.softsign),
    (nn.Swish(), F.swish), (nn.GLU(1), lambda x: F.glu(x, 1)), (nn.Maxout(2), lambda x: F.maxout(x, 2)),
    (nn.LeakyReLU(0.3), lambda x: F.leaky_relu(x, 0.3)), (nn.Softplus(2, 5), lambda x: F.softplus(x, 2, 5)),
    (nn.ReLU6(), F.relu6), (nn.Mish(), F.mish), (nn.Hardswish(), F.hardswish), (nn.Hardsigmoid(), F.hardsigmoid),
    (nn.LogSigmoid(), F.log_sigmoid), (nn.Softmax2D(), lambda x: F.softmax(x, 1)),
]  # fmt: skip


@pytest.mark.parametrize("layer, function", ACTIVATIONS, ids=lambda v: type(v).__name__)
def test_activation_layers(layer, function):
    x = oar.randn([2, 4, 3, 3])
    np.testing.assert_array_equal(layer(x).numpy(), function(x).numpy())
    assert type(layer).__name__ in repr(layer)


def test_prelu_learns_one_slope_for_each_channel():
    layer = nn.PReLU(3, 0.1)
    x = oar.to_tensor(-np.ones((2, 3, 4), "float32"))
    np.testing.assert_allclose(layer(x).numpy(), np.full((2, 3, 4), -0.1), rtol=1e-6)
    layer(x).sum().backward()
    np.testing.assert_allclose(layer.parameters()[0].grad.numpy(), [-8, -8, -8])
    with pytest.raises(ValueError, match="one for each channel"):
        nn.PReLU(4)(x)


def test_rrelu_draws_slopes_in_training_and_takes_their_mean_otherwise():
    oar.seed(3)
    layer, x = nn.RReLU(0.1, 0.3), oar.to_tensor(-np.ones(1000, "float32"))
    slopes = -layer(x).numpy()
    assert 0.1 <= slopes.min() < 0.12 and 0.28 < slopes.max() <= 0.3
    layer.eval()
    np.testing.assert_allclose(layer(x).numpy(), np.full(1000, -0.2), rtol=1e-6)


def test_in_place_activations():
    for name, args in (("hardtanh_", (-0.5, 0.5)), ("thresholded_relu_", (0.2,)), ("softmax_", ())):
        x = oar.randn([3, 5])
        expected = getattr(F, name[:-1])(x, *args).numpy()
        assert getattr(F, name)(x, *args) is x
        np.testing.assert_allclose(x.numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda x: F.celu(x, 0.0), "alpha is 0"),
        (lambda x: F.selu(x, 0.5), "scale is 0.5"),
        (lambda x: F.softshrink(x, -1.0), "threshold is -1"),
        (lambda x: F.glu(x[:, :3]), "even number"),
        (lambda x: F.maxout(x, 5), "groups of 5"),
        (lambda x: F.rrelu(x, 0.5, 0.2), "upper is 0.2"),
        (lambda x: F.gumbel_softmax(x, 0.0), "temperature"),
        (lambda x: F.poisson_nll_loss(x, x, epsilon=0.0), "epsilon is 0"),
        (lambda x: F.mse_loss(x, x, "median"), "median"),
        (lambda x: F.triplet_margin_loss(x, x, x, margin=-1.0), "margin is -1"),
        (lambda x: F.dice_loss(x, x.astype("int64")), "classes"),
        (lambda x: F.cosine_embedding_loss(x, x[:, :2], x[:, 0]), "must be equal"),
        (lambda x: F.hsigmoid_loss(x, x[:, 0].astype("int64"), 1, x), "num_classes is 1"),
        (lambda x: F.gaussian_nll_loss(x, x, x[:, :3]), "variance has shape"),
    ],
)
def test_messages(call, text):
    with pytest.raises(ValueError, match=text):
        call(oar.ones([4, 4]))


def test_the_labelled_class_leaves_nothing_in_a_margin_loss():
    x = tensor([[5.0, 1.0, 0.0], [np.inf, 1.0, 0.0], [0.0, 0.5, 0.0]], stop_gradient=False)
    found = F.multi_margin_loss(x, oar.to_tensor([0, 0, 1]), p=2, margin=0.7, reduction="none")
    np.testing.assert_allclose(found.numpy(), [0, 0, 2 * 0.2**2 / 3], rtol=1e-6)
    assert not found.numpy()[:2].any()
    found[::2].sum().backward()
    np.testing.assert_allclose(x.grad.numpy()[2], [0.4 / 3, -0.8 / 3, 0.4 / 3], rtol=1e-5)


def test_a_focal_loss_is_divided_before_it_is_rounded():
    x, y = oar.full([100, 10], 90.0, "float16"), oar.zeros([100, 10], "float16")
    found = F.sigmoid_focal_loss(x, y, oar.to_tensor([100.0], dtype="float16"))
    assert found.dtype == oar.float16
    np.testing.assert_allclose(found.numpy(), 0.75 * 90 * 10, rtol=1e-3)  # the sum is 67500


def test_a_log_loss_of_small_probabilities_keeps_both_terms():
    x, y = np.array([[2.0**-12]]), np.array([[2.0**-14]])
    found = F.log_loss(*(tensor(v).astype("bfloat16") for v in (x, y)), epsilon=1e-5).astype("float32")
    np.testing.assert_allclose(found.numpy(), -y * np.log(x + 1e-5) - (1 - y) * np.log(1 - x + 1e-5), rtol=5e-3)


def test_the_cosine_of_long_vectors():
    x, y = tensor([[3e15, 4e15]]), tensor([[4e15, 3e15]])
    np.testing.assert_allclose(F.cosine_embedding_loss(x, y, tensor([1.0]).astype("int64")).numpy(), 0.04, rtol=1e-5)
