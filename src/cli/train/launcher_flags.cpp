#include "src/cli/train/launcher_flags.h"

#include <sched.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>

#include "src/cli/flags/device_flags.h"
#include "src/cli/flags/flag_values.h"
#include "src/cli/terminal/terminal.h"
#include "src/ranks/collectives.h"
#include "src/ranks/mpi/open_mpi.h"
#include "src/ranks/rank_names.h"
#include "um/error.h"

namespace spillway::cli {
namespace {

constexpr std::size_t kMostUsual = 8;  // micro-batches

std::string check_started_ranks(const std::string& text) {
  if (text == "auto" || parse_rank_count(text).value_or(0) > 0) return {};
  return "'" + text + "' is no number of ranks: give auto, or as many as mpirun starts";
}

std::string check_time_limit(const std::string& text) {
  const auto time = parse_duration(text);
  if (time && *time >= std::chrono::seconds{1}) return {};
  return "'" + text + "' is no time limit: give at least a second, such as 30s";
}

// Returns the processors that this process may use, as text.
std::string usable_processors() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  std::string text;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return text;
  for (std::size_t i = 0; i < CPU_SETSIZE; ++i) text += CPU_ISSET(i, &allowed) ? '1' : '0';
  return text.substr(0, text.find_last_of('1') + 1);
}

// Checks --ranks auto in a process that no MPI launcher started.
void expect_alone() {
  const auto announced = announced_ranks();
  if (!announced) {
    tell("note: --ranks auto trains with this process alone: no mpirun or srun started others\n");
    return;
  }
  throw um::Error{announced->variable + " announces " + std::to_string(announced->ranks) +
                  " processes, but MPI knows of no other, so that each would train alone: start "
                  "them with " +
                  announced->start +
                  " spillway train ... --ranks auto, or give --ranks 1 to train alone"};
}

}  // namespace

void LauncherFlags::add_to(CLI::App& app) {
  app.add_option("--ranks", ranks_,
                 "Train together with the other processes that mpirun or srun started, each of "
                 "which has some micro-batches of every batch: auto, or their number. --batch is "
                 "that of all of them, and --budget that of each; with --device cuda each has a "
                 "GPU. Results depend on --micro-batches (here by default the largest power of "
                 "two, at most 8, that divides the batch), and not on the ranks")
      ->check(check_started_ranks)
      ->type_name("N")
      ->group(kRanksHeading);
  const auto between = [&](const CLI::Option* option) { between_ranks_.push_back(option); };
  between(bucket_.add_to(app, kRanksHeading));
  between(app.add_option("--reduction", reduction_,
                         "tree: gradients are added up in the order of the micro-batches, for the "
                         "same bits with any number of ranks; fastest: as MPI or NCCL likes")
              ->check(CLI::IsMember({"tree", "fastest"}))
              ->capture_default_str()
              ->group(kRanksHeading));
  between(zero_.add_to(app, kRanksHeading));
  between(
      app.add_option(
             "--rank-timeout", time_limit_,
             "End the training when nothing comes from a rank for so long, e.g. 600s: more than "
             "the first one takes to write a checkpoint, or to choose --bucket auto")
          ->check(check_time_limit)
          ->capture_default_str()
          ->group(kRanksHeading));
}

void LauncherFlags::expect_used() const {
  if (!ranks_.empty()) return;
  for (const CLI::Option* const option : between_ranks_) {
    if (option->count() == 0) continue;
    throw um::Error{option->get_name() +
                    " is about what ranks tell each other; leave it out, or give --ranks"};
  }
}

CommunicatorOptions LauncherFlags::limits() const {
  return {.time_limit = std::chrono::duration_cast<std::chrono::milliseconds>(
              parse_duration(time_limit_).value())};
}

std::unique_ptr<Communicator> LauncherFlags::open() {
  if (ranks_.empty()) {
    if (started_with_ranks()) {
      throw um::Error{
          "this process was started as one of several ranks, each of which would train for itself; "
          "give --ranks auto"};
    }
    return nullptr;
  }
  const std::optional<std::size_t> wanted = parse_rank_count(ranks_);
  if (!started_with_ranks()) {
    if (!wanted) expect_alone();
    if (wanted.value_or(1) == 1) return nullptr;
    throw um::Error{"--ranks " + ranks_ + " is for so many processes: start them with mpirun -n " +
                    ranks_ + " spillway train ... --ranks auto"};
  }
  std::unique_ptr<Communicator> opened = open_mpi(limits());
  if (wanted && *wanted != opened->size()) {
    throw um::Error{"--ranks " + ranks_ + ", but the launcher started " +
                    std::to_string(opened->size()) + "; give --ranks auto, or start as many"};
  }
  return opened;
}

void LauncherFlags::join() {
  expect_used();
  mpi_ = open();
}

std::size_t LauncherFlags::usual_micro_batches(std::size_t batch) {
  std::size_t count = 1;
  while (2 * count <= kMostUsual && batch % (2 * count) == 0) count *= 2;
  return count;
}

void LauncherFlags::choose_share(DeviceFlags& device) const {
  if (!are_given()) return;
  if (device.threads == 0) device.threads = static_cast<int>(own_processors());
  device.device = device_of_rank(device.device, communicator());
}

RankOptions LauncherFlags::options(const std::string& arguments, const std::string& device,
                                   bool cuts_batches) const {
  if (!are_given() && !cuts_batches) return {};
  if (!are_given()) return {.join_devices = joining_of(device, self_communicator(), {})};
  RankOptions options{
      .communicator = communicator(),
      .join_devices = joining_of(device, communicator(), limits()),
      .buckets = bucket_.rule(),
      .chooses_buckets = bucket_.is_auto(),
      .reduction = reduction_ == "tree" ? RankReduction::kTree : RankReduction::kFastest,
      .divides_optimizer = zero_.divides_optimizer()};
  if (communicator().size() > 1) options.agreement = agreement_of_ranks(arguments, device);
  return options;
}

// Returns this rank's share of the processors that it may use.
std::size_t LauncherFlags::own_processors() const {
  const std::string own = usable_processors();
  const auto processors = static_cast<std::size_t>(std::ranges::count(own, '1'));
  const std::string place = communicator().node() + " " + own;
  const std::vector<std::string> places = all_gather_texts(communicator(), place);
  const auto sharing = static_cast<std::size_t>(std::ranges::count(places, place));
  return std::max(processors / sharing, std::size_t{1});
}

}  // namespace spillway::cli
