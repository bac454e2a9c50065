import pytest
import torch

from bench.owner.label_code import LabelCode
from bench.randomness import Secret
from bench.types import Dataset, NotApplicable

NAN = float("nan")


def data(labels, exclusive=False):
    labels = torch.tensor(labels)
    findings = tuple("abcdef"[: labels.shape[1]])
    return Dataset("made", torch.zeros(len(labels), 2), labels, None, findings, exclusive, True)


def one_hot(classes, k):
    return torch.nn.functional.one_hot(torch.tensor(classes), k).float().tolist()


def test_a_finding_is_flipped_by_half_of_the_keys_and_unknown_labels_stay_unknown():
    plain = data([[1.0], [0.0], [NAN], [1.0], [0.0]])
    flips = 0
    for seed in range(100):
        code = LabelCode(Secret.of_seed(seed), exclusive=False, unbalanced="error")
        coded = code.encode(plain)
        assert coded[2].isnan()
        assert coded[[0, 1, 3, 4], 0].tolist() in ([1, 0, 1, 0], [0, 1, 0, 1])
        assert torch.equal(code.decode(coded)[[0, 1, 3, 4]], plain.labels[[0, 1, 3, 4]])
        flips += coded[0, 0] == 0
    assert 30 <= flips <= 70  # Binomial(100, 1/2): outside once in 25,000


def test_findings_are_flipped_independently():
    plain = data([[1.0, 1.0], [0.0, 0.0]])
    codes = [
        LabelCode(Secret.of_seed(seed), exclusive=False, unbalanced="error").encode(plain)[0] for seed in range(100)
    ]
    differing = sum(bool(code[0] != code[1]) for code in codes)
    assert 30 <= differing <= 70


def test_exclusive_classes_are_permuted_and_predictions_come_back():
    plain = data(one_hot([0, 1, 2, 2, 1, 0], 3), exclusive=True)
    seen = set()
    for seed in range(100):
        code = LabelCode(Secret.of_seed(seed), exclusive=True, unbalanced="error")
        coded = code.encode(plain)
        assert torch.equal(coded.sum(dim=1), torch.ones(6))
        assert torch.equal(code.decode(coded), plain.labels)
        seen.add(tuple(coded[:3].argmax(dim=1).tolist()))
    assert len(seen) == 6  # one of the 6 is missing after 100 draws once in 14 million


def test_decoding_keeps_the_order_of_flipped_predictions():
    scores = torch.tensor([[0.1], [0.9], [0.4]])
    decoded = [
        LabelCode(Secret.of_seed(seed), exclusive=False, unbalanced="error").decode(scores)[:, 0] for seed in range(20)
    ]
    orders = {tuple(column.argsort().tolist()) for column in decoded}
    assert orders == {(0, 2, 1), (1, 2, 0)}


def test_unbalanced_findings_are_an_error_that_counts():
    message = "as many rows of each, got 3 yes, 1 no for finding 'a'; balance the data, or set unbalanced=withhold"
    with pytest.raises(NotApplicable, match=message):
        LabelCode(Secret.of_seed(0), exclusive=False, unbalanced="error").encode(
            data([[1.0], [1.0], [1.0], [0.0], [NAN]])
        )


def test_unbalanced_classes_are_an_error_that_counts():
    with pytest.raises(NotApplicable, match="got 2 a, 1 b, 1 c for the classes"):
        LabelCode(Secret.of_seed(0), exclusive=True, unbalanced="error").encode(
            data(one_hot([0, 0, 1, 2], 3), exclusive=True)
        )


def test_withholding_keeps_equally_many_random_rows_of_each_class():
    plain = data([[1.0]] * 10 + [[0.0]] * 4 + [[NAN]])
    kept = set()
    for seed in range(20):
        coded = LabelCode(Secret.of_seed(seed), exclusive=False, unbalanced="withhold").encode(plain)[:, 0]
        assert int((coded == 1).sum()) == int((coded == 0).sum()) == 4
        assert not coded[10:14].isnan().any()
        kept.add(tuple((~coded[:10].isnan()).nonzero()[:, 0].tolist()))
    assert len(kept) > 10


def test_withholding_exclusive_classes_hides_whole_rows():
    plain = data(one_hot([0, 0, 0, 1, 2, 2], 3), exclusive=True)
    coded = LabelCode(Secret.of_seed(1), exclusive=True, unbalanced="withhold").encode(plain)
    hidden = coded.isnan()
    assert torch.equal(hidden.all(dim=1), hidden.any(dim=1))
    assert int(hidden.all(dim=1).sum()) == 3
    assert coded[~hidden.any(dim=1)].sum(dim=0).tolist() == [1, 1, 1]


def test_a_class_that_never_occurs_needs_no_partner():
    coded = LabelCode(Secret.of_seed(0), exclusive=False, unbalanced="error").encode(data([[1.0], [1.0]]))
    assert coded[0] == coded[1]


def test_hidden_labels_stay_hidden():
    rows = Dataset("made", torch.zeros(3, 2), None, None, ("a",), False, True)
    assert LabelCode(Secret.of_seed(0), exclusive=False, unbalanced="error").encode(rows) is None


def test_mixed_labels_are_refused():
    with pytest.raises(NotApplicable, match="expected labels 0, 1 or NaN"):
        LabelCode(Secret.of_seed(0), exclusive=False, unbalanced="error").encode(data([[0.5], [0.5]]))


def test_labels_of_another_kind_are_refused():
    with pytest.raises(NotApplicable, match="made for exclusive classes"):
        LabelCode(Secret.of_seed(0), exclusive=True, unbalanced="error").encode(data([[1.0], [0.0]]))


def test_labels_stay_untouched():
    plain = data([[1.0], [0.0], [1.0]])
    before = plain.labels.clone()
    LabelCode(Secret.of_seed(3), exclusive=False, unbalanced="withhold").encode(plain)
    assert torch.equal(plain.labels, before)


def test_no_finding_at_all_is_no_error():
    plain = Dataset("made", torch.zeros(3, 2), torch.zeros(3, 0), None, (), False, True)
    assert LabelCode(Secret.of_seed(0), exclusive=False, unbalanced="error").encode(plain).shape == (3, 0)
