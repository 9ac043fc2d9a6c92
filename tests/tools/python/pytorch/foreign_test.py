"""Programs that nobody here wrote, with one line for a budget: their own bits, and no fallback."""

import importlib.util
import os
import tempfile
import unittest
import warnings

from pytorch_case import PyTorchCase, functional, nn, torch

os.environ.setdefault("HF_HUB_OFFLINE", "1")


def needs(name):
    """Skips a test where a package is not there."""
    return unittest.skipIf(importlib.util.find_spec(name) is None, f"there is no {name}")


class Programs(PyTorchCase):
    def compare(self, program, budget="min+30%"):
        """Runs `program(line)` without and with the line; the plans of the second run."""
        expected = program(lambda model: model)

        def line(model):
            model.compile(backend="spillway", options={"budget": budget})
            return model

        torch._dynamo.reset()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = program(line)
        self.assertEqual([str(w.message) for w in caught if "spillway" in str(w.message)], [])
        for name, value in expected.state_dict().items():
            self.assertTrue(torch.equal(value, model.state_dict()[name]), name)
        return self.plans_of(model)

    def trained_by_trainer(self, line, **given):
        """A small GPT-2 by transformers' Trainer: evaluation, a smaller last batch, clipping, a
        schedule."""
        import transformers
        transformers.logging.set_verbosity_error()
        torch.manual_seed(3)
        model = line(transformers.GPT2LMHeadModel(transformers.GPT2Config(
            n_layer=2, n_embd=64, n_head=2, vocab_size=256, n_positions=64)))
        text = torch.randint(0, 256, (14, 64), generator=torch.Generator().manual_seed(1))
        rows = [{"input_ids": row, "labels": row} for row in text]
        with tempfile.TemporaryDirectory() as folder:
            transformers.Trainer(model, transformers.TrainingArguments(
                folder, per_device_train_batch_size=4, num_train_epochs=2, report_to=[],
                eval_strategy="epoch", save_strategy="no", use_cpu=True, disable_tqdm=True,
                logging_strategy="no", **given), train_dataset=rows, eval_dataset=rows[:4]).train()
        return model

    @needs("transformers")
    def test_grouped_queries_have_eagers_bits(self):
        import transformers
        transformers.logging.set_verbosity_error()

        def program(line, mask):
            torch.manual_seed(3)
            model = line(transformers.LlamaForCausalLM(transformers.LlamaConfig(
                num_hidden_layers=2, hidden_size=64, num_attention_heads=4, use_cache=False,
                num_key_value_heads=2, intermediate_size=128, vocab_size=200)))
            optimizer = torch.optim.AdamW(model.parameters())
            for number in range(2):
                text = torch.randint(0, 200, (4, 48),
                                     generator=torch.Generator().manual_seed(number))
                model(input_ids=text, labels=text, attention_mask=mask).loss.backward()
                optimizer.step()
                optimizer.zero_grad()
            return model

        padded = torch.ones(4, 48, dtype=torch.long)
        padded[0, 40:] = 0
        for mask in (None, padded):
            with self.subTest(padded=mask is not None):
                self.assertTrue(self.compare(lambda line, mask=mask: program(line, mask)))

    @needs("transformers")
    @needs("accelerate")
    def test_trainer_of_transformers(self):
        self.assertTrue(self.compare(self.trained_by_trainer))

    @needs("transformers")
    @needs("accelerate")
    def test_trainer_that_adds_gradients(self):
        plans = self.compare(lambda line: self.trained_by_trainer(
            line, gradient_accumulation_steps=2))
        self.assertGreater(len(plans), 1)

    @needs("torchvision")
    def test_a_loop_like_torchvisions_references(self):
        import torchvision

        def program(line):
            torch.manual_seed(3)
            model = line(torchvision.models.resnet18(num_classes=10))
            data = torch.utils.data.TensorDataset(torch.randn(20, 3, 64, 64),
                                                  torch.randint(0, 10, (20,)))
            loader = torch.utils.data.DataLoader(data, 8, shuffle=True, num_workers=1)
            criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
            optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4)
            schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 2)
            for _ in range(2):
                model.train()
                for images, labels in loader:
                    loss = criterion(model(images), labels)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                schedule.step()
                model.eval()
                with torch.inference_mode():
                    for images, labels in loader:
                        criterion(model(images), labels)
            return model

        self.assertTrue(self.compare(program))

    @needs("timm")
    def test_a_model_optimizer_and_schedule_of_timm(self):
        import timm
        import timm.optim
        import timm.scheduler

        def program(line):
            torch.manual_seed(3)
            model = line(timm.create_model("resnet10t", num_classes=10, drop_rate=0.1))
            optimizer = timm.optim.create_optimizer_v2(model, "adamw", 1e-3, 0.05)
            schedule = timm.scheduler.CosineLRScheduler(optimizer, 4, warmup_t=1)
            images, labels = torch.randn(8, 3, 64, 64), torch.randint(0, 10, (8,))
            for epoch in range(3):
                functional.cross_entropy(model(images), labels).backward()
                timm.utils.dispatch_clip_grad(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
                schedule.step(epoch + 1)
            return model.train()

        self.assertTrue(self.compare(program))


if __name__ == "__main__":
    unittest.main()
