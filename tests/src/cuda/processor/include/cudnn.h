#pragma once

using cudnnHandle_t = struct cudnnContext*;  // our kernels do not call cuDNN
