#include "src/dropin/open_device.h"

#include <charconv>
#include <memory>
#include <string_view>

#include "src/plugin/plug_in.h"
#include "um/dropin/allocations.h"
#include "um/host/host_device.h"

namespace spillway::dropin {
namespace {

const UmCudaPlugin& load_cuda() {
  const std::string file = "libspillway_um_cuda.so";
  void* const library = load_plug_in(
      {.file = file,
       .folders = {folder_of(reinterpret_cast<const void*>(&load_cuda))},  // this library's own
       .build_function = kUmCudaBuildFunction,
       .build = SPILLWAY_BUILD,
       .if_absent = "this build has no CUDA side (" + file +
                    " was not found); build it where nvcc is, or use the device \"host\"",
       .if_broken = "install it again, or use the device \"host\"",
       .if_foreign = "install both from the same, or use the device \"host\""});
  return *reinterpret_cast<UmCudaPluginFunction>(address_in(library, kUmCudaPluginFunction))();
}

int ordinal_in(const std::string& name) {
  if (name == "cuda") return 0;
  const std::string prefix = "cuda:";
  int ordinal = -1;
  const char* const end = name.data() + name.size();
  if (name.starts_with(prefix) && name.size() > prefix.size()) {
    const auto [rest, error] = std::from_chars(name.data() + prefix.size(), end, ordinal);
    if (error == std::errc{} && rest == end && ordinal >= 0) return ordinal;
  }
  throw um::Misuse{"there is no device \"" + name + R"("; use "host", "cuda" or "cuda:N")"};
}

}  // namespace

DropInDevice open_device(const std::string& name) {
  if (name == "host") {
    return {.device = std::make_unique<um::HostDevice>(), .record = {}, .ordinal = -1};
  }
  const int ordinal = ordinal_in(name);
  return load_cuda().open(ordinal);
}

}  // namespace spillway::dropin
