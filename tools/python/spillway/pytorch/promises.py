"""What is said of budgets that are not kept, or not as they were asked for: why, and what to do."""

from torch.nn.parallel import DistributedDataParallel

UNKEPT = "no budget is kept: "
SIZES_CHANGE = ("sizes have changed from call to call more often than plans are made; pad the "
                "batches, or drop the last")
SEVERAL_GRAPHS = ("the model has several graphs, and a plan is of one; TORCH_LOGS=graph_breaks "
                  "says where it is cut")
INSIDE_DDP = ("; DistributedDataParallel is inside what is compiled: call "
              "model.compile(backend=\"spillway\"), and give DistributedDataParallel that model")
OUTSIDE_GRAPHS = ("{} run outside of the graphs that Dynamo captures; TORCH_LOGS=graph_breaks says "
                  "why")
NOTHING_CAPTURED = ("Dynamo captures nothing of the model (TORCH_LOGS=graph_breaks says why, such "
                    "as a break in a loop), or the program calls another than the compiled one")
ONE_NOT_CAPTURED = ("Dynamo does not capture this call, as when sizes have changed too often "
                    "(TORCH_LOGS=recompiles says why); pad the batches, or drop the last")
COPIED = ("the model is a copy of a compiled one, by copy.deepcopy() or torch.load(), which "
          "PyTorch leaves uncompiled; call compile(backend=\"spillway\") of the copy")
OWN_HOOKS = ("hooks on saved tensors are around the call, such as those of torch.utils.checkpoint "
             "or save_on_cpu(); call the model outside of them")
PROFILED = ("new operators cannot be measured while PyTorch's profiler is running; make the first "
            "call of each size outside of it")
BUSY = ("other threads' operators left no moment to count what the program holds; make the first "
        "call of each size before other threads begin")
RETAINED = ("backward(retain_graph=True), or with create_graph=True, keeps what the plan lets go; "
            "add losses before one backward pass instead")
TWO_PASSES = ("a forward pass began before the backward pass of the one before it, or in another "
              "thread beside it; the budget counts the activations of one (torch.no_grad() is for "
              "passes without a backward)")
GROWS = ("the program holds more tensors from call to call; keep numbers (loss.item()) or detached "
         "tensors, and no more of them than are needed")
GROWN = ("the program holds {} more than when the budget was planned; calls since then may have "
         "exceeded it, and it is planned anew; make what the program keeps before the first call")
LATE_OPTIMIZER = ("an optimizer was made, or given parameters, after the budget was planned; its "
                  "first step may exceed the budget, which is planned anew; make the optimizer "
                  "before the model's first call")
RAISED = ("a budget of {} is {} here, too small for a step of this model; the smallest that works "
          "is kept instead: {}")
HOLDS_RESULTS = ("; in the step before, the program held what the model returns beside its loss: "
                 "keep the loss alone (loss = model(...).loss), and less is needed")


def hint_of_ddp():
    """More of the reason where DistributedDataParallel calls the model now."""
    active = getattr(DistributedDataParallel, "_get_active_ddp_module", lambda: None)()
    return INSIDE_DDP if active is not None else ""
