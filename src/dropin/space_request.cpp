#include "src/dropin/space_request.h"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "um/dropin/allocations.h"

namespace spillway::dropin {
namespace {

um::Paging paging_of(std::int32_t paging) {
  switch (paging) {
    case SPILLWAY_UM_PAGING_AUTO:
      return um::Paging::kAuto;
    case SPILLWAY_UM_PAGING_UFFD:
      return um::Paging::kUffdMove;
    case SPILLWAY_UM_PAGING_MEMFD:
      return um::Paging::kMemfdSegv;
  }
  throw um::Misuse{"there is no paging " + std::to_string(paging) +
                   "; use one of spillway_um_paging"};
}

um::LinkOptions link_of(double bytes_per_second) {
  if (bytes_per_second == 0) return {};
  if (!std::isfinite(bytes_per_second) || bytes_per_second < 0) {
    throw um::Misuse{"a link's bandwidth is a positive number of bytes a second, or 0"};
  }
  return {.bandwidth = um::Bandwidth{bytes_per_second}};
}

std::string text_or(const char* text, const char* otherwise) {
  return text == nullptr || *text == '\0' ? otherwise : text;
}

um::Bytes size_in(const char* variable, const char* text, const char* example) {
  if (const auto bytes = um::parse_bytes(text)) return *bytes;
  throw um::Misuse{std::string{variable} + "=" + text + " is no size; write " + example + ", say"};
}

um::Bytes bytes_in(const char* variable) {
  if (const char* const text = std::getenv(variable)) return size_in(variable, text, "2GiB");
  throw um::Misuse{std::string{"the default space has no size; set "} + variable +
                   "=2GiB, or call spillway_um_set_default"};
}

um::Bytes page_in_environment() {
  const std::string text = text_or(std::getenv("SPILLWAY_UM_PAGE"), "");
  return text.empty() ? um::Bytes{} : size_in("SPILLWAY_UM_PAGE", text.c_str(), "2MiB");
}

bool oversubscribes_in_environment() {
  const std::string text = text_or(std::getenv("SPILLWAY_UM_OVERSUBSCRIBE"), "0");
  if (text == "0" || text == "1") return text == "1";
  throw um::Misuse{"SPILLWAY_UM_OVERSUBSCRIBE=" + text + " is neither 0 nor 1"};
}

SpaceRequest checked(SpaceRequest request) {
  if (request.options.oversubscribe && request.device == "host") {
    throw um::Misuse{"the host keeps to its budget; oversubscribe is for a GPU"};
  }
  return request;
}

}  // namespace

SpaceRequest read_options(const spillway_um_options* options) {
  if (options == nullptr) throw um::Misuse{"no options; pass a spillway_um_options"};
  if (options->version != SPILLWAY_UM_OPTIONS_VERSION) {
    throw um::Misuse{"options of version " + std::to_string(options->version) +
                     "; this library knows version " + std::to_string(SPILLWAY_UM_OPTIONS_VERSION) +
                     ": fill them with spillway_um_options_init first"};
  }
  SpaceRequest request;
  request.device = text_or(options->device, "host");
  request.options.near = um::Bytes{options->near_bytes};
  request.options.capacity = um::Bytes{options->capacity_bytes};
  request.options.page = um::Bytes{options->page_bytes};
  request.options.far.file = text_or(options->far_path, "");
  request.options.link = link_of(options->link_bytes_per_second);
  request.options.paging = paging_of(options->paging);
  request.options.oversubscribe = options->oversubscribe != 0;
  return checked(std::move(request));
}

SpaceRequest read_environment() {
  SpaceRequest request;
  request.device = text_or(std::getenv("SPILLWAY_UM_DEVICE"), "cuda");
  request.options.near = bytes_in("SPILLWAY_UM_NEAR");
  request.options.capacity = bytes_in("SPILLWAY_UM_CAPACITY");
  request.options.page = page_in_environment();
  request.options.far.file = text_or(std::getenv("SPILLWAY_UM_FAR"), "");
  request.options.oversubscribe = oversubscribes_in_environment();
  return checked(std::move(request));
}

}  // namespace spillway::dropin
