#include "oar/distributed/missing.h"

#include <algorithm>
#include <thread>

#include "oar/base/error.h"
#include "oar/base/interrupt.h"
#include "oar/base/log.h"

namespace oar::distributed {
namespace {

using Clock = std::chrono::steady_clock;

std::string key_of(const char* what, size_t rank) {
  return std::string(what) + "/" + std::to_string(rank);
}

std::string list_of(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (i > 0) text += i + 1 == ranks.size() ? " and " : ", ";
    text += std::to_string(ranks[i]);
  }
  return text;
}

std::string seconds(Milliseconds time) {
  return format("{:.1f} s", static_cast<double>(time.count()) / 1000);
}

std::string call_text(const Failure& failure) {
  return std::to_string(failure.number) + ", " + failure.what;
}

// The values of the members under a key, as far as they come before the time-out.
std::vector<std::optional<std::string>> collect(Store& store, const char* what, size_t count,
                                                Milliseconds timeout, bool interruptible) {
  const Clock::time_point deadline = Clock::now() + timeout;
  std::vector<std::optional<std::string>> values(count);
  for (Milliseconds pause{1};; pause = std::min(pause * 2, Milliseconds(50))) {
    bool complete = true;
    for (size_t i = 0; i < count; ++i) {
      if (!values[i]) values[i] = store.find(key_of(what, i));
      complete = complete && values[i];
    }
    if (complete || Clock::now() >= deadline) return values;
    if (interruptible) poll_interrupt();
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace

void meet(Store& store, const GroupOptions& options, int rank) {
  const size_t count = options.ranks.size();
  store.set(key_of("here", static_cast<size_t>(rank)), "1");
  const auto here = collect(store, "here", count, options.timeout, true);
  std::vector<int> missing;
  for (size_t i = 0; i < count; ++i)
    if (!here[i]) missing.push_back(options.ranks[i]);
  user_check(
      missing.empty(), ErrorKind::Runtime,
      "rank {} has waited {} for {} of group {}, which did not come to the rendezvous at "
      "{}.\nhint: Check that all {} processes were started and that all make this group; look "
      "at the logs of those that are missing.",
      options.rank, seconds(options.timeout), list_of(missing), options.name, store.describe(),
      count);
}

void announce(Store* store, int rank, const Failure& failure) try {
  if (store != nullptr) store->set(key_of("waits", static_cast<size_t>(rank)), call_text(failure));
} catch (const Error& e) {
  log_debug("the rendezvous has gone, which `explain` will say: {}", e.text());
}

std::string explain(Store* store, const GroupOptions& options, const Failure& failure) {
  // Ranks reach their time-outs at slightly different moments; a broken connection is passed on in milliseconds.
  constexpr Milliseconds kGrace{1500};
  const std::string own = call_text(failure);
  std::vector<int> missing;
  std::string others, unknown;
  try {
    if (store != nullptr) {
      const size_t count = options.ranks.size();
      const auto waiting = collect(*store, "waits", count, kGrace, false);
      for (size_t i = 0; i < count; ++i) {
        if (!waiting[i])
          missing.push_back(options.ranks[i]);
        else if (*waiting[i] != own)
          others += format("\nRank {} is in call {}.", options.ranks[i], *waiting[i]);
      }
    }
  } catch (const Error& e) {
    unknown = format("\nWho is missing is not known: {}", e.text());
  }
  std::string whom = missing.empty() ? "the other ranks" : list_of(missing);
  if (!missing.empty())
    whom += missing.size() == 1 ? ", which has not come," : ", which have not come,";
  return format(
      "rank {} has waited {} for {} in call {} of group {}, {}.{}{}\n{} says: {}.\nhint: Look at the logs: a "
      "rank that has not come has ended, or is slower than the time-out, or does not make this call. "
      "OAR_CHECK_COLLECTIVES=1 compares the calls of all ranks.",
      options.rank, seconds(failure.waited), whom, failure.number, options.name, failure.what,
      others, unknown, options.backend, failure.engine);
}

std::string explain_message(const GroupOptions& options, int peer, const Failure& failure) {
  return format(
      "rank {} has waited {} for rank {} of group {} in {}.\n{} says: {}.\nhint: Look at the log of rank {}: "
      "it has ended, or it does not make the matching call.",
      options.rank, seconds(failure.waited), peer, options.name, failure.what, options.backend,
      failure.engine, peer);
}

std::string disagreement(const GroupOptions& options, const std::vector<std::string>& calls) {
  if (std::all_of(calls.begin(), calls.end(), [&](const std::string& c) { return c == calls[0]; }))
    return {};
  std::string text = "the ranks make different calls:";
  for (size_t i = 0; i < calls.size(); ++i)
    text += format("\n  rank {}: {}", options.ranks[i], calls[i]);
  return text +
         "\nhint: All ranks of a group must make the same calls in the same order, on tensors of the "
         "same shape and dtype.";
}

}  // namespace oar::distributed
