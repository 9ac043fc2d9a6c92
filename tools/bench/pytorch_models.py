"""Models that nobody here wrote, with random weights, and a batch for each.

Small ones: activations are most of what a step needs. `--real` ones: as people train them.
"""

import torch
from torch import nn


def transformer(kind, real):
    """A model of transformers from its configuration, and a batch of text."""
    import transformers  # pylint: disable=import-outside-toplevel
    transformers.logging.set_verbosity_error()
    batch, length, words = (8, 256, 50257 if kind == "gpt2" else 30522) if real else (12, 256, 2000)
    sizes = {"layers": 12, "width": 768, "heads": 12} if real else {
        "layers": 4, "width": 256, "heads": 4}
    layers, width, heads = sizes["layers"], sizes["width"], sizes["heads"]
    if kind == "gpt2":
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
            n_layer=layers, n_embd=width, n_head=heads, vocab_size=words, use_cache=False))
    elif kind == "llama":
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
            num_hidden_layers=layers, hidden_size=width, num_attention_heads=heads,
            num_key_value_heads=heads // 2, intermediate_size=3 * width, vocab_size=words,
            attention_dropout=0.1, use_cache=False))
    else:
        model = transformers.BertForMaskedLM(transformers.BertConfig(
            num_hidden_layers=layers, hidden_size=width, num_attention_heads=heads,
            intermediate_size=4 * width, vocab_size=words))
    text = torch.randint(0, words, (batch, length))
    return model, lambda call: call(input_ids=text, labels=text).loss


def vit(real):
    """transformers' ViT, and a batch of images."""
    import transformers  # pylint: disable=import-outside-toplevel
    transformers.logging.set_verbosity_error()
    sizes = {} if real else {
        "hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4,
        "intermediate_size": 1024, "image_size": 112, "patch_size": 8}
    config = transformers.ViTConfig(hidden_dropout_prob=0.1, num_labels=10, **sizes)
    images = torch.randn(8 if real else 16, 3, config.image_size, config.image_size)
    labels = torch.randint(0, 10, (len(images),))
    return (transformers.ViTForImageClassification(config),
            lambda call: call(pixel_values=images, labels=labels).loss)


def convolutional(kind, real):
    """A model of torchvision, and a batch of images; the loss is the program's."""
    import torchvision  # pylint: disable=import-outside-toplevel
    images = torch.randn(16, 3, *([224, 224] if real else [128, 128]))
    labels = torch.randint(0, 1000, (16,))
    return (getattr(torchvision.models, kind)(),
            lambda call: nn.functional.cross_entropy(call(images), labels))


MODELS = {
    **{kind: (lambda real, kind=kind: transformer(kind, real)) for kind in
       ("gpt2", "llama", "bert")},
    "vit": vit,
    **{kind: (lambda real, kind=kind: convolutional(kind, real)) for kind in
       ("resnet50", "convnext_tiny", "swin_t", "efficientnet_b0")}}


def parts_of(model):
    """The repeated blocks of a model, for torch.utils.checkpoint."""
    lists = [m for m in model.modules() if isinstance(m, nn.ModuleList) and len(m) > 1]
    if lists:
        return list(max(lists, key=lambda m: sum(1 for _ in m.modules())))
    stages = [m for m in model.modules() if isinstance(m, nn.Sequential) and len(m) > 1
              and not any(isinstance(p, nn.Sequential) for p in m)]
    return [part for stage in stages for part in stage if any(True for _ in part.parameters())]
