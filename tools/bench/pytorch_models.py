"""Models that nobody here wrote, with random weights, and a batch for each.

Small ones: a step takes a second or so, and activations are most of what it needs. Real ones: as
people train them.
"""

import torch
from torch import nn

# Batch, then the length of texts or the side of images.
BATCHES = {
    "gpt2": {"small": (6, 256), "real": (4, 256)},
    "llama": {"small": (6, 256), "real": (4, 256)},
    "bert": {"small": (6, 256), "real": (8, 256)},
    "vit": {"small": (16, 112), "real": (16, 224)},
    "resnet50": {"small": (16, 160), "real": (16, 224)},
    "convnext_tiny": {"small": (16, 160), "real": (16, 224)},
    "swin_t": {"small": (16, 160), "real": (16, 224)},
    "efficientnet_b0": {"small": (16, 128), "real": (16, 224)},
}
MODELS = tuple(BATCHES)
TEXT_MODELS = ("gpt2", "llama", "bert")
BLOCKS = {"GPT2Block", "LlamaDecoderLayer", "BertLayer", "ViTLayer", "Bottleneck", "CNBlock",
          "SwinTransformerBlock", "MBConv"}  # classes of what a model repeats
SMALL_WORDS = 2000


def model_and_loss(name, size, batch=None):
    """A model in training mode, and a function that gives its loss on a batch when it is called
    with the model, or with what stands for it."""
    usual, extent = BATCHES[name][size]
    make = text_model if name in TEXT_MODELS else image_model
    model, loss_of = make(name, size, batch or usual, extent)
    return model.train(), loss_of


def items(name, size, batch=None):
    """Words or images of a step."""
    usual, extent = BATCHES[name][size]
    return (batch or usual) * (extent if name in TEXT_MODELS else 1)


def text_model(name, size, batch, length):
    """A language model of transformers."""
    import transformers  # pylint: disable=import-outside-toplevel
    transformers.logging.set_verbosity_error()
    is_real = size == "real"
    layers, width, heads = (12, 768, 12) if is_real else (4, 256, 4)
    if name == "gpt2":
        words = 50257 if is_real else SMALL_WORDS
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
            n_layer=layers, n_embd=width, n_head=heads, vocab_size=words, use_cache=False))
    elif name == "llama":
        words = 32000 if is_real else SMALL_WORDS
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
            num_hidden_layers=layers, hidden_size=width, num_attention_heads=heads,
            num_key_value_heads=heads // 2, intermediate_size=3 * width, vocab_size=words,
            attention_dropout=0.1, use_cache=False))
    else:
        words = 30522 if is_real else SMALL_WORDS
        model = transformers.BertForMaskedLM(transformers.BertConfig(
            num_hidden_layers=layers, hidden_size=width, num_attention_heads=heads,
            intermediate_size=4 * width, vocab_size=words))
    text = torch.randint(0, words, (batch, length))
    return model, lambda call: call(input_ids=text, labels=text).loss


def image_model(name, size, batch, side):
    """transformers' ViT, or a model of torchvision; the loss is the program's."""
    images = torch.randn(batch, 3, side, side)
    labels = torch.randint(0, 10, (batch,))
    if name == "vit":
        return vit(size), lambda call: nn.functional.cross_entropy(
            call(pixel_values=images).logits, labels)
    import torchvision  # pylint: disable=import-outside-toplevel
    model = getattr(torchvision.models, name)(num_classes=10)
    return model, lambda call: nn.functional.cross_entropy(call(images), labels)


def vit(size):
    """ViT-Base, or a small one; with dropout, which its configuration lacks."""
    import transformers  # pylint: disable=import-outside-toplevel
    transformers.logging.set_verbosity_error()
    sizes = {} if size == "real" else {
        "hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4,
        "intermediate_size": 1024, "image_size": BATCHES["vit"]["small"][1], "patch_size": 8}
    return transformers.ViTForImageClassification(transformers.ViTConfig(
        hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1, num_labels=10, **sizes))


def blocks_of(model):
    """What a model repeats, for torch.utils.checkpoint."""
    return [each for each in model.modules() if type(each).__name__ in BLOCKS]
