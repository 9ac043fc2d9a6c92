#pragma once

#include <string_view>

namespace spillway::report_assets {

/// The files of src/report/page, and D3 with its licence, as they were when this was built.
extern const std::string_view kTemplate;
extern const std::string_view kStyle;
extern const std::string_view kScript;
extern const std::string_view kD3;
extern const std::string_view kLicense;

}  // namespace spillway::report_assets
