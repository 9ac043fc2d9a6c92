#include "src/cli/flags/bucket_flag.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "um/bytes.h"

namespace spillway::cli {
namespace {

std::string check_bucket(const std::string& text) {
  const auto size = um::parse_bytes(text);
  if (size && *size > um::Bytes{}) return {};
  return "'" + text + "' is no size of a bucket: give one such as 25MiB";
}

}  // namespace

CLI::Option* BucketFlag::add_to(CLI::App& app, const std::string& group) {
  return app
      .add_option("--bucket", size,
                  "Gradients are exchanged in buckets of at least this size, in the order in which "
                  "they are complete; the first bucket has at least 1 MiB, or this if it is less")
      ->check(check_bucket)
      ->capture_default_str()
      ->group(group);
}

prefetch::BucketRule BucketFlag::rule() const {
  prefetch::BucketRule rule{.first = prefetch::BucketRule{}.first,
                            .others = um::parse_bytes(size).value()};
  rule.first = std::min(rule.first, rule.others);
  return rule;
}

}  // namespace spillway::cli
