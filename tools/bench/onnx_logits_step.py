"""The parts of onnx_logits that PyTorch, transformers and onnxruntime do: images, networks of
torchvision as ONNX files, and logits. Prints JSON."""

import argparse
import json
import pathlib
import warnings

import numpy
from PIL import Image

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
PER_CLASS = 4
TEXTS = 3


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("images", "onnxruntime", "texts", "torchvision"))
    parser.add_argument("--files", nargs="*", help="images")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--model", type=pathlib.Path, help="ONNX file")
    parser.add_argument("--weights", type=pathlib.Path, help="safetensors file of transformers'")
    parser.add_argument("--net")
    parser.add_argument("--exporter")
    parser.add_argument("--side", type=int)
    parser.add_argument("--classes", type=int)
    return parser.parse_args()


def write_images(options):
    """Noise around a color of its own for each class."""
    draw = numpy.random.default_rng(1)
    for split in ("train", "val"):
        for label in range(options.classes):
            folder = options.out / split / f"class{label}"
            folder.mkdir(parents=True)
            color = draw.integers(40, 215, 3)
            for i in range(PER_CLASS):
                noise = draw.integers(-40, 40, (options.side, options.side, 3))
                pixels = (color + noise).astype(numpy.uint8)
                Image.fromarray(pixels).save(folder / f"{i}.png")
    return {}


def read_images(files, channels=3):
    """As an evaluation of `spillway` shows them to a network of their size."""
    pixels = numpy.stack([numpy.asarray(Image.open(file).convert("RGB" if channels == 3 else "L"))
                          for file in files]).astype(numpy.float32) / 255
    if channels == 1:
        mean, deviation = numpy.float32(numpy.mean(MEAN)), numpy.float32(numpy.mean(DEVIATION))
        return ((pixels - mean) / deviation)[:, None]
    normal = (pixels - numpy.float32(MEAN)) / numpy.float32(DEVIATION)
    return numpy.ascontiguousarray(normal.transpose(0, 3, 1, 2))


def run_onnx(model, inputs):
    import onnxruntime
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return session.run(None, {name: inputs(session.get_inputs()[0].shape)})[0]


def logits_of_images(options):
    logits = run_onnx(options.model, lambda shape: read_images(options.files, shape[1]))
    return logits.tolist()


def configured_model(net, vocabulary):
    """An empty model of transformers' like our `net`."""
    import transformers
    kind, _, sizes = net.partition(":")
    sizes = [int(size) for size in sizes.split(",") if size]
    if kind == "gpt":
        layers, heads, width, context = sizes
        return transformers.GPT2LMHeadModel(transformers.GPT2Config(
            vocab_size=vocabulary, n_layer=layers, n_head=heads, n_embd=width,
            n_positions=context))
    if kind == "llama":
        layers, heads, keys, width, hidden, context = sizes
        return transformers.LlamaForCausalLM(transformers.LlamaConfig(
            vocab_size=vocabulary, num_hidden_layers=layers, num_attention_heads=heads,
            num_key_value_heads=keys, hidden_size=width, intermediate_size=hidden,
            max_position_embeddings=context, rms_norm_eps=1e-5))
    return transformers.BertForMaskedLM(transformers.BertConfig(vocab_size=vocabulary,
                                                                pad_token_id=None))


def logits_of_texts(options):
    import torch
    from safetensors.torch import load_file
    weights = load_file(options.weights)
    draw = numpy.random.default_rng(1)
    tokens = []

    def inputs(shape):
        tokens.append(draw.integers(0, vocabulary, (TEXTS, shape[1])))
        return tokens[0]

    vocabulary = next(tensor.shape[0] for name, tensor in weights.items()
                      if name.endswith(("wte.weight", "embed_tokens.weight",
                                        "word_embeddings.weight")))
    ours = run_onnx(options.model, inputs)
    model = configured_model(options.net, vocabulary).eval()
    model.load_state_dict(weights, strict=False)
    model.tie_weights()
    with torch.inference_mode():
        theirs = model(torch.from_numpy(tokens[0])).logits.numpy()
    return {"onnxruntime": ours.reshape(len(tokens[0]), -1).tolist(),
            "transformers": theirs.reshape(len(tokens[0]), -1).tolist()}


def torchvision_model(name, classes):
    """Drawn, with statistics as if it had been trained."""
    import torch
    import torchvision
    torch.manual_seed(1)
    options = {"aux_logits": False} if name in ("googlenet", "inception_v3") else {}
    model = getattr(torchvision.models, name)(num_classes=classes, **options)
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.weight.uniform_(0.5, 1.5)
                module.bias.uniform_(-0.5, 0.5)
                module.running_mean.uniform_(-0.5, 0.5)
                module.running_var.uniform_(0.5, 2)
    return model.eval()


def export_torchvision(options):
    """Writes the model, and returns its logits."""
    import torch
    model = torchvision_model(options.net, options.classes)
    images = torch.from_numpy(read_images(options.files))
    if options.exporter == "dynamo":
        batch = torch.export.Dim("batch")
        torch.onnx.export(model, (images[:2],), options.model, dynamo=True,
                          dynamic_shapes=({0: batch},), external_data=True, verbose=False)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(model, images[:2], options.model, dynamo=False,
                              input_names=["image"], output_names=["logits"],
                              dynamic_axes={"image": {0: "batch"}, "logits": {0: "batch"}})
    with torch.inference_mode():
        return model(images).tolist()


def main():
    options = parse_arguments()
    parts = {"images": write_images, "onnxruntime": logits_of_images, "texts": logits_of_texts,
             "torchvision": export_torchvision}
    print(json.dumps(parts[options.part](options)))


if __name__ == "__main__":
    main()
