"""Labels that name no class: an error in every form of the classification losses, never a number."""

import pytest

import oar
import oar.nn.functional as F

FORMS = {
    "cross_entropy": lambda x, label: F.cross_entropy(x, label, reduction="sum"),
    "smoothed": lambda x, label: F.cross_entropy(x, label, label_smoothing=0.1, reduction="sum"),
    "probabilities": lambda x, label: F.cross_entropy(F.softmax(x), label, use_softmax=False, reduction="sum"),
    "nll_loss": lambda x, label: F.nll_loss(F.log_softmax(x), label, reduction="sum"),
}


@pytest.mark.parametrize("bad", [-1, 3, -101])
@pytest.mark.parametrize("form", FORMS)
def test_a_label_outside_the_classes_is_an_error(form, bad):
    with pytest.raises(IndexError, match=str(bad)):
        FORMS[form](oar.randn([2, 3]), oar.to_tensor([0, bad]))


@pytest.mark.parametrize("form", FORMS)
def test_the_ignored_label_counts_for_nothing(form):
    x = oar.randn([2, 3])
    both, alone = FORMS[form](x, oar.to_tensor([1, -100])), FORMS[form](x[:1], oar.to_tensor([1]))
    assert both.item() == pytest.approx(alone.item(), rel=1e-5)


@pytest.mark.parametrize("grad, label, shape", [([4, 1], [2, 1], [2, 5]), ([2, 1], [2, 1], [9, 5]), ([2], [2], [2, 5])])
def test_gradients_of_picked_classes_fit_their_labels(grad, label, shape):
    with pytest.raises(ValueError, match="shape"):
        oar._C.ops.pick_class_grad(oar.ones(grad), oar.zeros(label, "int64"), shape)
