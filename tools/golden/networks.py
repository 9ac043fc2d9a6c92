"""The networks of the golden files, as tests/golden/networks.cpp writes them down for Spillway."""


def chain(net, x):
    """LeNet with more kinds of layers in a row, most of them of odd sizes."""
    x = net.relu(net.convolution("conv1", x, 6, kernel=5, padding=2))
    x = net.dropout(net.max_pool(x, kernel=2, stride=2))
    x = net.convolution("conv2", x, 7, kernel=(3, 2), padding=(1, 0))
    x = net.relu(net.average_pool(x, kernel=3, stride=2, padding=1))
    x = net.dropout(x.flatten(1))
    x = net.relu(net.linear("fc1", x, 10))
    return net.linear("fc2", x, 5, bias=False)


def residual(net, x):
    """A residual network: a block with an identity, and one with a projection and a stride."""

    def unit(name, x, kernel, stride=1):
        x = net.convolution(name, x, 16, kernel, stride, padding=kernel // 2, bias=False)
        return net.batch_norm(name + ".norm", x)

    x = net.max_pool(net.relu(unit("stem", x, 3)), kernel=3, stride=2, padding=1)
    y = net.relu(unit("block1.conv1", x, 3))
    x = net.relu(unit("block1.conv2", y, 3) + x)
    y = net.relu(unit("block2.conv1", x, 3, stride=2))
    x = net.relu(unit("block2.conv2", y, 3) + unit("block2.project", x, 1, stride=2))
    return net.linear("fc", net.global_average_pool(x), 5)


def joined(net, x):
    """Concats of odd numbers of channels, of values that others read too, of a value twice and of the
    image; local response norms; long kernels; windows that stick out and padding that counts."""
    image = x
    x = net.relu(net.convolution("stem", x, 7, kernel=3, padding=1))
    x = net.max_pool(net.local_response_norm(x, 5, 2.0, 0.75, 1.0), 3, 2, rounds_up=True)
    a = net.relu(net.convolution("across", x, 5, kernel=(1, 7), padding=(0, 3)))
    dense = net.relu(net.batch_norm("dense.norm", net.concat(x, a)))
    b = net.convolution("down", dense, 4, kernel=(7, 1), padding=(3, 0), bias=False)
    mean = net.average_pool(x, kernel=3, stride=1, padding=1, counts_padding=True)
    all_parts = net.concat(x, a, b, mean, a, net.average_pool(image, kernel=2, stride=2))
    y = net.local_response_norm(all_parts, 3, 1.0, 0.5, 0.5)
    y = net.relu(net.concat(y, net.convolution("wide", all_parts, 6, kernel=5, padding=2)))
    return net.linear("fc", net.global_average_pool(y), 5)


def branches(net, x):
    """Values with up to three readers, sums in place and not, with and without ReLU, and of a value
    with itself; ReLUs of what shares its memory with a value that is read again later."""
    x = net.convolution("conv", x, 4, kernel=3, padding=1)
    y = net.relu(x) + net.batch_norm("norm", x)
    x = net.relu(y + net.average_pool(x, kernel=3, stride=1, padding=1))
    y = net.relu(net.convolution("side", x, 4, kernel=1, bias=False))
    x = ((x + x) + y) + x
    x = net.max_pool(x, kernel=2, stride=2) + net.convolution("shrink", x, 4, 2, 2, bias=False)
    x = net.batch_norm("even", net.relu(net.dropout(x)) + x)
    flat = net.relu(x.flatten(1))
    y = net.linear("fc1", flat, 4) + net.linear("fc2", flat, 4, bias=False)
    return y + net.linear("fc3", net.global_average_pool(x), 4)
