"""Training and graphs with what autograd saves in a space: the same bits as without."""

import threading
import weakref

from hooks_case import Hooks

import spillway_um
import torch
from torch import nn


def small_network():
    """At a batch of 8 a unit saves two blocks of 8 x 8 x 16 x 16 floats, 64 KiB: the convolution's
    input, which is the last one's ReLU output, too, and BatchNorm's input. The rest is smaller."""
    def unit(channels):
        return nn.Conv2d(channels, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True)
    return nn.Sequential(*unit(3), *unit(8), *unit(8), *unit(8), nn.MaxPool2d(2), nn.Dropout(),
                         nn.Conv2d(8, 8, 3), nn.Sigmoid(), nn.Flatten(), nn.Linear(8 * 6 * 6, 4))


def train(context, batches, network=small_network, loss_of=nn.functional.cross_entropy):
    """Losses of each step and all gradients of the last; `context` makes what forward runs in."""
    torch.manual_seed(3)
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for batch in batches:
        images, labels = torch.randn(batch, 3, 16, 16), torch.randint(4, (batch,))
        optimizer.zero_grad()
        with context(model):
            loss = loss_of(model(images), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [p.grad.clone() for p in model.parameters()]


def without_hooks(model):
    return torch.enable_grad()


class Training(Hooks):
    def test_gives_the_same_bits_with_a_third_near(self):
        plain = train(without_hooks, [8] * 4)
        for options in ({}, {"far": "/tmp"}):
            self.space = self.make_space(**options)
            saved = self.saved()
            self.expect_same(train(lambda model: saved, [8] * 4), plain)
            counters = self.space.counters()
            self.assertLessEqual(counters["near_peak_bytes"], 192 << 10)
            # 8 blocks of 64 KiB are saved; no more than 3 of them stay near.
            self.assertGreater(counters["bytes_offloaded"], 4 * 5 * (64 << 10))
            self.assertGreater(counters["bytes_prefetched"], 4 * 5 * (64 << 10))
            self.expect_nothing_left()

    def test_knows_the_order_from_the_second_step_on(self):
        saved = self.saved()
        train(lambda model: saved, [8] * 4)
        first = self.make_space()
        self.saved(first)
        train(lambda model: self.saved(first), [8])
        counters, of_first = saved.counters(), self.saved(first).counters()
        self.assertEqual((counters["steps"], counters["recognised_steps"]), (4, 3))
        self.assertGreater(of_first["surprises"], 0)  # BatchNorm's order is no chain's
        self.assertEqual(counters["surprises"], of_first["surprises"])
        self.assertEqual(counters["uses"], 4 * of_first["uses"])
        self.assertEqual(counters["uses"], sum(counters[name] for name in
                                               ("again", "hits", "late", "misses")))
        self.assertGreater(counters["hits"] + counters["late"], 3 * counters["misses"])

    def test_knows_batches_that_take_turns(self):
        batches = [8, 8, 3, 8, 3]
        saved = self.saved()
        self.expect_same(train(lambda model: saved, batches), train(without_hooks, batches))
        self.assertEqual(saved.counters()["recognised_steps"], 3)

    def test_learns_across_managers_made_anew(self):
        self.expect_same(train(lambda model: self.saved(), [8] * 3), train(without_hooks, [8] * 3))
        self.assertEqual(self.saved().counters()["recognised_steps"], 2)

    def test_may_run_backward_inside(self):
        def loss_of(output, labels):
            loss = nn.functional.cross_entropy(output, labels)
            loss.backward(retain_graph=True)
            return loss
        saved = self.saved()
        self.expect_same(train(lambda model: saved, [8] * 3, loss_of=loss_of),
                         train(without_hooks, [8] * 3, loss_of=loss_of))
        self.expect_nothing_left()

    def test_in_two_threads_gives_the_same_bits(self):
        plain, results = [], {}
        for seed in (1, 2):
            generator = torch.Generator().manual_seed(seed)
            plain.append(torch.randn(64, 256, generator=generator))

        def gradient(x, context):
            x = x.clone().requires_grad_()
            with context:
                y = (x * 2).sigmoid().exp().tanh().sum()
            y.backward()
            return x.grad

        def work(number):
            results[number] = [gradient(plain[number], self.saved()) for _ in range(10)]
        threads = [threading.Thread(target=work, args=(number,)) for number in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for number in (0, 1):
            expected = gradient(plain[number], torch.enable_grad())
            self.assertEqual(len(results[number]), 10)
            for each in results[number]:
                self.assertTrue(torch.equal(each, expected))
        self.expect_nothing_left()


class Graphs(Hooks):
    def forward(self, saved, rows=64):
        """Saves a tensor of rows x 64 floats twice (sigmoid's, exp's: two blocks)."""
        x = torch.linspace(-1, 1, rows * 64).view(rows, 64).requires_grad_()
        with saved:
            return x, (x * 1).sigmoid().exp().sum()

    def gradient(self, rows=64):
        x, y = self.forward(torch.enable_grad(), rows)
        y.backward()
        return x.grad

    def test_may_run_twice_when_retained(self):
        x, y = self.forward(self.saved())
        y.backward(retain_graph=True)
        y.backward()
        self.assertTrue(torch.equal(x.grad, 2 * self.gradient()))
        self.expect_nothing_left()

    def test_that_never_run_backward_leave_nothing(self):
        saved = self.saved()
        for _ in range(3):
            self.forward(saved)
        self.expect_nothing_left()
        self.assertEqual(saved.counters()["uses"], 0)

    def test_of_several_steps_may_be_open(self):
        saved = self.saved()
        (a, first), (b, second), (c, third) = (self.forward(saved, rows) for rows in (64, 96, 32))
        second.backward()
        (first + third).backward()
        for x, rows in ((a, 64), (b, 96), (c, 32)):
            self.assertTrue(torch.equal(x.grad, self.gradient(rows)))
        self.expect_nothing_left()

    def test_end_with_their_last_tensor_when_small_outputs_stay(self):
        with self.saved():
            y = torch.zeros(8, requires_grad=True).sigmoid()
        gone = weakref.ref(y)
        del y
        self.assertIsNone(gone())

    def test_may_be_differentiated_twice(self):
        def second_derivative(context):
            x = torch.linspace(-1, 1, 4096).requires_grad_()
            with context:
                y = (x * x).sigmoid().sum()
                gradient, = torch.autograd.grad(y, x, create_graph=True)
                z = (gradient * gradient).sum()
            z.backward()
            return x.grad
        self.assertTrue(torch.equal(second_derivative(self.saved()),
                                    second_derivative(torch.enable_grad())))
        self.expect_nothing_left()

    def test_survive_an_exception_in_the_body(self):
        saved = self.saved()
        with self.assertRaisesRegex(ValueError, "mine"), saved:
            x = torch.ones(4096, requires_grad=True)
            kept = x.exp()
            raise ValueError("mine")
        (x * 2).exp().sum().backward()  # no hooks any more
        self.assertEqual(saved.counters()["saved"], 1)
        kept.sum().backward()
        del kept
        self.expect_nothing_left()

    def test_may_be_made_in_nested_blocks(self):
        saved = self.saved()
        with saved:
            x, y = self.forward(saved)
            z = (y * x).sum()
        z.backward()
        plain, y = self.forward(torch.enable_grad())
        (y * plain).sum().backward()
        self.assertTrue(torch.equal(x.grad, plain.grad))
        self.assertEqual(saved.counters()["steps"], 1)
        self.expect_nothing_left()

    def test_of_a_closed_space_say_so(self):
        _, y = self.forward(self.saved())
        self.space.close()
        with self.assertRaisesRegex(RuntimeError, "the space is closed; keep it open"):
            y.backward()  # PyTorch makes a RuntimeError of it
        with self.assertRaisesRegex(spillway_um.Error, "the space is closed"):
            self.saved().__enter__()

    def test_that_do_not_fit_say_so(self):
        self.space = self.make_space(capacity="192KiB")
        with self.assertRaisesRegex(RuntimeError, "no room for .* make a space of more cap"):
            self.forward(self.saved(), rows=1024)
        self.assertTrue(torch.equal(self.gradient(), self.gradient()))  # hooks are gone
