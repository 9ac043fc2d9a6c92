#pragma once

using cublasLtHandle_t = struct SpillwayCublas*;  // always null: our kernels do not call cuBLAS
