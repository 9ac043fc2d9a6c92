#pragma once

using cudnnHandle_t = struct SpillwayCudnn*;  // always null: no kernel of ours calls cuDNN
