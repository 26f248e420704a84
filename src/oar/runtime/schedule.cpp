#include "oar/runtime/schedule.h"

#include <algorithm>
#include <numeric>

#include "oar/base/flags.h"

namespace oar {
namespace {

// Nanoseconds. Kernels that take longer use all threads themselves; slightly shorter ones do too, but to little effect.
constexpr double kUsesAllThreads = 40e3;
// The cost of starting lanes and waiting for them; and the least gain of a fork, as estimates are rough.
constexpr double kForkCost = 5e3, kLeastGain = 10e3, kLeastShare = 0.2;
// Launches of one fork: finding them takes time that grows with it.
constexpr size_t kLongestFork = 128;

double time_with(int threads, double alone) {
  return alone < kUsesAllThreads ? alone : std::max(kUsesAllThreads, alone / threads);
}

// Launches that may be reordered and run on one thread: no random numbers, no function of a user, nothing
// written outside, the same bits.
bool may_move(const Lowered& l, const Launch& launch) {
  if (!launch.kernel || !launch.op->is_built_in() || launch.sums_by_threads ||
      launch.op->has(Trait::Random | Trait::Exchanges) || is_update(*launch.op))
    return false;
  return std::all_of(launch.results.begin(), launch.results.end(), [&](int32_t place) {
    const Root& root = l.roots[static_cast<size_t>(l.places[static_cast<size_t>(place)].root)];
    return root.kind == Root::Arena || root.kind == Root::Output;
  });
}

// Launches from one on, in independent groups.
class Groups {
 public:
  Groups(const Lowered& l, std::vector<int32_t>& writers) : l_(l), writers_(writers) {}
  ~Groups() { clear(); }
  Groups(const Groups&) = delete;
  Groups& operator=(const Groups&) = delete;

  void restart(int32_t first) {
    clear();
    first_ = first;
    parent_.clear();
    times_.clear();
    roots_.clear();
    count_ = 0;
  }

  // False if the launch writes what another one here has written.
  bool add(int32_t launch) {
    const Launch& call = l_.launches[static_cast<size_t>(launch)];
    const auto own = static_cast<int32_t>(parent_.size());
    for (int32_t place : call.results)
      if (writers_[root(place)] >= 0) return false;
    parent_.push_back(own);
    times_.push_back(call.time);
    ++count_;
    for (const Operand& operand : call.operands)
      for (int32_t place : operand.ids)
        if (place != kNoValue && writers_[root(place)] >= 0) join(writers_[root(place)], own);
    for (int32_t place : call.results) {
      writers_[root(place)] = own;
      roots_.push_back(root(place));
    }
    return true;
  }

  size_t count() const { return count_; }

  // How long the groups take if each thread takes the longest remaining one.
  double time(int threads) const {
    std::vector<double> left;
    for (size_t i = 0; i < parent_.size(); ++i)
      if (parent_[i] == static_cast<int32_t>(i)) left.push_back(times_[i]);
    std::sort(left.begin(), left.end(), std::greater<>());
    std::vector<double> busy(static_cast<size_t>(threads), 0);
    for (double t : left) *std::min_element(busy.begin(), busy.end()) += t;
    return *std::max_element(busy.begin(), busy.end());
  }

  // The longest first: threads take them one by one.
  std::vector<std::vector<int32_t>> lanes() {
    std::vector<int32_t> order;
    std::vector<std::vector<int32_t>> of_root(parent_.size());
    for (size_t i = 0; i < parent_.size(); ++i) {
      const int32_t r = find(static_cast<int32_t>(i));
      if (of_root[static_cast<size_t>(r)].empty()) order.push_back(r);
      of_root[static_cast<size_t>(r)].push_back(first_ + static_cast<int32_t>(i));
    }
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return times_[static_cast<size_t>(a)] > times_[static_cast<size_t>(b)];
    });
    std::vector<std::vector<int32_t>> lanes;
    for (int32_t r : order) lanes.push_back(std::move(of_root[static_cast<size_t>(r)]));
    return lanes;
  }

 private:
  size_t root(int32_t place) const {
    return static_cast<size_t>(l_.places[static_cast<size_t>(place)].root);
  }
  int32_t find(int32_t i) {
    while (parent_[static_cast<size_t>(i)] != i) {
      int32_t& up = parent_[static_cast<size_t>(i)];
      up = parent_[static_cast<size_t>(up)];
      i = up;
    }
    return i;
  }
  void join(int32_t a, int32_t b) {
    a = find(a);
    b = find(b);
    if (a == b) return;
    times_[static_cast<size_t>(a)] += times_[static_cast<size_t>(b)];
    parent_[static_cast<size_t>(b)] = a;
    --count_;
  }
  void clear() {
    for (size_t r : roots_) writers_[r] = -1;
  }

