#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace spillway::golden {

/// The lines of golden/cudnn_h200.txt, from the cuDNN that is installed: first its version, how
/// the file was written, then
/// "NETWORK PRECISION LAYER PASS ALGORITHM:BYTES ..." for each pass of each convolution of VGG-16
/// and ResNet-50, batch 64, at most 1 GiB of workspace. `properties` describe the device.
[[nodiscard]] std::vector<std::string> cudnn_listing(std::string_view properties);

/// Its first line.
[[nodiscard]] std::string cudnn_version_line();

}  // namespace spillway::golden
