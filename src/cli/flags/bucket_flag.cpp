#include "src/cli/flags/bucket_flag.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "um/bytes.h"
#include "um/text/wording.h"

namespace spillway::cli {
namespace {

std::string check_bucket(const std::string& text) {
  const auto size = um::parse_bytes(text);
  if (text == "auto" || (size && *size > um::Bytes{})) return {};
  return "'" + text + "' is no size of a bucket: give one such as 25MiB, or auto";
}

}  // namespace

CLI::Option* BucketFlag::add_to(CLI::App& app, const std::string& group) {
  return app
      .add_option("--bucket", size,
                  "Gradients are exchanged in buckets of at least this size, in the order in which "
                  "they are complete; the first bucket has at least 1 MiB, or this if it is less. "
                  "auto: the sizes whose plan is fastest, after some plans more")
      ->check(check_bucket)
      ->capture_default_str()
      ->group(group);
}

prefetch::BucketRule BucketFlag::rule() const {
  if (is_auto()) return {};
  prefetch::BucketRule rule{.first = prefetch::BucketRule{}.first,
                            .others = um::parse_bytes(size).value()};
  rule.first = std::min(rule.first, rule.others);
  return rule;
}

nlohmann::json buckets_json(const prefetch::TaskGraph& graph, const prefetch::BucketRule& rule,
                            bool is_chosen) {
  return {{"gradient_buckets", prefetch::count_buckets(graph)},
          {"bucket_choice", is_chosen ? "auto" : "given"},
          {"first_bucket_bytes", rule.first.count()},
          {"bucket_bytes", rule.others.count()}};
}

std::string describe_buckets(const nlohmann::json& buckets) {
  const um::Bytes first{buckets.at("first_bucket_bytes").get<std::uint64_t>()};
  const um::Bytes others{buckets.at("bucket_bytes").get<std::uint64_t>()};
  const auto count = buckets.at("gradient_buckets").get<std::size_t>();
  std::string text = um::count_of(count, "bucket");
  if (count > 1) text += " of at least " + um::to_string(others);
  if (count > 1 && first != others) text += ", the first of " + um::to_string(first);
  return buckets.at("bucket_choice") == "auto" ? text + " (auto)" : text;
}

}  // namespace spillway::cli
