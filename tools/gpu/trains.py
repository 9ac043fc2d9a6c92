"""The first stages: does it train at all? Three small networks in each memory mode."""

from gpu_bench import GRACE, HOST, Failure, TimeIsUp

STEPS = 5
MOST = 20  # seconds of one training; on a GPU it takes a few, most of which load CUDA's libraries
NETWORKS = {
    "lenet": ["--net", "lenet", "--batch", 32],
    "resnet18": ["--net", "resnet18", "--image-size", 64, "--batch", 16],
    "gpt": ["--net", "gpt:2,2,64,64", "--vocabulary", 256, "--batch", 8],
}
STAGE_MOST = 2 * len(NETWORKS) * MOST + GRACE  # each training, and the host's beside it
# The same algorithms in each mode, so that bits are equal; a small rate, so that other rounding
# than the host's stays small.
EXACT = ["--precision", "fp32", "--deterministic", "--conv-algorithm", "direct", "--seed", 1,
         "--lr", 0.001, "--steps", STEPS]
BUDGETS = {memory: ["--budget", "min+50%"] for memory in ("copy", "managed")}
CLOSE = 1e-3  # how far a loss may be from the host's, as a part of it


def are_close(losses, expected):
    return len(losses) == len(expected) and all(
        loss is not None and abs(loss - other) <= CLOSE * max(1, abs(other))
        for loss, other in zip(losses, expected))  # None: not a number


def workload_of(bench, network):
    if bench.emulated and network == "gpt":
        return bench.emulated.GPT
    if bench.emulated and network in bench.emulated.BATCHES:
        net, batch = bench.network(network, 0)
        return ["--net", net, "--batch", batch]
    return NETWORKS[network]


def losses_in(bench, network, memory):
    """Those of a training, which is run once; "host" is a memory mode, too. Throws: Failure, and
    TimeIsUp where the stage has no time left for it."""
    if (network, memory) not in bench.losses:
        where = {"device": HOST} if memory == "host" else {}
        flags = ["--memory", "resident" if memory == "host" else memory, *BUDGETS.get(memory, [])]
        try:
            run = bench.train([*workload_of(bench, network), *EXACT], flags, **where, most=MOST)
        except TimeIsUp:
            bench.seconds_left()
            raise Failure(f"it did not end within {bench.patience * MOST} s") from None
        bench.losses[network, memory] = [step["loss"] for step in run["steps"]]
    return bench.losses[network, memory]


def trains_in(memory):
    """The stage of one memory mode. One network that fails does not stop the others."""
    def check_trains(bench, check):
        wrong = []
        for network in NETWORKS:
            try:
                losses = check.data[network] = losses_in(bench, network, memory)
                verdict = judge(losses, losses_in(bench, network, "host"),
                                bench.losses.get((network, "resident")))
            except Failure as failure:
                verdict = str(failure)
            check.row(f"{network} trains, {memory}", verdict or f"loss {losses[-1]:.6f}",
                      not verdict)
            if verdict:
                wrong.append(network)
        if wrong:
            raise Failure(f"{', '.join(wrong)}: no result, or other losses than the host's or "
                          "those of other memory modes")
    return check_trains


def known_losses(results):
    """What an earlier run found, as Bench.losses has it."""
    return {(network, memory): losses for memory in ("resident", "copy", "managed")
            if results.status(f"trains {memory}") == "passed"
            for network, losses in results.checks[f"trains {memory}"].data.items()}


def judge(losses, of_host, resident):
    """What is wrong with them; nothing where all is well."""
    if not are_close(losses, of_host):
        return f"losses {losses}, and the host's are {of_host}"
    if resident is not None and losses != resident:
        return f"losses {losses}, and the resident run's are {resident}"
    return ""
