#pragma once

using cublasLtHandle_t = struct cublasLtContext*;  // our kernels do not call cuBLAS