  const Lowered& l_;
  std::vector<int32_t>& writers_;  // by root of memory: the launch here that writes it
  std::vector<size_t> roots_;
  int32_t first_ = 0;
  std::vector<int32_t> parent_;
  std::vector<double> times_;  // of a group, at its representative
  size_t count_ = 0;
};

// The forks that gain the most time together: gains_[i] is what can be gained in the launches before i.
class Choosing {
 public:
  Choosing(const Lowered& l, int threads)
      : l_(l),
        threads_(threads),
        gains_(l.launches.size() + 1, 0),
        from_(l.launches.size() + 1, -1),
        writers_(l.roots.size(), -1) {}

  // The beginnings and ends, from the last to the first.
  std::vector<std::pair<int32_t, int32_t>> run() {
    const auto count = static_cast<int32_t>(l_.launches.size());
    Groups groups(l_, writers_);
    for (int32_t i = 0; i < count; ++i) {
      const auto at = static_cast<size_t>(i);
      if (gains_[at] > gains_[at + 1]) take(i + 1, gains_[at], -1);
      look_from(i, groups);
    }
    std::vector<std::pair<int32_t, int32_t>> chosen;
    for (int32_t i = count; i > 0;) {
      const int32_t begin = from_[static_cast<size_t>(i)];
      if (begin >= 0) chosen.emplace_back(begin, i);
      i = begin >= 0 ? begin : i - 1;
    }
    return chosen;
  }

 private:
  void take(int32_t end, double gain, int32_t begin) {
    gains_[static_cast<size_t>(end)] = gain;
    from_[static_cast<size_t>(end)] = begin;
  }

  // Forks that begin with this launch.
  void look_from(int32_t begin, Groups& groups) {
    groups.restart(begin);
    double one_by_one = 0, alone = 0;
    const size_t last = std::min(l_.launches.size(), static_cast<size_t>(begin) + kLongestFork);
    for (auto i = static_cast<size_t>(begin); i < last; ++i) {
      const Launch& launch = l_.launches[i];
      if (!may_move(l_, launch) || !groups.add(static_cast<int32_t>(i))) return;
      one_by_one += time_with(threads_, launch.time);
      alone += launch.time;
      if (groups.count() < 2) continue;
      const double at_best = one_by_one - alone / threads_ - kForkCost;
      if (at_best < least(one_by_one)) continue;
      const double gain = one_by_one - groups.time(threads_) - kForkCost;
      if (gain < least(one_by_one)) continue;
      const double total = gains_[static_cast<size_t>(begin)] + gain;
      if (total > gains_[i + 1]) take(static_cast<int32_t>(i) + 1, total, begin);
    }
  }
  static double least(double time) { return std::max(kLeastGain, kLeastShare * time); }

  const Lowered& l_;
  const int threads_;
  std::vector<double> gains_;
  std::vector<int32_t> from_;  // by end: the begin of the fork that ends there; -1: none does
  std::vector<int32_t> writers_;
};

}  // namespace

Schedule Schedule::of(const Lowered& lowered, int threads) {
  Schedule made;
  if (threads < 2 || !flag<bool>("parallel_branches")) return made;
  const auto chosen = Choosing(lowered, threads).run();
  std::vector<int32_t> writers(lowered.roots.size(), -1);
  Groups groups(lowered, writers);
  for (auto it = chosen.rbegin(); it != chosen.rend(); ++it) {
    groups.restart(it->first);
    for (int32_t i = it->first; i < it->second; ++i) groups.add(i);
    made.forks_.push_back({it->first, it->second, groups.lanes()});
  }
  if (made.forks_.empty()) return made;
  made.fork_.assign(lowered.launches.size(), -1);
  made.lane_.assign(lowered.launches.size(), -1);
  for (size_t f = 0; f < made.forks_.size(); ++f)
    for (size_t lane = 0; lane < made.forks_[f].lanes.size(); ++lane)
      for (int32_t launch : made.forks_[f].lanes[lane]) {
        made.fork_[static_cast<size_t>(launch)] = static_cast<int32_t>(f);
        made.lane_[static_cast<size_t>(launch)] = static_cast<int32_t>(lane);
      }
  return made;
}

}  // namespace oar
