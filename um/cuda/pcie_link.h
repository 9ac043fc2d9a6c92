#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace spillway::um {

/// The PCI Express link of the device at `bus` ("0000:1B:00.0"), as Linux has it: "32.0 GT/s PCIe
/// x16 (of 32.0 GT/s PCIe x16)". Idle links run slower than they can. Nothing where Linux does not
/// say, as in many containers.
[[nodiscard]] std::optional<std::string> pcie_link(
    const std::string& bus, const std::filesystem::path& devices = "/sys/bus/pci/devices");

}  // namespace spillway::um
