#include "src/cli/flags/rank_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "src/cli/flags/flag_values.h"
#include "src/cli/flags/memory_flags.h"
#include "src/ranks/rank_names.h"
#include "um/bytes.h"
#include "um/error.h"
#include "um/text/wording.h"

namespace spillway::cli {
namespace {

std::string check_bucket(const std::string& text) {
  const auto size = um::parse_bytes(text);
  if (text == "auto" || (size && *size > um::Bytes{})) return {};
  return "'" + text + "' is no size of a bucket: give one such as 25MiB, or auto";
}

constexpr std::uint32_t kMostRanks = 65'536;
constexpr um::Bandwidth kSlowest{1e6};
constexpr um::Nanoseconds kLongestLatency{1'000'000'000};

std::string check_planned_ranks(const std::string& text) {
  const std::size_t number = parse_rank_count(text).value_or(0);
  if (number > 0 && number <= kMostRanks) return {};
  return "'" + text + "' is no number of ranks: give a whole number from 1 to " +
         std::to_string(kMostRanks);
}

std::string check_interconnect(const std::string& text) {
  std::string complaint = check_bandwidth(text);
  if (complaint.empty() && *um::parse_bandwidth(text) < kSlowest) {
    complaint = "'" + text + "' is too slow for ranks: give at least 1MB/s";
  }
  return complaint;
}

std::string check_latency(const std::string& text) {
  const auto time = parse_duration(text);
  if (time && *time <= kLongestLatency) return {};
  return "'" + text + "' is no latency of up to a second: give one such as 5us";
}

std::string check_speed(const std::string& text) {
  if (within(SettingRange<float>{.most = 1, .is_above_least = true})(text).empty()) return {};
  return "'" + text + "' is no speed relative to 1: give a number above 0, at most 1";
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

CLI::Option* ZeroFlag::add_to(CLI::App& app, const std::string& group) {
  return app
      .add_option(
          "--zero", stage,
          "1: each rank keeps a slice of the optimizer's numbers and updates that slice of "
          "the weights, which ranks then exchange (ZeRO, stage 1): the results are the same "
          "bits. As much is sent as without, but half as much again with --clip-norm or "
          "--reduction fastest. 0: every rank keeps all of them")
      ->check(CLI::IsMember({std::size_t{0}, std::size_t{1}}))
      ->type_name("STAGE")
      ->capture_default_str()
      ->group(group);
}

void RankFlags::add_to(CLI::App& app) {
  app.add_option("--ranks", ranks,
                 "Plan the step of one of so many processors that train together, each with its "
                 "own --batch: gradients become sums over all of them by a ring all-reduce, bucket "
                 "by bucket, beside the rest of the backward pass")
      ->check(check_planned_ranks)
      ->capture_default_str()
      ->group(kRanksHeading);
  app.add_option("--interconnect", bandwidth,
                 "Bandwidth between ranks: what each one sends, and as much that it receives, "
                 "e.g. 25GB/s")
      ->check(check_interconnect)
      ->group(kRanksHeading);
  app.add_option("--interconnect-latency", latency, "Latency of a message from a rank to the next")
      ->check(check_latency)
      ->capture_default_str()
      ->group(kRanksHeading);
  app.add_option("--exchange-on", exchange_on,
                 "link: what ranks exchange crosses the link between near and far memory, beside "
                 "the moves, as to a network card behind the same PCIe slot; own: it has a way of "
                 "its own, as NVLink")
      ->check(CLI::IsMember({"link", "own"}))
      ->capture_default_str()
      ->group(kRanksHeading);
  app.add_option("--compute-speed-while-exchanging", compute_speed,
                 "How fast tasks run while ranks exchange something, relative to undisturbed: 1 "
                 "where no processor that computes does that; spillway profile --ranks auto "
                 "measures it")
      ->check(check_speed)
      ->type_name("FRACTION")
      ->capture_default_str()
      ->group(kRanksHeading);
  bucket.add_to(app, kRanksHeading);
  zero.add_to(app, kRanksHeading);
  for (const char* name : {"--interconnect", "--interconnect-latency", "--exchange-on",
                           "--compute-speed-while-exchanging", "--bucket", "--zero"}) {
    between_.push_back(app.get_option(name)->needs("--ranks"));
  }
}

void RankFlags::expect_used() const {
  if (are_several() && !um::parse_bandwidth(bandwidth)) {
    throw um::Error{"--ranks " + std::to_string(ranks) +
                    " needs the bandwidth between them: give --interconnect, such as 25GB/s"};
  }
  if (are_several()) return;
  for (const CLI::Option* const option : between_) {
    if (option->count() == 0) continue;
    throw um::Error{option->get_name() +
                    " says how several ranks exchange gradients; leave it out, or give --ranks 2 "
                    "or more"};
  }
}

prefetch::Interconnect RankFlags::interconnect() const {
  return {.ranks = ranks,
          .bandwidth = um::parse_bandwidth(bandwidth).value(),
          .latency = parse_duration(latency).value(),
          .shares_link = exchange_on == "link",
          .compute_speed = compute_speed};
}

void expect_exchangeable(const PlanRequest& request) {
  if (request.memory == MemoryMode::kManaged && request.planner->name() == "on-demand") {
    throw um::Error{
        "page faults alone (--planner on-demand) are predicted for one rank only; leave out "
        "--ranks, or take another planner or --memory copy"};
  }
}

}  // namespace spillway::cli
