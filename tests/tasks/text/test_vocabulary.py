from tokenizers import Tokenizer, models

from headstream.models.bos import NO_BOS
from headstream.tasks.text.vocabulary import VocabularyWithoutText


def test_without_text_special_tokens_count_nothing_and_those_beyond_the_models_vocabulary_are_left_out():
    tokenizer = Tokenizer(models.BPE(vocab={"a": 0, "b": 1, "<s>": 2}, merges=[], unk_token="<s>"))
    tokenizer.add_special_tokens(["<s>", "<pad>", "<image>"])  # two of them after the model's last token

    assert VocabularyWithoutText(tokenizer, 3, NO_BOS).counts.tolist() == [1, 1, 0]
    assert VocabularyWithoutText(tokenizer, 2, NO_BOS).counts.tolist() == [1, 1], "the model lacks <s> as well"
