#pragma once

using cudnnHandle_t = struct SpillwayCudnn*;  // always null: our kernels do not call cuDNN
