#include "oar/backend/cpu/fft/plans.h"

#include <algorithm>
#include <mutex>

#include "oar/backend/cpu/fft/roots.h"
#include "oar/base/fork_mutex.h"

namespace oar::cpu::fft {
namespace {

// What all plans of one kind may occupy, but for the last one used.
inline constexpr size_t kMostBytes = size_t{64} << 20, kMostPlans = 64;

// Plans in the order of their last use.
template <class Plan>
class PlanCache {
 public:
  std::shared_ptr<const Plan> find(int64_t n) {
    const std::lock_guard lock(mutex_);
    const auto at = std::find_if(plans_.begin(), plans_.end(),
                                 [n](const Entry& entry) { return entry.n == n; });
    if (at == plans_.end()) return nullptr;
    std::rotate(plans_.begin(), at, at + 1);
    return plans_.front().plan;
  }
  void put(int64_t n, const std::shared_ptr<const Plan>& plan) {
    const std::lock_guard lock(mutex_);
    plans_.insert(plans_.begin(), {n, plan});
    size_t bytes = 0, kept = 0;
    while (kept < plans_.size() && kept < kMostPlans) {
      bytes += plans_[kept].plan->bytes();
      if (kept > 0 && bytes > kMostBytes) break;
      ++kept;
    }
    plans_.resize(kept);
  }

 private:
  struct Entry {
    int64_t n = 0;
    std::shared_ptr<const Plan> plan;
  };
  ForkMutex mutex_;
  std::vector<Entry> plans_;
};

}  // namespace

template <class T>
HalfRoots<T>::HalfRoots(int64_t n) {
  const Roots root(n);
  for (int64_t k = 0; k < n / 4 + 1 + Packet<T>::kLanes; ++k) {
    const Root w = root(k);
    roots_.push_back(static_cast<T>(w.re));
    roots_.push_back(static_cast<T>(w.im));
  }
}

template <class Plan>
std::shared_ptr<const Plan> plan_for(int64_t n) {
  static auto& cache = *new PlanCache<Plan>;  // kernels may run while the process ends
  if (auto found = cache.find(n)) return found;
  auto made = std::make_shared<const Plan>(n);
  cache.put(n, made);
  return made;
}

template class HalfRoots<float>;
template class HalfRoots<double>;
template std::shared_ptr<const Passes<float>> plan_for(int64_t);
template std::shared_ptr<const Passes<double>> plan_for(int64_t);
template std::shared_ptr<const Line<float>> plan_for(int64_t);
template std::shared_ptr<const Line<double>> plan_for(int64_t);
template std::shared_ptr<const HalfRoots<float>> plan_for(int64_t);
template std::shared_ptr<const HalfRoots<double>> plan_for(int64_t);

}  // namespace oar::cpu::fft
