import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from bench.nets.classifier import Course, Standardise, label_loss, outputs, train

COURSE = Course(epochs=4, steps=None, batch=8, learning_rate=0.01, weight_decay=0.0, precision="float32")


def test_unknown_labels_count_for_nothing():
    logits = torch.randn(6, 2)
    labels = torch.randint(0, 2, (6, 2)).float()
    labels[:3, 0] = float("nan")
    known = ~labels.isnan()
    expected = binary_cross_entropy_with_logits(logits[known], labels[known])
    assert torch.allclose(label_loss(False)(logits, labels), expected)


def test_soft_classes_have_the_cross_entropy_of_their_mixture():
    logits, labels = torch.randn(6, 4), torch.rand(6, 4).softmax(dim=1)
    assert torch.allclose(label_loss(True)(logits, labels), cross_entropy(logits, labels))


def test_soft_findings_have_the_loss_of_their_mixture_and_unknown_ones_none():
    logits, labels = torch.randn(6, 2), torch.rand(6, 2)
    labels[:2, 1] = float("nan")
    yes, no = (
        binary_cross_entropy_with_logits(logits, torch.full_like(logits, hard), reduction="none") for hard in (1, 0)
    )
    expected = (labels * yes + (1 - labels) * no)[~labels.isnan()].mean()
    assert torch.allclose(label_loss(False)(logits, labels), expected)


def test_a_row_with_an_unknown_class_does_not_count():
    logits, labels = torch.randn(6, 4), torch.rand(6, 4).softmax(dim=1)
    unknown = labels.clone()
    unknown[:2] = float("nan")
    assert torch.allclose(label_loss(True)(logits, unknown), cross_entropy(logits[2:], labels[2:]))


def test_soft_labels_are_learned_as_probabilities():
    samples = torch.eye(4).repeat(10, 1)
    soft = torch.tensor([[0.1], [0.4], [0.6], [0.95]])
    course = Course(epochs=60, steps=None, batch=20, learning_rate=0.2, weight_decay=0.0, precision="float32")
    for exclusive, labels in ((False, soft), (True, torch.cat((soft, 1 - soft), dim=1))):
        network = nn.Linear(4, labels.shape[1])
        list(train(network, samples, labels.repeat(10, 1), course, exclusive=exclusive, seed=0))
        logits = outputs(network, torch.eye(4), "float32")
        learned = logits.softmax(dim=1) if exclusive else logits.sigmoid()
        assert torch.allclose(learned, labels, atol=0.02)


def test_standardised_rows_have_mean_zero_and_deviation_one_even_if_a_column_is_constant():
    rows = torch.rand(50, 3) * 40 + 7
    rows[:, 1] = 5
    out = Standardise(rows)(rows)
    assert torch.allclose(out.mean(dim=0), torch.zeros(3), atol=1e-5)
    assert torch.allclose(out.std(dim=0, correction=0), torch.tensor([1.0, 0.0, 1.0]), atol=1e-5)


def test_an_epoch_sees_every_labelled_row_once():
    samples = torch.arange(20.0)[:, None]
    labels = torch.zeros(20, 1)
    labels[5] = float("nan")
    seen: list[float] = []
    network = nn.Linear(1, 1)
    network.register_forward_pre_hook(lambda module, inputs: seen.extend(inputs[0][:, 0].tolist()))
    steps = list(train(network, samples, labels, COURSE, exclusive=False, seed=0))
    assert steps == [2, 4, 6, 8]
    every_labelled_row = [float(row) for row in range(20) if row != 5]
    assert [sorted(seen[epoch * 19 : epoch * 19 + 19]) for epoch in range(4)] == [every_labelled_row] * 4


def test_the_bound_on_steps_holds_within_an_epoch():
    course = Course(epochs=4, steps=3, batch=8, learning_rate=0.01, weight_decay=0.0, precision="float32")
    assert list(train(nn.Linear(1, 1), torch.rand(20, 1), torch.zeros(20, 1), course, exclusive=False, seed=0)) == [
        2,
        3,
    ]


def test_outputs_do_not_depend_on_the_batch():
    network, rows = nn.Linear(7, 2), torch.rand(11, 7)
    assert torch.allclose(outputs(network, rows, "float32", rows=3), outputs(network, rows, "float32"), atol=1e-6)
