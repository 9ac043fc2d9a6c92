"""The parts of fine_tune that PyTorch and torchvision do: folders of JPEGs of Fashion-MNIST, a
network trained on them, and what a file of weights makes of images. Prints JSON."""

import argparse
import json
import pathlib
import sys
import time

import torch
import torchvision
from PIL import Image
from safetensors.torch import load_file, save_file
from torch.nn import functional
from torchvision import transforms

from fashion_mnist import FOLDER, NAMES, parameter_groups, rate_of, read_split

IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
QUALITY = 95  # of JPEGs


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parts = parser.add_subparsers(dest="part", required=True)
    folders = parts.add_parser("folders")
    folders.add_argument("--idx", type=pathlib.Path, default=FOLDER)
    folders.add_argument("--out", type=pathlib.Path, required=True)
    folders.add_argument("--before", type=int, required=True, help="classes of the first folder")
    folders.add_argument("--images", type=int, required=True, help="of each class to learn from")
    folders.add_argument("--tests", type=int, required=True, help="of each class to test on")
    for name in ("train", "judge"):
        part = parts.add_parser(name)
        part.add_argument("--images", type=pathlib.Path, required=True, help="folder of classes")
        part.add_argument("--weights", type=pathlib.Path, required=True, help="safetensors file")
        part.add_argument("--side", type=int, required=True)
        part.add_argument("--epochs", type=int, default=1)
        part.add_argument("--batch", type=int, default=32)
        part.add_argument("--files", type=pathlib.Path, help="JSON list of those to give logits of")
    return parser.parse_args()


def write_folders(options):
    """out/before and out/after, each with train/CLASS and val/CLASS."""
    counts = {}
    for split, part, most in (("train", "train", options.images), ("t10k", "val", options.tests)):
        images, labels = read_split(options.idx, split)
        for label, name in enumerate(NAMES):
            side = "before" if label < options.before else "after"
            folder = options.out / side / part / name
            folder.mkdir(parents=True, exist_ok=True)
            for i, image in enumerate(images[labels == label][:most]):
                Image.fromarray(image.numpy()).save(folder / f"{i:05}.jpg", quality=QUALITY)
                counts[f"{side}/{part}"] = counts.get(f"{side}/{part}", 0) + 1
    return {"images": counts}


def evaluation_view(side):
    """What `spillway` shows a network of images below 64x64: all of the image."""
    return transforms.Compose([transforms.Resize((side, side)), transforms.ToTensor(),
                               transforms.Normalize(*IMAGENET)])


def read_images(paths, side):
    view = evaluation_view(side)
    return torch.stack([view(Image.open(path).convert("RGB")) for path in paths])


def read_folder(folder, side):
    """Images, labels and the names of classes, as ImageFolder has them."""
    data = torchvision.datasets.ImageFolder(folder)
    paths, labels = zip(*data.samples)
    return read_images(paths, side), torch.tensor(labels), data.classes


def accuracy_of(model, images, labels):
    model.eval()
    with torch.inference_mode():
        right = [model(images[i:i + 100]).argmax(1) == labels[i:i + 100]
                 for i in range(0, len(labels), 100)]
    model.train()
    return torch.cat(right).float().mean().item()


def train(options):
    """torchvision's ResNet-18, and its weights as a file."""
    torch.manual_seed(1)
    images, labels, classes = read_folder(options.images / "train", options.side)
    model = torchvision.models.resnet18(num_classes=len(classes)).train()
    optimizer = torch.optim.SGD(parameter_groups(model, 1e-4), lr=1, momentum=0.9, nesterov=True)
    in_epoch = len(labels) // options.batch
    steps = options.epochs * in_epoch
    recipe = {"lr": 0.05, "warmup-steps": in_epoch}
    begin = time.monotonic()
    for step in range(steps):
        if step % in_epoch == 0:
            order = torch.randperm(len(labels))
        chosen = order[step % in_epoch * options.batch:][:options.batch]
        batch = images[chosen].clone()
        flipped = torch.rand(len(chosen)) < 0.5
        batch[flipped] = batch[flipped].flip(-1)
        for group in optimizer.param_groups:
            group["lr"] = rate_of(recipe, step, steps)
        loss = functional.cross_entropy(model(batch), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (step + 1) % in_epoch == 0:
            print(f"pytorch: epoch {(step + 1) // in_epoch}, loss {loss.item():.3f}",
                  file=sys.stderr, flush=True)
    seconds = time.monotonic() - begin
    tests = read_folder(options.images / "val", options.side)
    save_file(model.state_dict(), options.weights)
    return {"accuracy": accuracy_of(model, *tests[:2]), "seconds": seconds, "classes": classes}


def judge(options):
    """Loads the weights strictly; the accuracy on a folder, and the logits of some files."""
    images, labels, classes = read_folder(options.images / "val", options.side)
    model = torchvision.models.resnet18(num_classes=len(classes))
    model.load_state_dict(load_file(options.weights), strict=True)
    result = {"accuracy": accuracy_of(model, images, labels), "classes": classes}
    model.eval()
    with torch.inference_mode():
        files = json.loads(options.files.read_text(encoding="utf-8"))
        result["logits"] = model(read_images(files, options.side)).tolist()
    return result


def main():
    options = parse_arguments()
    run = {"folders": write_folders, "train": train, "judge": judge}[options.part]
    print(json.dumps({**run(options), "torch": torch.__version__,
                      "torchvision": torchvision.__version__}))


if __name__ == "__main__":
    main()
